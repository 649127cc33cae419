"""Print the events of a run: live on terminals, steps apart in pipes, or as JSON. Private."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import TextIO

from agent_brain.cli.options import OutputOptions
from agent_brain.cli.sanitize import brief, call_text, count, one_line
from agent_brain.cli.screen import MARGIN, Screen
from agent_brain.memories import Message
from agent_brain.states.events import (
    ActionFinished,
    ActionRequested,
    ApprovalRequested,
    Event,
    InputRequested,
    RunFailed,
    RunFinished,
    RunStarted,
    StateEntered,
    StateExited,
    StuckDetected,
    TextDelta,
    ToolProgress,
)

Printer = Callable[[Event], None]
THINKING = "dim italic"


class LivePrinter:
    """Writes a run to one screen as it happens: steps as labelled lines, text without a margin.

    Args:
        screen: Where to write.
        verbose: Also write the states, the progress of tools, and the usage.
        debug: Also write the tracebacks of tools.
        echo: Also write the question.
    """

    def __init__(
        self, screen: Screen, *, verbose: bool = False, debug: bool = False, echo: bool = False
    ) -> None:
        self.screen = screen
        self._verbose = verbose
        self._debug = debug
        self._echo = echo
        self._block = ""  # what was written last: "text", "thought" or "line"
        self._newlines = ""  # at the end of a thought; written only if it continues
        self._open_calls = 0

    def __call__(self, event: Event) -> None:
        """Write the event, and show on a terminal that a state works and has no output yet."""
        self.show(event)
        if isinstance(event, ActionRequested):
            self._open_calls += 1
        elif isinstance(event, ActionFinished):
            self._open_calls -= 1
        elif isinstance(event, StateEntered) and self._open_calls <= 0:
            self.screen.status(f"  waiting   {_location(event)} …")
        elif isinstance(event, StateExited | RunFinished | RunFailed):
            self.screen.end_status()

    def show(self, event: Event) -> None:
        """Write the event."""
        if isinstance(event, TextDelta):
            (self.think if event.thought else self.say)(event.text)
        elif line := self._line(event):
            self.begin("line")
            self.screen.labelled(*line)
        if isinstance(event, ActionFinished) and self._debug and event.exception is not None:
            self.screen.write("".join(traceback.format_exception(event.exception)), "dim")
        if isinstance(event, RunFinished | RunFailed):
            self.screen.end_line()

    def begin(self, block: str) -> None:
        """Begin a block; a blank line separates text from what is around it."""
        if self._block not in ("", block) and "text" in (self._block, block):
            self.screen.line()
        self._block = block

    def say(self, text: str) -> None:
        """Write text of the agent."""
        if self._block != "text":
            text = text.lstrip("\r\n")
            if not text:
                return
            self.begin("text")
        self.screen.write(text)

    def think(self, text: str) -> None:
        """Write a thought, or a part of one."""
        if self._block != "thought":
            text = text.lstrip()
            if not text:
                return
            self.begin("thought")
            self._newlines = ""
            self.screen.label("thinking", THINKING)
        text = self._newlines + text
        shown = text.rstrip("\n")
        self._newlines = text[len(shown) :]
        self.screen.write(shown.replace("\n", f"\n{MARGIN}"), THINKING)

    def _line(self, event: Event) -> tuple[str, str, str] | None:
        """Return label, text and style of an event's line, if it has one."""
        match event:
            case ActionRequested():
                return "tool", call_text(event.action), "cyan"
            case ActionFinished():
                label, style = ("error", "red") if event.result.is_error else ("result", "green")
                return label, f"{event.action.name}: {brief(event.result.content)}", style
            case StuckDetected():
                then = "a hint is given" if event.verdict == "hint" else "the run is stopped"
                return "stuck", f"{event.reason}; {then}", "yellow"
            case ApprovalRequested():
                return "approval", "; ".join(map(call_text, event.actions)), "yellow"
            case InputRequested():
                return "question", event.prompt, "yellow"
            case RunStarted(goal=Message() as goal) if self._echo:
                return "you", goal.content, "bold"
        return _verbose_line(event) if self._verbose else None


class SplitPrinter(LivePrinter):
    """Writes the answer to one stream once it is known, and everything else to a screen.

    What the agent says before its answer, such as "Let me look", is one of the steps.
    """

    def __init__(self, out: TextIO, screen: Screen, **options: bool) -> None:
        super().__init__(screen, **options)
        self._out = out
        self._held: list[str] = []  # text that may be the answer
        self._step = -1  # of that text

    def show(self, event: Event) -> None:
        """Write the event, or hold it until it is known whether it is the answer."""
        if isinstance(event, TextDelta) and not event.thought:
            if event.step != self._step:
                self._release()
            self._step = event.step
            self._block = "text"
            self._held.append(event.text)
            return
        if isinstance(event, RunFinished):
            if "".join(self._held) == event.answer:
                self._held.clear()
            if event.answer:
                self._out.write(
                    event.answer if event.answer.endswith("\n") else f"{event.answer}\n"
                )
                self._out.flush()
        if isinstance(event, RunFinished | RunFailed | ActionRequested):
            self._release()
        super().show(event)

    def begin(self, block: str) -> None:
        """Begin a block, without a blank line: there is no text between the lines."""
        self._block = block

    def _release(self) -> None:
        text = "".join(self._held).strip()
        self._held.clear()
        if text:
            self.begin("line")
            self.screen.labelled("said", text)


def make_printer(
    output: OutputOptions,
    out: TextIO | None = None,
    err: TextIO | None = None,
    *,
    echo: bool = False,
) -> Printer:
    """Return a printer for one run, chosen by the options and by where the output goes."""
    stream = out or sys.stdout
    if output.as_json:
        return lambda event: print(one_line(event.to_json()), file=stream, flush=True)
    options = {"verbose": output.verbose, "debug": output.debug, "echo": echo}
    if stream.isatty():
        return LivePrinter(Screen(stream), **options)
    return SplitPrinter(stream, Screen(err or sys.stderr), **options)


def _location(event: Event) -> str:
    return " › ".join([*event.path, event.state or ""])


def _verbose_line(event: Event) -> tuple[str, str, str] | None:
    match event:
        case StateEntered():
            return "state", _location(event), "dim"
        case ToolProgress():
            done = f"{event.done:g}" + ("" if event.total is None else f" of {event.total:g}")
            parts = (f"{event.action.name}:", done, event.message)
            return "progress", " ".join(part for part in parts if part), "dim"
        case RunFinished():
            usage = event.usage
            calls = count(usage.requests, "model call")
            parts = (str(event.stop_reason), count(event.step, "step"), calls)
            tokens = [count(usage.total_tokens, "token")] if usage.total_tokens else []
            cost = [f"${usage.cost:.4f}"] if usage.cost else []
            return "end", ", ".join([*parts, *tokens, *cost]), "dim"
    return None
