"""Keeping tests away from real models, and letting cassettes handle models of your own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager

from pydantic import BaseModel

from agent_brain.common.errors import AgentBrainError
from agent_brain.memories.message import Message
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.models import interception
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.work import closing
from agent_brain.tools.base import BaseTool


class RealModelError(AgentBrainError, AssertionError):
    """Raised when code under test is about to call a real model."""


@contextmanager
def no_real_models() -> Iterator[None]:
    """Raise :class:`RealModelError` when a real model is called, before anything is sent.

    It applies to all tasks and threads of the process, so a fixture may enter it.
    """

    def refuse(model: str) -> None:
        raise RealModelError(
            f"The real model {model!r} was called inside no_real_models(): give the code under "
            "test a ScriptedLLM"
        )

    with interception.before_real_calls(refuse):
        yield


class CassetteLLM(LLM):
    """A wrapper that lets cassettes and ``no_real_models`` handle a model of your own class.

    :class:`~agent_brain.LiteLLM` needs no wrapper. Outside a cassette it behaves like the model.

    Args:
        llm: The model.
    """

    def __init__(self, llm: LLM | str) -> None:
        self.llm = as_llm(llm)
        self.model = self.llm.model
        self.rule_based = self.llm.rule_based

    @property
    def supports_tools(self) -> bool:  # type: ignore[override]  # a model may find out late
        """Whether the model calls tools natively."""
        return self.llm.supports_tools

    @property
    def sends_schema(self) -> bool:  # type: ignore[override]  # a model may find out late
        """Whether the model sends the output schema by itself."""
        return self.llm.sends_schema

    async def open(self) -> None:
        """Open the model, unless a cassette answers for it."""
        if not interception.intercepted():
            await self.llm.open()

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """Stream the model's answer, or the one on the cassette."""

        async def send(_: ModelRequest) -> AsyncIterator[Piece]:
            interception.about_to_call(self.model)
            stream = self.llm.stream(messages, tools=tools, output_type=output_type)
            async with closing(stream) as pieces:
                async for piece in pieces:
                    yield piece

        request = ModelRequest(
            llm=self.llm, messages=messages, tools=tools, output_type=output_type
        )
        async with closing(interception.real_call(request, send)) as pieces:
            async for piece in pieces:
                yield piece

    async def aclose(self) -> None:
        """Close the model."""
        await self.llm.aclose()
