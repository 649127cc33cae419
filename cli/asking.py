"""The commands ``ask``, ``run``, ``resume``, ``chat`` and ``demo``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agent_brain.cli.decisions import Read, ask_person, how_to_answer, read_decisions
from agent_brain.cli.exit_codes import ExitCode, UserError, notify, report_failure
from agent_brain.cli.keyboard import PROMPT, read_chat_line, read_keyboard, read_stdin
from agent_brain.cli.nets import is_file
from agent_brain.cli.options import Options
from agent_brain.cli.printers import LivePrinter, make_printer
from agent_brain.cli.screen import Screen
from agent_brain.cli.session import Session, open_session
from agent_brain.result import Result
from agent_brain.serving.pending import pending_in


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


LEAVE = {"/exit", "/quit", "/bye"}
HELP = "Ctrl-C stops an answer, /exit or Ctrl-D ends the chat, /help shows this line."
COMMAND = re.compile(r"/[a-z?]*")
DEMO_QUESTIONS = (
    "Which weekday is 24 December 2026, and what is 15% of 240?",
    "Multiply that by 2.",
)
DEMO_NOTE = """\
This was a real run of the agent, with its states, tools and memory. The model was the built-in demo
model: a small rule-based program and no language model, which works offline and knows little.
To use a real one:"""
DEMO_NEXT = """\
  export OPENAI_API_KEY=…       (or the key of any provider that LiteLLM supports)
  agent-brain chat --model openai/gpt-4.1-mini"""


def chat(options: Options) -> ExitCode:
    """Answer questions until there are no more; the code of a piped chat is the first failure's."""
    person = sys.stdin.isatty()
    with open_session(options, partial(make_printer, options, echo=not person)) as session:
        if person:
            notify(HELP, kind="")
        code = _Chat(session, person, read_chat_line if person else read_stdin).loop()
        return ExitCode.ANSWERED if person else code


@dataclass(slots=True)
class _Chat:
    session: Session
    interactive: bool  # Ctrl-C ends a turn and not the chat
    source: Read
    code: ExitCode = ExitCode.ANSWERED  # of the first turn that failed
    left: bool = False

    def loop(self) -> ExitCode:
        """Take turns until the user leaves, beginning with a stored one that waits."""
        if pending_in(self.session.open_memory()) is not None:
            notify("This conversation waits for you:", kind="")
            self._turn(self._answer)
        while not self.left and (line := self._read(PROMPT)) is not None:
            words = line.strip()
            if COMMAND.fullmatch(words.lower()):
                known = words.lower() in ("/help", "/?")
                notify(HELP if known else f"There is no command {words}. {HELP}", kind="")
            elif words:
                self._turn(partial(self.session.run, words))
        return self.code

    def _read(self, prompt: str, *, hidden: bool = False) -> str | None:
        line = self.source(prompt, hidden=hidden)
        self.left = self.left or (line or "").strip().lower() in LEAVE
        return None if self.left else line

    def _answer(self) -> Result | None:
        decisions = ask_person(self.session.brain.memory, self._read)
        return None if decisions is None else self.session.resume(**decisions)

    def _turn(self, start: Callable[[], Result | None]) -> None:
        code = ExitCode.FAILED
        try:
            result = start()
            if result is None:
                code = self.session.postpone()
            else:
                code = self.session.conclude(self.session.settle(result, self._read))
        except KeyboardInterrupt:
            if self.session.told_to_end or not (self.interactive and self.session.clean):
                raise
            notify("Cancelled; the chat continues", kind="")
        except BrokenPipeError:
            raise
        except Exception as error:
            report_failure(error, debug=self.session.options.debug)
        self.code = self.code or code


def demo(question: tuple[str, ...], options: Options) -> ExitCode:
    """Show the demo agent at work on a question, or on several as turns of one conversation."""
    questions = [" ".join(question)] if question else DEMO_QUESTIONS
    if not all(each.strip() for each in questions):
        raise UserError('The question is empty. Try: agent-brain demo "What is 17 times 23?"')
    screen = Screen(sys.stdout)
    code = ExitCode.ANSWERED
    printer = partial(LivePrinter, screen, verbose=True)
    with open_session(Options(model="demo"), printer) as session:
        brain = session.brain
        states = ", ".join(key.name for key in brain.net.states)
        screen.line(f"net {brain.net.name}: {states}", "dim")
        screen.line(f"tools: {', '.join(brain.memory.available_tools)}", "dim")
        for each in questions:
            screen.line(f"\n> {each}\n", "bold")
            code = code or session.conclude(session.run(each))
    screen.line(f"\n{DEMO_NOTE}", "dim")
    screen.line(DEMO_NEXT, "bold")
    return code
