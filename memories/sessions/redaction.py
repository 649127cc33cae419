"""Removes texts from entries that are no session of a memory: stored events, titles."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry, from_line, to_line
from agent_brain.memories.sessions.copies import read_entries

FORGOTTEN = "[forgotten]"


async def redact(journal: Journal, key: str, parts: Iterable[str]) -> bool:
    """Replace texts in the entries under a key, in one step; return whether there were any.

    Args:
        journal: The journal. One that cannot replace entries loses all of them.
        key: The key.
        parts: The texts, in lower case.
    """
    entries = await read_entries(journal, key)
    changed = [*_redacted(entries, [*parts])]
    if changed == entries:
        return False
    if journal.has_exchange:
        await journal.exchange([key], {key: changed})
    else:
        await journal.delete(key)
    return True


def _redacted(entries: Iterable[Entry], parts: list[str]) -> Iterator[Entry]:
    copies = [replace(made, data=from_line(to_line(made.data))) for made in entries]
    pieces: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for made in copies:
        for event in _pieces(made.data):
            source = (*event.get("path", ()), event.get("response_id"), event.get("thought"))
            pieces.setdefault(source, []).append(event)
    for of_one_text in pieces.values():
        texts = _hide([piece["text"] for piece in of_one_text], parts)
        for piece, text in zip(of_one_text, texts, strict=True):
            piece["text"] = text
    for made in copies:
        yield replace(made, data=_without(made.data, parts))


def _pieces(data: JsonValue) -> Iterator[dict[str, Any]]:
    """Yield the pieces of a text that is streamed, which together may contain what none does."""
    if isinstance(data, list):
        for item in data:
            yield from _pieces(item)
    elif isinstance(data, dict):
        if data.get("kind") == "text_delta" and isinstance(data.get("text"), str):
            yield data
        for item in data.values():
            yield from _pieces(item)


def _without(value: Any, parts: list[str]) -> Any:
    if isinstance(value, str):
        return _hide([value], parts)[0]
    if isinstance(value, Mapping):
        return {_without(name, parts): _without(item, parts) for name, item in value.items()}
    if isinstance(value, list):
        return [_without(item, parts) for item in value]
    return value


def _hide(texts: list[str], parts: list[str]) -> list[str]:
    """Return the pieces of one text without ``parts``, also where they are cut across pieces."""
    whole = "".join(texts)
    if not any(part in whole.casefold() for part in parts):
        return texts
    hidden, found = list(whole), re.compile("|".join(map(re.escape, parts)), re.IGNORECASE)
    for match in found.finditer(whole):
        hidden[match.start() : match.end()] = [FORGOTTEN, *[""] * (len(match[0]) - 1)]
    if any(part in "".join(hidden).casefold() for part in parts):  # other letters, the same text
        hidden = [FORGOTTEN, *[""] * (len(whole) - 1)]
    kept, at = [], 0
    for text in texts:
        kept.append("".join(hidden[at : at + len(text)]))
        at += len(text)
    return kept
