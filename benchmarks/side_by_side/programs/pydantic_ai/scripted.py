"""A model of Pydantic AI that plays a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

Turn = str | ToolCallPart | Callable[[str], str]


def call(name: str, **args: Any) -> ToolCallPart:
    """Return a tool call; data for ``output_type`` is one of ``final_result``."""
    return ToolCallPart(name, args)


class Scripted(FunctionModel):
    """Plays one turn for each request: a text, a tool call, or a function of the last text.

    Each request takes 100 tokens.
    """

    def __init__(self, turns: Iterable[Turn]) -> None:
        self.turns = iter(turns)
        super().__init__(self._answer)

    async def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = next(self.turns)
        if callable(turn):
            turn = turn(str(getattr(messages[-1].parts[-1], "content", "")))
        part = TextPart(turn) if isinstance(turn, str) else turn
        return ModelResponse([part], usage=RequestUsage(input_tokens=90, output_tokens=10))
