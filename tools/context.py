"""What a running tool may know of the call it serves."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from agent_brain.tools.action import Action
from agent_brain.tools.progress import report_progress


@dataclass(slots=True)
class ToolContext:
    """One call, as the tool that serves it sees it.

    A function tool with a parameter annotated ``ToolContext`` is given it; the model is not told of
    that parameter. Any other tool reads it with :func:`current_call`.

    Attributes:
        action: The call: its name, arguments and id.
        memory: The memory of the run that asked for it (an ``agent_brain.memories.Memory``); None
            outside of a run.
        place: The run, its branch and the step that asked; the same when the step is repeated.
    """

    action: Action = field(default_factory=lambda: Action(name="direct"))
    memory: Any = None
    place: tuple[object, ...] = ()

    @property
    def key(self) -> str:
        """Names this call and no other, and names it again when it is repeated after a crash.

        Hand it to a service that takes idempotency keys, so that what was done is not done twice.
        """
        return "/".join(str(part) for part in (*self.place, self.action.id) if part != "")

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Tell how far the call is.

        Args:
            done: How much is done, in units of the tool's own.
            total: How much there is to do, if that is known.
            message: What is going on.
        """
        report_progress(done, total, message)


_current: ContextVar[ToolContext | None] = ContextVar("agent_brain_tool_call", default=None)
enter_call = _current.set
leave_call = _current.reset


def current_call() -> ToolContext | None:
    """The call that the running tool serves; None outside of one. Also for threads it started."""
    return _current.get()
