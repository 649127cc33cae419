"""``agent-brain chat``: question after question, the session's memory kept between them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace

from agent_brain.cli.agents import AgentOptions, build
from agent_brain.cli.asking import settle
from agent_brain.cli.deciding import Read, Waiting, how_to_answer
from agent_brain.cli.deciding import ask_person as ask_decisions
from agent_brain.cli.exits import ExitCode, tell, tell_failure
from agent_brain.cli.outcomes import conclude
from agent_brain.cli.printers import OutputOptions, Printer
from agent_brain.cli.prompting import PROMPT, ask_person, read_line
from agent_brain.cli.turns import Turns
from agent_brain.result import Result

LEAVE = {"/exit", "/quit", "/bye"}
HELP = "Ctrl-C stops an answer, /exit or Ctrl-D leaves, /help says this again."
COMMAND = re.compile(r"/[a-z?]*")


def chat(options: AgentOptions, output: OutputOptions) -> ExitCode:
    """Answer questions until there are no more, and ask what a run waits for.

    A turn that fails or is cancelled does not end an interactive chat. With piped input the chat
    also goes on to the next line, and ends with the code of the first turn that went wrong.

    Raises:
        UserError: There is no such agent.
        KeyboardInterrupt: Ctrl-C with piped input, or twice in a row.
    """
    with Turns(build(options), options.servers) as turns:
        if sys.stdin.isatty():
            tell(HELP, kind="")
            _Talk(turns, options, output, ask_person, patient=True).go_on()
            return ExitCode.ANSWERED
        talk = _Talk(turns, options, replace(output, echo=True), read_line, patient=False)
        talk.go_on()
        return talk.code


class _Talk:
    """The loop, and how its turns ended.

    Args:
        turns: Takes the turns.
        options: The agent.
        output: What is shown.
        read: Gives the user's next line after a prompt.
        patient: Ctrl-C ends a turn, not the chat.
    """

    def __init__(
        self,
        turns: Turns,
        options: AgentOptions,
        output: OutputOptions,
        read: Read,
        *,
        patient: bool,
    ) -> None:
        self.turns = turns
        self.options = options
        self.output = output
        self.code = ExitCode.ANSWERED  # of the first turn that went wrong
        self._source = read
        self._patient = patient
        self._left = False

    def go_on(self) -> None:
        """Take turns, first the one that waits for the user, until they leave."""
        if Waiting.of(self.turns.memory()) is not None:
            tell("This conversation waits for you:", kind="")
            self._turn(self._waiting)
        while not self._left and (line := self._read(PROMPT)) is not None:
            words = line.strip()
            if COMMAND.fullmatch(words.lower()):
                known = words.lower() in ("/help", "/?")
                tell(HELP if known else f"There is no command {words}. {HELP}", kind="")
            elif words:
                self._turn(lambda: self.turns.take(words, self._printer()))  # noqa: B023 - used now

    def _read(self, prompt: str) -> str | None:
        line = self._source(prompt)
        self._left = self._left or (line or "").strip().lower() in LEAVE
        return None if self._left else line

    def _printer(self) -> Printer:
        return self.output.printer(sys.stdout, sys.stderr)

    def _waiting(self) -> Result | None:
        """Go on with the run that waits; None if the user puts it off."""
        decisions = ask_decisions(self.turns.brain.memory, self._read)
        if decisions is None:
            return None
        return self.turns.resume(self._printer(), **decisions.arguments())

    def _turn(self, start: Callable[[], Result | None]) -> None:
        code = ExitCode.FAILED
        try:
            result = start()
            if result is None:
                return
            result = settle(self.turns, result, self._printer, self._read)
            how = how_to_answer(self.turns.brain.memory, self.options)
            code = conclude(result, self.turns.brain.limits, how)
        except KeyboardInterrupt:
            if not (self._patient and self.turns.clean):
                raise
            tell("Cancelled; the chat goes on", kind="")
        except BrokenPipeError:
            raise  # nobody reads any more
        except Exception as error:
            tell_failure(error, debug=self.output.debug)
        self.code = self.code or code
