"""The current tool call, as the running tool sees it."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeAlias, overload

from pydantic import JsonValue
from typing_extensions import TypeVar

from agent_brain.common.secrets import hide_in_result
from agent_brain.tools.action import Action
from agent_brain.tools.answers import AnswerKind, answer_type, asked_again
from agent_brain.tools.errors import InputNeeded

T = TypeVar("T")
DepsT = TypeVar("DepsT", default=Any)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a call.

    Attributes:
        done: How much is done, in any unit.
        total: How much there is to do, if known.
        message: The current activity, for people.
    """

    done: float
    total: float | None = None
    message: str | None = None


ProgressSink: TypeAlias = Callable[[Progress], object]
"""Takes the progress of a call; may be called from any thread, and must not block."""


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
        answers: What a person has answered to :meth:`ask` so far, in order.
        on_progress: Takes what :meth:`progress` reports; None if nobody listens.
        needed: The first question of :meth:`ask` that has no answer yet.
    """

    action: Action = field(default_factory=lambda: Action(name="direct"))
    memory: Any = None
    place: tuple[object, ...] = ()
    deps: DepsT = None  # type: ignore[assignment]  # no run, no dependencies
    on_progress: ProgressSink | None = None
    answers: list[JsonValue] = field(default_factory=list)
    needed: InputNeeded | None = field(default=None, init=False)
    _asked: int = field(default=0, init=False)

    @overload
    def ask(self, prompt: str) -> str: ...
    @overload
    def ask(self, prompt: str, type: type[T]) -> T: ...
    @overload
    def ask(self, prompt: str, type: AnswerKind) -> Any: ...

    def ask(self, prompt: str, type: AnswerKind = str) -> Any:  # noqa: A002 - what it is
        """Return a person's answer; without one, the run waits for it.

        The tool then runs again from its start, and gets the answers in the order of the questions:
        so ask before the tool takes effect, and in the same order each time. The result of the tool
        is what it returns. Where nobody can be asked, the model gets an error.

        Args:
            prompt: The question.
            type: The type of the answer, as of :class:`agent_brain.states.Ask`.

        Raises:
            InputNeeded: There is no answer yet. The run waits also if the tool catches it.
            ToolDefinitionError: There is no such type.
        """
        number, needed = self._asked, InputNeeded(prompt, type)
        self._asked += 1
        if number < len(self.answers):
            try:
                return answer_type(type).value(self.answers[number])
            except ValueError as error:
                del self.answers[number:]  # they are kept by the run: it is asked again
                needed.prompt = asked_again(prompt, error)
        needed.again = True
        self.needed = self.needed or needed
        raise needed

    @property
    def key(self) -> str:
        """A unique key of this call; the same when the call is repeated after a crash.

        Pass it to services that take idempotency keys, so that nothing is done twice.
        """
        return "/".join(str(part) for part in (*self.place, self.action.id) if part != "")

    def progress(self, done: float, total: float | None = None, message: str | None = None) -> None:
        """Report the progress of the call. Has no effect if nobody listens.

        Args:
            done: How much is done, in any unit.
            total: How much there is to do, if known.
            message: The current activity.
        """
        if self.on_progress is not None:
            shown = None if message is None else hide_in_result(message)
            self.on_progress(Progress(done, total, shown))


_current: ContextVar[ToolContext | None] = ContextVar("agent_brain_tool_call", default=None)
enter_call = _current.set
leave_call = _current.reset
call_here = _current.get  # what current_call() returns, for what is asked often


def current_call() -> ToolContext | None:
    """Return the call that the running tool serves, also in its threads; None outside of a tool."""
    return _current.get()


def report_progress(done: float, total: float | None = None, message: str | None = None) -> None:
    """Report the progress of the current tool call, as :meth:`ToolContext.progress` does."""
    if (call := current_call()) is not None:
        call.progress(done, total, message)
