"""A run's events as output: live on a terminal, answer and trace apart in pipes, or as JSON."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from agent_brain.cli.screen import Screen
from agent_brain.cli.texts import one_line
from agent_brain.cli.trace import Trace
from agent_brain.states.events import (
    ActionRequested,
    Event,
    RunFailed,
    RunFinished,
    TextDelta,
)

Printer = Callable[[Event], None]


class LivePrinter:
    """Writes everything to one screen as it happens, the words of the agent flush left.

    Args:
        trace: Writes all but these words.
    """

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._screen = trace.screen
        self._last = ""  # what was written last: "text" or "trace"

    def __call__(self, event: Event) -> None:
        """Write the event."""
        if isinstance(event, TextDelta) and not event.thought:
            self._say(event.text)
        elif isinstance(event, RunFailed):
            self._screen.end_line()
        elif self._trace.shows(event):
            self._turn_to("trace")
            self._trace.show(event)
        if isinstance(event, RunFinished):
            self._screen.end_line()
        self._trace.wait(event)

    def _say(self, text: str) -> None:
        if self._last != "text":
            text = text.lstrip("\r\n")
            if not text:
                return
            self._turn_to("text")
            self._trace.end_thought()
        self._screen.write(text)

    def _turn_to(self, what: str) -> None:
        if self._last not in ("", what):
            self._screen.line()
        self._last = what


class SplitPrinter:
    """Writes the answer, once it is known, to one stream, and all else to another.

    Words that the agent says before its answer, such as "Let me look", belong to the trace.

    Args:
        out: For the answer, as it is.
        trace: For everything else.
    """

    def __init__(self, out: TextIO, trace: Trace) -> None:
        self._out = out
        self._trace = trace
        self._held: list[str] = []  # said, and perhaps the answer
        self._step = -1  # in which step it was said

    def __call__(self, event: Event) -> None:
        """Write the event, or hold it back."""
        self._show(event)
        self._trace.wait(event)

    def _show(self, event: Event) -> None:
        if isinstance(event, TextDelta) and not event.thought:
            if event.step != self._step:
                self._let_go()
            self._trace.end_thought()
            self._step = event.step
            self._held.append(event.text)
            return
        if isinstance(event, RunFinished):
            if "".join(self._held) == event.answer:
                self._held.clear()
            self._answer(event.answer)
        if isinstance(event, RunFinished | RunFailed | ActionRequested):
            self._let_go()
        if self._trace.shows(event):
            self._trace.show(event)
        if isinstance(event, RunFinished | RunFailed):
            self._trace.screen.end_line()

    def _let_go(self) -> None:
        self._trace.said("".join(self._held))
        self._held.clear()

    def _answer(self, text: str) -> None:
        if text:
            self._out.write(text if text.endswith("\n") else f"{text}\n")
            self._out.flush()


class JsonPrinter:
    """Writes every event as one JSON object on one line.

    Args:
        out: Where to.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out

    def __call__(self, event: Event) -> None:
        """Write the event."""
        self._out.write(f"{one_line(event.to_json())}\n")
        self._out.flush()


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """How much to show, and in what form.

    Attributes:
        as_json: Events instead of text.
        verbose: States and usage too.
        debug: The tracebacks of tools that raised, too.
        echo: The questions too, as nobody has seen them being typed.
    """

    as_json: bool = False
    verbose: bool = False
    debug: bool = False
    echo: bool = False

    def printer(self, out: TextIO, err: TextIO) -> Printer:
        """A printer for one run, by where the output goes."""
        if self.as_json:
            return JsonPrinter(out)
        if out.isatty():
            return LivePrinter(self._trace(out))
        return SplitPrinter(out, self._trace(err))

    def _trace(self, stream: TextIO) -> Trace:
        return Trace(Screen(stream), verbose=self.verbose, debug=self.debug, echo=self.echo)
