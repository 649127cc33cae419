"""What a model was asked, as JSON values that are the same whenever the same is asked."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from agent_brain.memories.message import Attachment, Message
from agent_brain.states.models.interception import RealCall
from agent_brain.testing.cassettes.scrub import Scrubber
from agent_brain.tools.base import BaseTool
from agent_brain.tools.text import clean_json


def request_to_data(call: RealCall, scrubber: Scrubber) -> dict[str, Any]:
    """The request, without secrets, ids and times, so that the next run asks for the same.

    Calls of tools are numbered in the order in which the conversation mentions them; attachments
    are told by their digest.
    """
    numbers: dict[str, str] = {}
    request = {
        "model": call.llm.model,
        "messages": [_message(message, numbers) for message in call.messages],
        "tools": [_tool(tool) for tool in call.tools],
        "output_schema": _schema(call.output_type),
    }
    return dict(scrubber.data(clean_json(request)))


def _message(message: Message, numbers: dict[str, str]) -> dict[str, Any]:
    data: dict[str, Any] = {"role": message.role.value, "content": message.content}
    if message.name is not None:
        data["name"] = message.name
    if message.tool_calls:
        data["tool_calls"] = [
            {
                "id": _number(action.id, numbers),
                "name": action.name,
                "args": action.args,
                **({} if action.unparsed is None else {"unparsed": action.unparsed}),
            }
            for action in message.tool_calls
        ]
    if message.tool_call_id is not None:
        data["tool_call_id"] = _number(message.tool_call_id, numbers)
    if message.is_error:
        data["is_error"] = True
    if message.attachments:
        data["attachments"] = [_attachment(attachment) for attachment in message.attachments]
    return data


def _number(call_id: str, numbers: dict[str, str]) -> str:
    return numbers.setdefault(call_id, f"call {len(numbers) + 1}")


def _attachment(attachment: Attachment) -> dict[str, Any]:
    data: dict[str, Any] = {"media_type": attachment.media_type}
    source = attachment.data or attachment.url or ""
    if attachment.data is None and not re.match("data:", source):
        data["url"] = source
    else:
        data["sha256"] = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
    if attachment.name is not None:
        data["name"] = attachment.name
    return data


def _tool(tool: BaseTool) -> dict[str, Any]:
    return {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.input_schema,
    }


def _schema(output_type: type[BaseModel] | None) -> dict[str, Any] | None:
    return None if output_type is None else output_type.model_json_schema()


def described(messages: Sequence[dict[str, Any]]) -> str:
    """The last message of a request in a few words, to tell requests apart."""
    if not messages:
        return "no messages"
    last = messages[-1]
    words = " ".join(str(last.get("content", "")).split())
    return f"{last.get('role')}: {words[:77] + '…' if len(words) > 78 else words}"
