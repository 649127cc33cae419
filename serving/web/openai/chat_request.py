"""Requests of Chat Completions."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agent_brain.memories.message import Message
from agent_brain.serving.web.chat.threads import read_call
from agent_brain.serving.web.openai.messages import (
    Conversation,
    conversation,
    read_message,
)
from agent_brain.serving.web.openai.refusals import CHAT, check_fields
from agent_brain.serving.web.openai.translate import Extension


class CalledFunction(BaseModel):
    """The function of a tool call."""

    name: str
    arguments: str = ""


class ChatToolCall(BaseModel):
    """A tool call of an earlier assistant message."""

    id: str = Field(min_length=1)
    function: CalledFunction


class ChatMessage(BaseModel):
    """A message."""

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: list[ChatToolCall] | None = None
    tool_call_id: str | None = None

    def read(self, param: str) -> Message:
        """Return the message as ours.

        Raises:
            ApiError: It cannot be read.
        """
        calls = [
            read_call(call.function.name, call.function.arguments, call.id)
            for call in self.tool_calls or ()
        ]
        return read_message(
            self.role, self.content, param, name=self.name, calls=calls, call_id=self.tool_call_id
        )


class StreamOptions(BaseModel):
    """Options of a stream."""

    include_usage: bool | None = None


class ChatRequest(BaseModel):
    """The body of ``POST /v1/chat/completions``; fields without an effect are ignored."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, gt=0)
    max_completion_tokens: int | None = Field(None, gt=0)
    response_format: dict[str, Any] | None = None
    agent_brain: Extension = Extension()

    def check(self) -> None:
        """Refuse fields that would silently not be honoured.

        Raises:
            ApiError: A field is refused.
        """
        check_fields(self.model_extra or {}, CHAT)

    def conversation(self) -> Conversation:
        """Return the messages.

        Raises:
            ApiError: They cannot be read, or the last one is not the user's.
        """
        read = [each.read(f"messages[{index}]") for index, each in enumerate(self.messages)]
        return conversation(read, "messages")
