"""Print the events of a run: live on terminals, steps apart in pipes, or as JSON. Private."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import TextIO

from agent_brain.cli.options import Options
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


class LivePrinter:
    """Writes a run to a screen as it happens: steps as labelled lines, text without a margin.

    With ``out``, the answer goes there alone, and what the agent says before it is a step.
    """

    def __init__(
        self,
        screen: Screen,
        out: TextIO | None = None,
        *,
        verbose: bool = False,
        debug: bool = False,
        echo: bool = False,
    ) -> None:
        self._screen = screen
        self._out = out
        self._verbose = verbose
        self._debug = debug
        self._echo = echo
        self._block = ""  # what was written last: "text", "thought" or "line"
        self._newlines = ""  # at the end of a text; written only if it continues
        self._held: list[TextDelta] = []  # text that may be the answer

    def __call__(self, event: Event) -> None:
        """Write the event, and show on a terminal that a state works and has no output yet."""
        if self._out is not None:
            self._hold(event, self._out)
        if isinstance(event, TextDelta):
            if self._out is None or event.thought:
                self._say(event)
        elif line := self._line(event):
            self._begin("line")
            self._screen.labelled(*line)
        if isinstance(event, ActionFinished) and self._debug and event.exception is not None:
            self._screen.write("".join(traceback.format_exception(event.exception)), "dim")
        if isinstance(event, StateEntered):
            self._screen.status(f"  waiting   {_location(event)} …")
        elif isinstance(event, StateExited | RunFinished | RunFailed):
            self._screen.end_status()
        if isinstance(event, RunFinished | RunFailed):
            self._screen.end_line()

    def _hold(self, event: Event, out: TextIO) -> None:
        """Hold text until it is known whether it is the answer."""
        said = "".join(each.text for each in self._held)
        text = event if isinstance(event, TextDelta) and not event.thought else None
        if isinstance(event, RunFinished) and event.answer:
            out.write(event.answer.removesuffix("\n") + "\n")
            out.flush()
            said = said if said != event.answer else ""
        ends = isinstance(event, RunFinished | RunFailed | ActionRequested)
        if ends or (text and self._held and self._held[-1].step != text.step):
            self._held = []
            if said.strip():
                self._screen.labelled("said", said.strip())
        if text:
            self._held.append(text)
            self._block = ""

    def _begin(self, block: str) -> None:
        """Begin a block; a blank line separates text from what is around it."""
        if self._block not in ("", block) and "text" in (self._block, block):
            self._screen.line()
        self._block = block

    def _say(self, event: TextDelta) -> None:
        block = "thought" if event.thought else "text"
        style, margin = ("dim italic", MARGIN) if event.thought else ("", "")
        text = event.text
        if self._block != block:
            text = text.lstrip("\r\n")
            if not text:
                return
            self._begin(block)
            self._newlines = ""
            if event.thought:
                self._screen.label("thinking", style)
        text = self._newlines + text
        shown = text.rstrip("\n")
        self._newlines = text[len(shown) :]
        self._screen.write(shown.replace("\n", f"\n{margin}"), style)

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
            case StateEntered() if self._verbose:
                return "state", _location(event), "dim"
            case ToolProgress() if self._verbose:
                done = f"{event.done:g}" + ("" if event.total is None else f" of {event.total:g}")
                return "progress", f"{event.action.name}: {done} {event.message}".rstrip(), "dim"
            case RunFinished(usage=usage) if self._verbose:
                parts = [str(event.stop_reason), count(event.step, "step")]
                parts.append(count(usage.requests, "model call"))
                parts += [count(usage.total_tokens, "token")] if usage.total_tokens else []
                parts += [f"${usage.cost:.4f}"] if usage.cost else []
                return "end", ", ".join(parts), "dim"
        return None


def make_printer(
    options: Options, out: TextIO | None = None, err: TextIO | None = None, *, echo: bool = False
) -> Printer:
    """Return a printer for one run, chosen by the options and by where the output goes."""
    stream = out or sys.stdout
    if options.as_json:
        return lambda event: print(one_line(event.to_json()), file=stream, flush=True)
    live = stream.isatty()
    return LivePrinter(
        Screen(stream if live else err or sys.stderr),
        None if live else stream,
        verbose=options.verbose,
        debug=options.debug,
        echo=echo,
    )


def _location(event: Event) -> str:
    return " › ".join([*event.path, event.state or ""])
