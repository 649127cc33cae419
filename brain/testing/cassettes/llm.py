"""Any model, put behind cassettes."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import partial

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.aclosing import closing
from agent_brain.states.models.interception import (
    Pieces,
    RealCall,
    about_to_call,
    intercepted,
    real_call,
)
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.states.models.resolve import as_llm
from agent_brain.tools.base import BaseTool


class CassetteLLM(LLM):
    """A model of your own class that cassettes record and replay, and ``no_real_models`` forbids.

    :class:`~agent_brain.LiteLLM` needs no wrapping. Outside of a cassette it is the model itself.

    Args:
        llm: The model.
    """

    def __init__(self, llm: LLM | str) -> None:
        self.llm = as_llm(llm)
        self.model = self.llm.model

    @property
    def supports_tools(self) -> bool:  # type: ignore[override]  # a model may find out late
        """As the model."""
        return self.llm.supports_tools

    @property
    def sends_schema(self) -> bool:  # type: ignore[override]  # a model may find out late
        """As the model."""
        return self.llm.sends_schema

    async def open(self) -> None:
        """Get the model ready, unless a cassette stands in for it."""
        if not intercepted():
            await self.llm.open()

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """As the model, or as the cassette has it."""
        send = partial(self._send, messages, tools, output_type)
        call = RealCall(self.llm, messages, tools, output_type, send)
        async with closing(real_call(call)) as pieces:
            async for piece in pieces:
                yield piece

    async def _send(
        self,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        output_type: type[BaseModel] | None,
    ) -> Pieces:
        about_to_call(self.model)
        stream = self.llm.stream(messages, tools=tools, output_type=output_type)
        async with closing(stream) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        """Close the model."""
        await self.llm.aclose()
