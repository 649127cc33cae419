"""The model port: what a state needs of a language model, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool


class Thought(str):
    """A piece of text that is the model's reasoning, not meant for the reader."""

    __slots__ = ()


class LLM(ABC):
    """A language model. One object serves any number of calls at once.

    Attributes:
        model: What the model is called, for errors and usage.
        supports_tools: It calls tools natively: it takes ``tools`` and yields actions.
    """

    model: str = "unnamed"
    supports_tools: bool = True

    @abstractmethod
    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[str | Action | Usage]:
        """One model call, as an async generator.

        Yields text as it comes (:class:`Thought` for reasoning), each action when it is complete,
        and one :class:`Usage` at the end if it is known. Closing the generator ends the call.

        Args:
            messages: What the model sees, in order.
            tools: What it may call.
            output_type: Shape that the text is to have as JSON; a wish, so validate the text.

        Raises:
            LLMError: A subclass that says what went wrong.
        """

    async def open(self) -> None:
        """Get ready to tell what the model supports; states call it first. Default: nothing."""

    async def aclose(self) -> None:
        """Give back connections; the model may be used again afterwards. Default: nothing."""

    def __deepcopy__(self, memo: dict[int, Any]) -> LLM:
        return self
