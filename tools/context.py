"""The current tool call, as the running tool sees it."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic

from typing_extensions import TypeVar

from agent_brain.tools.action import Action
from agent_brain.tools.progress import report_progress

DepsT = TypeVar("DepsT", default=Any)


@dataclass(slots=True)
class ToolContext(Generic[DepsT]):
    """A tool call and the run it belongs to.

    A function tool with a parameter annotated ``ToolContext`` receives it; the parameter is hidden
    from the model. Any other tool calls :func:`current_call`::

        from agent_brain import tool
        from agent_brain.tools import ToolContext

        @tool
        async def book(room: str, context: ToolContext) -> str:
            "Book a room."
            return f"{room} is booked as {context.key}"

    Attributes:
        action: The call: its name, arguments and id.
        memory: The memory of the run (an ``agent_brain.memories.Memory``); None outside of a run.
        place: The run, its branch and the step of the call; the same when the step is repeated.
        deps: What the run was given as ``deps``; annotate ``ToolContext[Deps]`` to have it typed.
    """

    action: Action = field(default_factory=lambda: Action(name="direct"))
    memory: Any = None
    place: tuple[object, ...] = ()
    deps: DepsT = None  # type: ignore[assignment]  # no run, no dependencies

    @property
    def key(self) -> str:
        """A unique key of this call; the same when the call is repeated after a crash.

        Pass it to services that take idempotency keys, so that nothing is done twice.
        """
        return "/".join(str(part) for part in (*self.place, self.action.id) if part != "")

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report the progress of the call.

        Args:
            done: How much is done, in any unit.
            total: How much there is to do, if known.
            message: The current activity.
        """
        report_progress(done, total, message)


_current: ContextVar[ToolContext | None] = ContextVar("agent_brain_tool_call", default=None)
enter_call = _current.set
leave_call = _current.reset


def current_call() -> ToolContext | None:
    """Return the call that the running tool serves, also in its threads; None outside of a tool."""
    return _current.get()
