"""``agent-brain chat``: question after question, the session's memory kept between them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace

from agent_brain.cli.agents import AgentOptions, build
from agent_brain.cli.exits import ExitCode, tell, tell_failure
from agent_brain.cli.outcomes import conclude
from agent_brain.cli.printers import OutputOptions
from agent_brain.cli.prompting import ask_person, read_line
from agent_brain.cli.turns import Turns

LEAVE = {"/exit", "/quit", "/bye"}
HELP = "Ctrl-C stops an answer, /exit or Ctrl-D leaves, /help says this again."
COMMAND = re.compile(r"/[a-z?]*")


def chat(options: AgentOptions, output: OutputOptions) -> ExitCode:
    """Answer questions until there are no more.

    A turn that fails or is cancelled does not end an interactive chat. With piped input the chat
    also goes on to the next line, and ends with the code of the first turn that went wrong.

    Raises:
        UserError: There is no such agent.
        KeyboardInterrupt: Ctrl-C with piped input, or twice in a row.
    """
    with Turns(build(options), options.servers) as turns:
        if sys.stdin.isatty():
            tell(HELP, kind="")
            _Talk(turns, output).go_on(ask_person, patient=True)
            return ExitCode.ANSWERED
        talk = _Talk(turns, replace(output, echo=True))
        talk.go_on(read_line, patient=False)
        return talk.code


class _Talk:
    """The loop, and how its turns ended."""

    def __init__(self, turns: Turns, output: OutputOptions) -> None:
        self.turns = turns
        self.output = output
        self.code = ExitCode.ANSWERED  # of the first turn that went wrong

    def go_on(self, read: Callable[[], str | None], *, patient: bool) -> None:
        """Take turns until ``read`` has nothing more, or the user leaves.

        Args:
            read: Gives the user's next words.
            patient: Ctrl-C ends a turn, not the chat.
        """
        while (line := read()) is not None:
            words = line.strip()
            if words.lower() in LEAVE:
                return
            if COMMAND.fullmatch(words.lower()):
                known = words.lower() in ("/help", "/?")
                tell(HELP if known else f"There is no command {words}. {HELP}", kind="")
            elif words:
                self._turn(words, patient=patient)

    def _turn(self, words: str, *, patient: bool) -> None:
        code = ExitCode.FAILED
        try:
            result = self.turns.take(words, self.output.printer(sys.stdout, sys.stderr))
            code = conclude(result, self.turns.brain.limits)
        except KeyboardInterrupt:
            if not (patient and self.turns.clean):
                raise
            tell("Cancelled; the chat goes on", kind="")
        except BrokenPipeError:
            raise  # nobody reads any more
        except Exception as error:
            tell_failure(error, debug=self.output.debug)
        self.code = self.code or code
