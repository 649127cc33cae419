"""``agent-brain ask`` and ``resume``: one question, one answer, and what a person is asked."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

from agent_brain.cli.agents import AgentOptions, build
from agent_brain.cli.deciding import GivenDecisions, Read, ask_person, how_to_answer
from agent_brain.cli.exits import ExitCode, UserError
from agent_brain.cli.outcomes import conclude
from agent_brain.cli.printers import OutputOptions, Printer
from agent_brain.cli.prompting import read_keyboard
from agent_brain.cli.turns import Turns
from agent_brain.result import Result


def ask(words: Sequence[str], options: AgentOptions, output: OutputOptions) -> ExitCode:
    """Answer one question; at a terminal, ask the person what the run waits for.

    Args:
        words: The question; a single ``-`` stands for what is on stdin.
        options: The agent.
        output: What is shown of the run.

    Raises:
        UserError: There is no question, or no such agent.
    """
    from_stdin = list(words) == ["-"]
    question = sys.stdin.read() if from_stdin else " ".join(words)
    if not question.strip():
        raise UserError('The question is empty. Try: agent-brain ask "What is 17 times 23?"')
    with Turns(build(options), options.servers) as turns:
        result = turns.take(question.strip(), _printer(output))
        if not from_stdin:
            result = _with_person(turns, result, output)
        return conclude(result, turns.brain.limits, how_to_answer(turns.brain.memory, options))


def resume(given: GivenDecisions, options: AgentOptions, output: OutputOptions) -> ExitCode:
    """Go on with the run that a folder holds: with decisions, or where it was cut off.

    Args:
        given: What the person has decided.
        options: The agent, with the folder.
        output: What is shown of the run.

    Raises:
        UserError: There is no folder, nothing to go on with, or the decisions do not fit.
    """
    if options.folder is None:
        raise UserError("--folder is missing: where is the conversation kept?")
    if not options.folder.is_dir():
        raise UserError(f"--folder {str(options.folder)!r}: there is no such folder")
    with Turns(build(options), options.servers) as turns:
        memory = turns.memory()
        decisions = given.read(memory).arguments() if given else {}
        if not given and sys.stdin.isatty():
            asked = ask_person(memory, read_keyboard)
            decisions = {} if asked is None else asked.arguments()
        result = turns.resume(_printer(output), **decisions)
        result = _with_person(turns, result, output)
        return conclude(result, turns.brain.limits, how_to_answer(memory, options))


def settle(turns: Turns, result: Result, printer: Callable[[], Printer], read: Read) -> Result:
    """Go on with a run as long as it waits and the person decides."""
    while result.stop_reason in ("approval", "input"):
        decisions = ask_person(turns.brain.memory, read)
        if decisions is None:
            break
        result = turns.resume(printer(), **decisions.arguments())
    return result


def _with_person(turns: Turns, result: Result, output: OutputOptions) -> Result:
    if not sys.stdin.isatty():
        return result
    return settle(turns, result, lambda: _printer(output), read_keyboard)


def _printer(output: OutputOptions) -> Printer:
    return output.printer(sys.stdout, sys.stderr)
