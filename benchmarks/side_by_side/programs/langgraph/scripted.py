"""A chat model of LangChain that plays a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import PrivateAttr

Turn = str | AIMessage | Callable[[str], str]
USAGE = {"input_tokens": 90, "output_tokens": 10, "total_tokens": 100}


def call(name: str, **args: Any) -> AIMessage:
    """Return a tool call; data is one of a tool with the name of its type."""
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": name}])


class Scripted(BaseChatModel):
    """Plays one turn for each request: a text, a tool call, or a function of the last text.

    Each request takes 100 tokens.
    """

    _turns: Iterator[Turn] = PrivateAttr()

    def __init__(self, turns: Iterable[Turn]) -> None:
        super().__init__()
        self._turns = iter(turns)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        turn = next(self._turns)
        if callable(turn):
            turn = turn(messages[-1].text)
        said = AIMessage(turn) if isinstance(turn, str) else turn
        counted = said.model_copy(
            update={"usage_metadata": USAGE, "response_metadata": {"model_name": "scripted"}}
        )
        return ChatResult(generations=[ChatGeneration(message=counted)])
