"""Requests of the Responses API."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from agent_brain.memories.message import PARTIAL, Message, Role
from agent_brain.serving.web.chat.threads import read_call
from agent_brain.serving.web.openai.errors import invalid
from agent_brain.serving.web.openai.messages import read_content, read_message
from agent_brain.serving.web.openai.refusals import RESPONSES, check_fields
from agent_brain.serving.web.openai.translate import Extension
from agent_brain.tools.action import Action

APPROVAL = "mcpr_"  # and the ID of the call
PICTURE = "image_generation_call"  # the type of an item


class ConversationName(BaseModel):
    """A conversation, by its ID."""

    id: str


class ResponseInput:
    """The input of a request.

    Attributes:
        messages: The messages, in order.
        approve: The calls that may run.
        deny: The calls that may not run, each with the reason.
    """

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.approve: list[str] = []
        self.deny: dict[str, str] = {}

    def add(self, item: dict[str, Any], param: str) -> None:
        """Add an item.

        Raises:
            ApiError: It cannot be read.
        """
        kind = item.get("type", "message" if "role" in item else None)
        if kind == "message":
            content = item.get("content")
            if not isinstance(content, str | list | None):
                raise invalid("The content must be a text or a list of parts", f"{param}.content")
            message = read_message(str(item.get("role")), content, param)
            if message.role is Role.ASSISTANT and item.get("status") == "incomplete":
                message = message.model_copy(update={"metadata": {PARTIAL: True}})
            self.messages.append(message)
        elif kind == "function_call":
            self._add_call(item, str(item.get("call_id") or item.get("id") or ""), param)
        elif kind == "function_call_output":
            output, call_id = item.get("output"), str(item.get("call_id") or "")
            content = output if isinstance(output, str | list) else None
            self.messages.append(read_message("tool", content, param, call_id=call_id))
        elif kind == "mcp_call":  # from the output of an earlier response
            call_id = str(item.get("id") or "")
            self._add_call(item, call_id, param)
            said = str(item.get("output") or _error_of(item.get("error")))
            self.messages.append(read_message("tool", said, param, call_id=call_id))
        elif kind == PICTURE:
            self._add_picture(item, param)
        elif kind == "mcp_approval_response":
            self._decide(item, param)
        elif kind not in ("reasoning", "mcp_approval_request", "mcp_list_tools"):
            raise invalid(f"Input items of type {kind!r} are not supported", param)

    def _add_call(self, item: dict[str, Any], call_id: str, param: str) -> None:
        name, arguments = item.get("name"), item.get("arguments", "")
        if not call_id or not isinstance(name, str) or not isinstance(arguments, str):
            raise invalid("A call needs an ID, a 'name' and 'arguments' as JSON text", param)
        calls: tuple[Action, ...] = (read_call(name, arguments, call_id),)
        said = ""
        if self.messages and self.messages[-1].role is Role.ASSISTANT:  # calls of one message
            before = self.messages.pop()
            calls, said = (*before.tool_calls, *calls), before.content
        self.messages.append(Message.assistant(said, calls))

    def _add_picture(self, item: dict[str, Any], param: str) -> None:
        """Add a picture to the message of the model before it, or as a message of its own."""
        data, form = item.get("result"), item.get("output_format") or "png"
        if not isinstance(data, str) or not data or not isinstance(form, str):
            raise invalid("A picture needs its bytes as base64 'result'", param)
        _, pictures = read_content(
            [{"type": "input_image", "image_url": f"data:image/{form};base64,{data}"}], param
        )
        if self.messages and self.messages[-1].role is Role.ASSISTANT:
            before = self.messages.pop()
            pictures = (*before.attachments, *pictures)
            self.messages.append(before.model_copy(update={"attachments": pictures}))
        else:
            self.messages.append(Message.assistant("", attachments=pictures))

    def _decide(self, item: dict[str, Any], param: str) -> None:
        request, approve, reason = (
            item.get(k) for k in ("approval_request_id", "approve", "reason")
        )
        if not isinstance(request, str) or not isinstance(approve, bool):
            raise invalid("An approval needs 'approval_request_id' and 'approve'", param)
        call_id = request.removeprefix(APPROVAL)
        if approve:
            self.approve.append(call_id)
        else:
            self.deny[call_id] = reason if isinstance(reason, str) else ""


def _error_of(error: Any) -> str:
    """Return what went wrong with a call, of which earlier versions of the API gave only a text."""
    if not isinstance(error, dict):
        return str(error or "")
    said = error.get("content") or error.get("message") or ""
    parts = [part.get("text") for part in said if isinstance(part, dict)]
    return said if isinstance(said, str) else "\n".join(map(str, filter(None, parts)))


class ResponseRequest(BaseModel):
    """The body of ``POST /v1/responses``; fields without an effect are ignored."""

    model_config = ConfigDict(extra="allow")

    model: str
    input: str | list[dict[str, Any]]
    instructions: str | None = None
    stream: bool | None = None
    store: bool | None = None
    previous_response_id: str | None = None
    conversation: str | ConversationName | None = None
    max_output_tokens: int | None = Field(None, gt=0)
    metadata: dict[str, str] | None = None
    text: dict[str, Any] | None = None
    agent_brain: Extension = Extension()

    @property
    def conversation_id(self) -> str | None:
        """The session that the request names."""
        named = self.conversation
        return named.id if isinstance(named, ConversationName) else named

    def repeated(self) -> dict[str, Any]:
        """Return the fields that the response repeats."""
        conversation = self.conversation_id
        return {
            "instructions": self.instructions,
            "max_output_tokens": self.max_output_tokens,
            "metadata": self.metadata or {},
            "previous_response_id": self.previous_response_id,
            "conversation": None if conversation is None else {"id": conversation},
            "store": self.store is not False,
            "text": {"format": self.format or {"type": "text"}},
        }

    @property
    def format(self) -> Any:
        """The format of the answer; None for text."""
        return None if self.text is None else self.text.get("format")

    def check(self) -> None:
        """Refuse what would silently not be honoured.

        Raises:
            ApiError: A field is refused.
        """
        check_fields(self.model_extra or {}, RESPONSES)
        continues = self.previous_response_id is not None or self.conversation is not None
        if self.previous_response_id is not None and self.conversation is not None:
            raise invalid(
                "Give either previous_response_id or conversation", "previous_response_id"
            )
        if continues and self.store is False:
            raise invalid("A conversation that is continued is stored: omit store", "store")

    def read_input(self) -> ResponseInput:
        """Return the input.

        Raises:
            ApiError: It cannot be read.
        """
        found = ResponseInput()
        if isinstance(self.input, str):
            found.messages.append(Message.user(self.input))
            return found
        for index, item in enumerate(self.input):
            found.add(item, f"input[{index}]")
        if not found.messages and not (found.approve or found.deny):
            raise invalid("The input is empty", "input")
        return found
