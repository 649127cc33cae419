"""The commands ``ask``, ``run`` and ``resume``."""

from __future__ import annotations

import sys

from agent_brain.cli.decisions import ask_person, how_to_answer, read_decisions
from agent_brain.cli.exit_codes import ExitCode, UserError
from agent_brain.cli.keyboard import read_keyboard
from agent_brain.cli.net_reference import is_file
from agent_brain.cli.options import Options
from agent_brain.cli.session import open_session


def ask(question: tuple[str, ...], options: Options) -> ExitCode:
    """Ask one question."""
    from_stdin = question == ("-",)
    text = (sys.stdin.read() if from_stdin else " ".join(question)).strip()
    if not text:
        raise UserError('The question is empty. Try: agent-brain ask "What is 17 times 23?"')
    with open_session(options) as session:
        result = session.run(text)
        if sys.stdin.isatty() and not from_stdin:
            result = session.settle(result, read_keyboard)
        return session.conclude(result)


def run(question: tuple[str, ...], options: Options) -> ExitCode:
    """Ask the agent of a file."""
    if not is_file(options.net):
        raise UserError(f"{options.net!r} is not a .toml, .yaml or .yml file; ask --net takes all")
    return ask(question, options)


def resume(options: Options) -> ExitCode:
    """Continue a stored run."""
    if options.folder is None:
        raise UserError("--folder is missing: where is the conversation stored?")
    if not options.folder.is_dir():
        raise UserError(f"--folder {str(options.folder)!r}: there is no such folder")
    with open_session(options) as session:
        memory, person = session.open_memory(), sys.stdin.isatty()
        decisions = read_decisions(options, memory)
        if not decisions and (how := how_to_answer(memory, options)):
            if not person:
                raise UserError(f"The run waits for a person{how}")
            decisions = ask_person(memory, read_keyboard) or {}
            if not decisions:
                return session.postpone()
        result = session.resume(**decisions)
        return session.conclude(session.settle(result, read_keyboard) if person else result)
