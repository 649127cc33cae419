"""Removes texts from entries that are not of a memory's session: stored events, titles."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from pydantic import JsonValue
from pydantic_core import from_json

from agent_brain.common.text import has_folded
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry, from_line, to_line
from agent_brain.memories.sessions.copies import read_entries
from agent_brain.memories.store.erasure import Erasure

FORGOTTEN = "[forgotten]"


async def redact(journal: Journal, key: str, parts: Iterable[str]) -> bool:
    """Replace texts in the entries under a key, in one step; return whether there were any.

    Args:
        journal: The journal. One that cannot replace entries loses all of them.
        key: The key.
        parts: The texts, folded.
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
    streams: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for made in copies:
        for event in _pieces(made.data):
            known = ("kind", "response_id", "thought", "id")  # the last one of a call
            source = (*event.get("path", ()), *map(event.get, known))
            streams.setdefault(source, []).append(event)
    for events in streams.values():
        if events[0]["kind"] == "partial_output":
            _hide_growing(events, parts)
        else:
            _hide_pieces(events, parts)
    for made in copies:
        yield replace(made, data=_without(made.data, parts))


def _pieces(data: JsonValue) -> Iterator[dict[str, Any]]:
    """Yield the events of streams: several together may contain what none does."""
    if isinstance(data, list):
        for item in data:
            yield from _pieces(item)
    elif isinstance(data, dict):
        kind, is_text = data.get("kind"), isinstance(data.get("text"), str)
        if (is_text and kind in ("text_delta", "action_delta")) or kind == "partial_output":
            yield data
        for item in data.values():
            yield from _pieces(item)


def _hide_pieces(events: list[dict[str, Any]], parts: list[str]) -> None:
    """Hide texts in the pieces of one, which may be JSON with escapes."""
    texts = _hide([event["text"] for event in events], parts)
    with suppress(ValueError, TypeError):  # no JSON; half a character
        if _quotes(parts)(from_json("".join(texts), allow_partial="trailing-strings")):
            texts = [FORGOTTEN, *[""] * (len(texts) - 1)]
    for event, text in zip(events, texts, strict=True):
        event["text"] = text


def _hide_growing(events: list[dict[str, Any]], parts: list[str]) -> None:
    """Hide texts in an object that grows; what came before has the beginnings of them."""
    if any(map(_quotes(parts), (event.get("output") for event in events))):
        for event in events:
            event["output"] = events[-1].get("output")


def _quotes(parts: list[str]) -> Callable[[JsonValue], bool]:
    """Return a function that says whether a JSON value has one of ``parts``."""
    return Erasure(parts=frozenset(parts)).finder()


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
    if not any(has_folded(whole, part) for part in parts):
        return texts
    several = (r"\s+".join(map(re.escape, part.split())) for part in parts)
    hidden, found = list(whole), re.compile("|".join(several), re.IGNORECASE)
    for match in found.finditer(whole):
        hidden[match.start() : match.end()] = [FORGOTTEN, *[""] * (len(match[0]) - 1)]
    if any(has_folded("".join(hidden), part) for part in parts):  # other letters, the same text
        hidden = [FORGOTTEN, *[""] * (len(whole) - 1)]
    kept, at = [], 0
    for text in texts:
        kept.append("".join(hidden[at : at + len(text)]))
        at += len(text)
    return kept
