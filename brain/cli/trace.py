"""What an agent does on its way to the answer, as labelled lines."""

from __future__ import annotations

import traceback

from agent_brain.cli.screen import MARGIN, Screen
from agent_brain.cli.texts import brief, call_text, counted
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

THINKING = "dim italic"
QUIET = "dim"
QUESTION = "bold"
CALL = "cyan"
GOOD = "green"
BAD = "red"
WARNING = "yellow"


class Trace:
    """Writes thoughts, tool calls and their results; other events leave no line.

    Args:
        screen: Where to.
        verbose: Also write which state the agent enters, and what the run has used.
        debug: Also write the traceback of a tool that raised.
        echo: Also write the question.
    """

    def __init__(
        self, screen: Screen, *, verbose: bool = False, debug: bool = False, echo: bool = False
    ) -> None:
        self.screen = screen
        self.verbose = verbose
        self.debug = debug
        self.echo = echo
        self._thinking = False
        self._owed = ""  # line ends of a thought, written only if it goes on
        self._open = 0  # calls that were asked for and have not ended

    def shows(self, event: Event) -> bool:
        """Whether the event leaves a trace."""
        if isinstance(event, TextDelta):
            return event.thought and (self._thinking or bool(event.text.strip()))
        if isinstance(event, StateEntered | RunFinished | ToolProgress):
            return self.verbose
        if isinstance(event, RunStarted):
            return self.echo
        return isinstance(
            event,
            ActionRequested | ActionFinished | StuckDetected | ApprovalRequested | InputRequested,
        )

    def show(self, event: Event) -> None:
        """Write what the event says."""
        if isinstance(event, TextDelta):
            self._think(event.text)
            return
        self.end_thought()
        write = self.screen.labelled
        match event:
            case RunStarted(goal=Message() as goal):
                write("you", goal.content, QUESTION)
            case StateEntered():
                write("state", " › ".join([*event.path, event.state or ""]), QUIET)
            case ActionRequested():
                write("tool", call_text(event.action), CALL)
            case ActionFinished():
                self._result(event)
            case ToolProgress():
                write("progress", _progress(event), QUIET)
            case StuckDetected():
                what = "a hint is given" if event.verdict == "hint" else "the run is stopped"
                write("stuck", f"{event.reason}; {what}", WARNING)
            case ApprovalRequested():
                write("approval", "; ".join(map(call_text, event.actions)), WARNING)
            case InputRequested():
                write("question", event.prompt, WARNING)
            case RunFinished():
                write("end", _summary(event), QUIET)

    def wait(self, event: Event) -> None:
        """Show on a terminal that a state works on and has nothing to show yet."""
        if isinstance(event, ActionRequested):
            self._open += 1
        elif isinstance(event, ActionFinished):
            self._open -= 1
        elif isinstance(event, StateEntered) and self._open <= 0:
            self.screen.status(f"  waiting   {' › '.join([*event.path, event.state or ''])} …")
        elif isinstance(event, StateExited | RunFinished | RunFailed):
            self.screen.end_status()

    def end_thought(self) -> None:
        """Something else comes now: the next thought is a new one."""
        self._thinking = False

    def said(self, text: str) -> None:
        """Write something that was said on the way and was not the answer."""
        self.end_thought()
        if text.strip():
            self.screen.labelled("said", text.strip())

    def _think(self, text: str) -> None:
        if not self._thinking:
            text = text.lstrip()
            self._thinking, self._owed = True, ""
            self.screen.label("thinking", THINKING)
        text = self._owed + text
        shown = text.rstrip("\n")
        self._owed = text[len(shown) :]
        self.screen.write(shown.replace("\n", f"\n{MARGIN}"), THINKING)

    def _result(self, event: ActionFinished) -> None:
        label, style = ("error", BAD) if event.result.is_error else ("result", GOOD)
        self.screen.labelled(label, f"{event.action.name}: {brief(event.result.content)}", style)
        if self.debug and event.exception is not None:
            self.screen.write("".join(traceback.format_exception(event.exception)), QUIET)


def _summary(event: RunFinished) -> str:
    usage = event.usage
    parts = [
        str(event.stop_reason),
        counted(event.step, "step"),
        counted(usage.requests, "model call"),
    ]
    if usage.total_tokens:
        parts.append(counted(usage.total_tokens, "token"))
    if usage.cost:
        parts.append(f"${usage.cost:.4f}")
    return ", ".join(parts)


def _progress(event: ToolProgress) -> str:
    done = f"{event.done:g}" if event.total is None else f"{event.done:g} of {event.total:g}"
    return " ".join(part for part in (f"{event.action.name}:", done, event.message) if part)
