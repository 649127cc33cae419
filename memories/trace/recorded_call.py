"""A recorded call of a model or a tool: the one form of it in traces, cassettes and tests."""

from __future__ import annotations

import base64
import hashlib
from datetime import datetime
from functools import reduce
from typing import Any

from pydantic import BaseModel, Field

from agent_brain.memories.message import Attachment, Message
from agent_brain.memories.store.expiry import utc_now
from agent_brain.tools.action import Action

DIGEST = "urn:sha256:"
"""What the URL of an attachment begins with whose bytes are not stored with the call."""


class RecordedCall(BaseModel, frozen=True, extra="forbid", defer_build=True):
    """A call of a model or a tool as it was made, without secrets.

    Attributes:
        number: Identifies it in the session, and grows from call to call. In a journal it compares
            with the ``number`` of a :class:`SavedStep`: the call was made before the steps with
            larger numbers.
        run_id: The run.
        step: The number of the step in the run, from 0, as in events.
        state: The name of the state.
        path: The subnets and branches around the state, outermost first.
        part: Identifies the part of the run: from its start, or from a ``resume``, to a stop.
        branch: The branch of the run whose memory the state used; empty for the run's own memory.
        move: How many steps the run had completed on that memory.
        response_id: The ID of the response, as in events.
        time: When the call began (aware, UTC).
        seconds: How long it took.
        model: The name of the model; empty for a call of a tool.
        params: Its parameters.
        messages: The messages that it was sent, system prompt included. The bytes of an attachment
            are those of the message in the memory; where that is gone, the URL of the attachment
            is ``urn:sha256:…``. Of a call of a tool: its result, as a message.
        tools: The tools that it was offered: name, description and input schema.
        output_schema: The JSON Schema of the data that it was asked for; None if it was text.
        request_hash: The SHA-256 of the request: equal requests have the same, whatever the IDs and
            times of their messages.
        response: What it returned, in order: dicts of one field, ``"text"``, ``"thought"``,
            ``"action"`` (a tool call), ``"finish"``, ``"usage"`` or, of an embedding,
            ``"vectors"``.
        error: Type and message of the error that it failed with; None if it did not.
        attempts: The attempts, if there were several: the number, the model, the seconds and the
            error of each.
        cut: Whether the call was cut off: the run was cancelled, or the response was not read to
            its end.
        purpose: What the memory of the run made the call for, such as ``"summary"``; None for a
            call of a state. The messages of an ``"embedding"`` are its texts.
        action: The call of a tool, as the model asked for it; None for a call of a model.
    """

    number: int = 0
    run_id: str = ""
    step: int = 0
    state: str | None = None
    path: tuple[str, ...] = ()
    part: str = ""
    branch: str = ""
    move: int = 0
    response_id: str = ""
    time: datetime = Field(default_factory=utc_now)
    seconds: float = 0.0
    model: str = ""
    params: dict[str, Any] = Field(default_factory=dict)
    messages: tuple[Message, ...] = ()
    tools: tuple[dict[str, Any], ...] = ()
    output_schema: dict[str, Any] | None = None
    request_hash: str = ""
    response: tuple[dict[str, Any], ...] = ()
    error: dict[str, Any] | None = None
    attempts: tuple[dict[str, Any], ...] = ()
    cut: bool = False
    purpose: str | None = None
    action: Action | None = None

    @property
    def text(self) -> str:
        """The text of the response, without thoughts."""
        return "".join(self._pieces("text"))

    @property
    def thoughts(self) -> str:
        """The thoughts of the response."""
        return "".join(self._pieces("thought"))

    @property
    def actions(self) -> list[Action]:
        """The tool calls of the response."""
        return [Action.model_validate(action) for action in self._pieces("action")]

    @property
    def finish_reason(self) -> str | None:
        """Why the response ended, if the provider said so."""
        return next((finish["reason"] for finish in self._pieces("finish")), None)

    @property
    def usage(self) -> dict[str, Any] | None:
        """Tokens and cost, as the fields of :class:`Usage`; None if they are unknown."""
        found: list[dict[str, Any]] = self._pieces("usage")
        return reduce(_sum, found[1:], {**found[0]}) if found else None

    def _pieces(self, field: str) -> list[Any]:
        return [piece[field] for piece in self.response if field in piece]

    def to_dict(self) -> dict[str, Any]:
        """Return a call of a model as JSON values."""
        data = self.model_dump(mode="json", exclude={"messages", "action"})
        return data | {
            "messages": [m.model_dump(mode="json", exclude_defaults=True) for m in self.messages],
            "response": [piece for piece in data["response"] if "vectors" not in piece],
            "text": self.text,
            "thoughts": self.thoughts,
            "actions": [action.model_dump(mode="json") for action in self.actions],
            "finish_reason": self.finish_reason,
            "usage": self.usage,
        }


def _sum(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """Return the usage of two requests together."""
    total: dict[str, Any] = {}
    for name, value in one.items():
        more = other.get(name)
        if name == "model":
            total[name] = value if value == more else None
        elif name == "estimated":
            total[name] = bool(value or more)
        else:
            total[name] = None if value is None or more is None else value + more
    return total


def digest_of(attachment: Attachment) -> str | None:
    """Return the SHA-256 of an attachment's bytes; None if it is given by an address."""
    source = attachment.data or attachment.url or ""
    if source.startswith(DIGEST):
        return source.removeprefix(DIGEST)
    if attachment.data is None and not source.startswith("data:"):
        return None
    return hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()


def without_bytes(message: Message) -> Message:
    """Return ``message`` with digests in place of the bytes of its attachments."""
    digests = [digest_of(attachment) for attachment in message.attachments]
    if not any(digests):
        return message
    referred = tuple(
        attachment.model_copy(update={"url": f"{DIGEST}{digest}", "data": None})
        if digest
        else attachment
        for attachment, digest in zip(message.attachments, digests, strict=True)
    )
    return message.model_copy(update={"attachments": referred})


def with_bytes(message: Message, stored: Message | None) -> Message:
    """Return ``message`` with the attachments of the ``stored`` message that it refers to."""
    if stored is None or not message.attachments:
        return message
    known = {digest_of(attachment): attachment for attachment in stored.attachments}
    found = tuple(known.get(digest_of(a), a) for a in message.attachments)
    return message.model_copy(update={"attachments": found})


def pack_vectors(vectors: Any) -> list[dict[str, Any]]:
    """Return a piece of a response with vectors as text; none if they are not numbers."""
    import numpy as np

    try:
        packed = [base64.b64encode(np.asarray(v, "<f4").tobytes()).decode() for v in vectors]
    except (TypeError, ValueError):  # the memory says what is wrong
        return []
    return [{"vectors": packed}]


def unpack_vector(packed: str) -> Any:
    """Return a vector that :func:`pack_vectors` has made text of."""
    import numpy as np

    return np.frombuffer(base64.b64decode(packed), "<f4")
