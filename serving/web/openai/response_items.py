"""The output items of a response, and the events of each."""

from __future__ import annotations

from typing import Any, TypeAlias

from agent_brain.common.ids import new_id
from agent_brain.common.text import to_compact_json
from agent_brain.memories.message import Attachment, Message
from agent_brain.serving.web.openai.response_request import APPROVAL, PICTURE
from agent_brain.tools.action import Action

ResponseEvent: TypeAlias = dict[str, Any]
Item: TypeAlias = dict[str, Any]


class TextItem:
    """A message, or reasoning, while its text arrives.

    Args:
        index: Its place in the output.
        thought: Whether it is reasoning.
    """

    def __init__(self, index: int, *, thought: bool) -> None:
        self._index = index
        self._thought = thought
        self._id = new_id("rs" if thought else "msg")
        self._name = "response.reasoning_text" if thought else "response.output_text"
        self._pieces: list[str] = []
        self._annotations: list[Item] = []

    @property
    def length(self) -> int:
        """The number of characters so far."""
        return sum(map(len, self._pieces))

    def begin(self) -> list[ResponseEvent]:
        """Return the events of an item that begins."""
        item = self._item("in_progress", [])
        return [
            {"type": "response.output_item.added", "output_index": self._index, "item": item},
            {"type": "response.content_part.added", **self._place(), "part": self._part("")},
        ]

    def say(self, text: str) -> ResponseEvent:
        """Return the event of a piece of text."""
        self._pieces.append(text)
        event = {"type": f"{self._name}.delta", **self._place(), "delta": text}
        return event if self._thought else {**event, "logprobs": []}

    def annotate(self, annotations: list[Item]) -> list[ResponseEvent]:
        """Return the events of annotations of the text."""
        self._annotations = annotations
        added = {"type": f"{self._name}.annotation.added", **self._place()}
        return [
            {**added, "annotation_index": index, "annotation": each}
            for index, each in enumerate(annotations)
        ]

    def end(self, status: str) -> tuple[Item, list[ResponseEvent]]:
        """Return the item, and the events of its end."""
        text = "".join(self._pieces)
        done = {"type": f"{self._name}.done", **self._place(), "text": text}
        if not self._thought:
            done["logprobs"] = []
        part = self._part(text)
        item = self._item(status, [part])
        return item, [
            done,
            {"type": "response.content_part.done", **self._place(), "part": part},
            {"type": "response.output_item.done", "output_index": self._index, "item": item},
        ]

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._id, "output_index": self._index, "content_index": 0}

    def _part(self, text: str) -> dict[str, Any]:
        if self._thought:
            return {"type": "reasoning_text", "text": text}
        part = {"type": "output_text", "text": text, "logprobs": []}
        return {**part, "annotations": self._annotations}

    def _item(self, status: str, content: list[dict[str, Any]]) -> Item:
        item = {"id": self._id, "status": status, "content": content}
        if self._thought:
            return {**item, "type": "reasoning", "summary": []}
        return {**item, "type": "message", "role": "assistant"}


class CallItem:
    """A tool call of the agent, in the form of a call to an MCP server.

    Args:
        index: Its place in the output.
        action: The call.
        label: The name of the server.
        approved: Whether a person approved the call.
    """

    def __init__(self, index: int, action: Action, label: str, *, approved: bool) -> None:
        self._index = index
        self._id = f"mcp_{action.id}"
        self._arguments = to_compact_json(action.args)
        self._fields = {
            "type": "mcp_call",
            "name": action.name,
            "server_label": label,
            "approval_request_id": f"{APPROVAL}{action.id}" if approved else None,
        }

    def begin(self) -> list[ResponseEvent]:
        """Return the events of a call that begins."""
        item = self._item("in_progress", arguments="")
        added = {"type": "response.output_item.added", "output_index": self._index, "item": item}
        return [
            added,
            self._event("response.mcp_call.in_progress"),
            self._event("response.mcp_call_arguments.delta", delta=self._arguments),
            self._event("response.mcp_call_arguments.done", arguments=self._arguments),
        ]

    def end(self, result: Message | None) -> tuple[Item, list[ResponseEvent]]:
        """Return the item, and the events of its end; without a result if it was cut off."""
        if result is None:
            item, kind = self._item("incomplete"), "failed"
        elif result.is_error:
            said = [{"type": "text", "text": result.content}]
            error: Item = {"type": "mcp_tool_execution_error", "content": said}
            item, kind = self._item("failed", error=error), "failed"
        else:
            item, kind = self._item("completed", output=result.content), "completed"
        return item, [
            self._event(f"response.mcp_call.{kind}"),
            {"type": "response.output_item.done", "output_index": self._index, "item": item},
        ]

    def _event(self, kind: str, **fields: str) -> ResponseEvent:
        return {"type": kind, "item_id": self._id, "output_index": self._index, **fields}

    def _item(self, status: str, **about: Any) -> Item:
        item: Item = {"id": self._id, "status": status, "arguments": self._arguments}
        return {**item, **self._fields, "output": None, "error": None, **about}


def approval_item(action: Action, label: str) -> Item:
    """Return the item that asks a person to approve a call."""
    return {
        "id": f"{APPROVAL}{action.id}",
        "type": "mcp_approval_request",
        "name": action.name,
        "arguments": to_compact_json(action.args),
        "server_label": label,
    }


def picture_data(picture: Attachment) -> str | None:
    """Return the bytes of a picture, base64-encoded; None if it has an address only."""
    return picture.data or (picture.url or "").partition(";base64,")[2] or None


def picture_item(index: int, media_type: str, data: str) -> tuple[Item, list[ResponseEvent]]:
    """Return the item of a picture that a model has made, and its events.

    Args:
        index: Its place in the output.
        media_type: Its MIME type.
        data: Its bytes, base64-encoded.
    """
    begun: Item = {"id": new_id("ig"), "type": PICTURE, "status": "in_progress", "result": None}
    form = media_type.partition("/")[2]
    item = {**begun, "status": "completed", "result": data, "output_format": form}
    place = {"item_id": begun["id"], "output_index": index}
    return item, [
        {"type": "response.output_item.added", "output_index": index, "item": begun},
        {"type": f"response.{PICTURE}.in_progress", **place},
        {"type": f"response.{PICTURE}.completed", **place},
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]
