"""A state that answers with the result of earlier states."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Literal

from pydantic import ValidationError

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states.answering import last_answer
from agent_brain.states.base import State
from agent_brain.states.errors import MalformedOutputError
from agent_brain.states.output_types import OutputType, shape_of
from agent_brain.states.work import StreamItem


class TellState(State):
    """End the turn with an answer from the memory; no model is called.

    Args:
        find: Returns the answer from the memory.
        output_type: A pydantic model, or any other type that pydantic validates, that the answer is
            the JSON of; ``Result.output`` is the object.

    Raises:
        StateDefinitionError: The output type cannot be requested from a model.
        MalformedOutputError: While running: the answer is not of that type.
    """

    def __init__(
        self, find: Callable[[Memory], str], *, output_type: OutputType | None = None
    ) -> None:
        if output_type is not None:
            shape_of(output_type)  # or it is refused
        self.find = find
        self.output_type = output_type

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Stream the answer; record it unless it was recorded last."""
        answer = self.find(memory)
        if answer and self.output_type is not None:
            shape = shape_of(self.output_type)
            try:
                memory.control.output = shape.read(answer)
            except ValidationError as error:
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

    async def next_state(self, memory: Memory) -> Literal[None]:
        """Return None, the end."""
        return None
