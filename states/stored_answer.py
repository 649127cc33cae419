"""A state that answers with the result of earlier states."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum

from pydantic import ValidationError

from agent_brain.common.aio import maybe_await
from agent_brain.common.values import check_function
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states.answering import last_answer
from agent_brain.states.errors import MalformedOutputError, StateDefinitionError
from agent_brain.states.output_types import OutputType, shape_of
from agent_brain.states.routed import Choose, RoutedState
from agent_brain.states.work import StreamItem


class TellState(RoutedState):
    """Answer from the memory; no model is called.

    Args:
        find: Returns the answer from the memory; sync or async.
        output_type: A pydantic model, or any other type that pydantic validates, that the answer is
            the JSON of; ``Result.output`` is the object.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).

    Raises:
        StateDefinitionError: ``find`` is not a function, or returns no text; or the output type
            cannot be requested from a model.
        MalformedOutputError: While running: the answer is not of that type.
    """

    def __init__(
        self,
        find: Callable[[Memory], str | Awaitable[str | None] | None],
        *,
        output_type: OutputType | None = None,
        on_done: Enum | None = None,
        choose: Choose | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        check_function(StateDefinitionError, "find", find, "memory")
        if output_type is not None:
            shape_of(output_type)  # or it is refused
        self.find = find
        self.output_type = output_type

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Stream the answer; record it unless it was recorded last."""
        answer = await maybe_await(self.find(memory))
        if answer is not None and not isinstance(answer, str):
            raise StateDefinitionError(f"TellState(find): it returned {answer!r}: return text")
        if answer is not None and self.output_type is not None:
            shape = shape_of(self.output_type)
            try:
                memory.control.output = shape.read(answer or '""')
            except ValidationError as error:
                if answer:  # an empty text that is no data says nothing
                    raise MalformedOutputError(
                        f"The answer does not fit {shape.name}: {error}", output=answer
                    ) from error
        if answer and answer != await last_answer(memory):
            await memory.update([Message.assistant(answer, cause_by=type(self).__name__)])
        if answer:
            yield answer

    async def costs_nothing(self, memory: Memory) -> bool:
        """Return True."""
        return True
