"""The fields of a message as its factories take them, with their types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from agent_brain.memories.message import Attachment


class MessageFields(TypedDict, total=False):
    """Fields that every message may have; documented in :class:`Message`."""

    id: str
    name: str | None
    is_error: bool
    attachments: Attachment | Iterable[Attachment]
    created_at: datetime
    occurred_at: datetime | None
    expires_at: datetime | None
    cause_by: str | type | None
    sent_from: str | type | None
    send_to: str | Iterable[str]
    pinned: bool
    tags: str | Iterable[str]
    metadata: Mapping[str, Any]
