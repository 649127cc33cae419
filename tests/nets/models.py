"""Models shared by the tests of the built-in nets."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import anyio
from pydantic import BaseModel

from agent_brain.memories import Message, Role
from agent_brain.states import LLM, Usage
from agent_brain.testing import ModelCall
from agent_brain.tools import Action, BaseTool

Reply = Callable[[ModelCall], Any]


class FunctionLLM(LLM):
    """Answers each call by a function of it: text, data, an action, a list of these, or an error.

    Branches run at once, so a list of turns would be played in no certain order; a function looks
    at what it is asked. Every call costs one token each way.
    """

    model = "function"

    def __init__(self, reply: Reply, *, native: bool = True) -> None:
        self.reply = reply
        self.supports_tools = native
        self.calls: list[ModelCall] = []

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[str | Action | Usage]:
        call = ModelCall(list(messages), tuple(tools), output_type)
        self.calls.append(call)
        await anyio.lowlevel.checkpoint()
        said = self.reply(call)
        for piece in said if isinstance(said, list) else [said]:
            if isinstance(piece, Exception):
                raise piece
            is_data = isinstance(piece, BaseModel) and not isinstance(piece, Action)
            yield piece.model_dump_json() if is_data else piece
        yield Usage(1, 1, model=self.model)


def text_of(messages: Sequence[Message]) -> str:
    """All that a model saw, as one text."""
    return "\n".join(message.content for message in messages)


def last_user(messages: Sequence[Message]) -> str:
    """The last thing that the model was asked."""
    return [message.content for message in messages if message.role is Role.USER][-1]
