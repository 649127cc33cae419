"""Messages, facts and extractors for the tests of what is known about a user."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from agent_brain.memories import Batch, Cited, Draft, Message

START = datetime(2025, 1, 1, tzinfo=UTC)


def day(number: float) -> datetime:
    """A moment, so many days after the first of January 2025."""
    return START + timedelta(days=number)


def said(text: str, at: float = 0, **fields: object) -> Message:
    """A message of the user on a day."""
    return Message.user(text, created_at=day(at), **fields)  # type: ignore[arg-type]


RULES: list[tuple[str, Callable[[re.Match[str]], dict[str, object]]]] = [
    (r"I (?:live in|moved to) (\w+)", lambda m: {"text": f"Lives in {m[1]}", "slot": "home"}),
    (r"I (?:love|like) (\w+)", lambda m: {"text": f"Likes {m[1]}"}),
    (r"I promise to ([\w ]+)", lambda m: {"text": f"Promised to {m[1]}", "kind": "event"}),
    (r"[Aa]lways (\w[\w ]+)", lambda m: {"text": f"Always {m[1]}", "kind": "instruction"}),
    (r"Lives in (\w+)", lambda m: {"text": f"Lives in {m[1]} now", "slot": "home"}),
    (r"user lives in (\w+)", lambda m: {"text": f"Lives in {m[1]}", "slot": "home"}),
]


def by_rules(batch: Batch) -> list[Draft]:
    """An extractor that knows some sentences, whoever says them."""
    return [
        Draft(sources=(Cited(message=message.id, quote=found[0]),), **fields(found))  # type: ignore[arg-type]
        for message in batch.messages
        for pattern, fields in RULES
        for found in re.finditer(pattern, message.content)
    ]
