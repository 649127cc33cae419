"""Forgets in all sessions of a tenant, and in what a server and a queue store of them."""

from __future__ import annotations

import re
from collections.abc import (
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from typing import Any, TypeAlias, Unpack, cast

from pydantic import JsonValue
from pydantic_core import from_json

from agent_brain.common.aio import maybe_await
from agent_brain.common.text import count_tokens, has_folded
from agent_brain.memories.base import Memory
from agent_brain.memories.branches.forgetting import stored_in
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry, from_line, to_line
from agent_brain.memories.sessions.copies import read_entries
from agent_brain.memories.sessions.listing import sessions_of, tenant_prefix
from agent_brain.memories.store.erasure import Erasure
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.filters import ForgetOptions, forgettable
from agent_brain.memories.store.session import USER_SESSION, listed_prefix, session_key
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.views.base import Everything
from agent_brain.memories.views.calls import Calls
from agent_brain.memories.views.summary import Summarized

FORGOTTEN = "[forgotten]"
MakeMemory: TypeAlias = Callable[..., Memory | Awaitable[Memory]]


async def forget_in_sessions(
    journal: Journal,
    *,
    tenant: str | None,
    memory: MakeMemory | None = None,
    without: Collection[str] = (),
    **which: Unpack[ForgetOptions],
) -> int:
    """Forget in every session of a tenant, as :meth:`StoredMemory.forget` does in one.

    Forks are sessions too, and so are the long-term memories in the journal; their branches,
    history and recorded calls are reached with them. With ``text`` alone, the stored events of a
    queue's runs, the titles of a server's sessions and what is known about the user
    (:class:`UserMemory`) lose the text too::

        await forget_in_sessions(journal, tenant="ann", text="4111 1111 1111 1111")

    Not reached: other journals and other tenants, to which a session was copied; exports, logs,
    backups; a session that a process runs, which is named in the error.

    Args:
        journal: The journal.
        tenant: Whose sessions; None for those of nobody.
        memory: Makes the memory of a session from ``journal``, ``session`` and ``tenant``. Give the
            kind that the sessions have if it stores something elsewhere, such as a
            :class:`VectorMemory` its vectors. Default: one that reads any session.
        without: Names of sessions to leave as they are.
        **which: As for :meth:`StoredMemory.forget`.

    Returns:
        How many messages were forgotten, partners included.

    Raises:
        MemoryUseError: Nothing says which messages.
        JournalError: Some sessions could not be changed, as they are in use or the journal fails;
            what is to be forgotten in the others is. Call it again.
    """
    from agent_brain.memories.user.erasing import forget_known

    choice = forgettable(None, which, utc_now())
    make = memory or _any_memory
    names = await sessions_of(journal, tenant)
    count, failed = 0, dict[str, JournalError]()
    for session in names:
        if session in without:
            continue
        try:
            made = make(journal=journal, session=session, tenant=tenant)
            async with AsyncExitStack() as stack:
                opened = await stack.enter_async_context(await maybe_await(made))
                for stored in stored_in(opened):  # keeps runs away meanwhile
                    await stored.acquire()
                    stack.push_async_callback(stored.release)
                count += await cast("StoredMemory", opened).forget(**which)
        except JournalError as error:
            failed[session] = error
    if failed:
        reasons = "; ".join(f"{session!r}: {error}" for session, error in failed.items())
        raise JournalError(
            f"Forgotten in {len(names) - len(failed)} of {len(names)} sessions of {tenant!r}. Call "
            f"it again for these: {reasons}"
        ) from next(iter(failed.values()))
    if choice.parts:
        if USER_SESSION not in without:
            await forget_known(journal, tenant, str(choice.text))
        prefix = tenant_prefix(tenant)
        keys = {session_key(name, tenant) for name in (*names, USER_SESSION)}
        listed = await journal.sessions(listed_prefix(tenant))
        for key in (*await journal.sessions(prefix), *listed):
            if key not in keys:
                await redact(journal, key, choice.parts)
    return count


def _any_memory(**place: Any) -> Memory:
    """Return a memory of a session that any kind of memory has written."""
    return StoredMemory(
        views=[Everything(), Summarized(None, None, None, count_tokens), Calls()], **place
    )


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
        if events[0]["kind"] != "partial_output":
            _hide_pieces(events, parts)
        elif any(map(_quotes(parts), (event.get("output") for event in events))):
            for event in events:  # an object that grows: earlier ones have beginnings of the texts
                event["output"] = events[-1].get("output")
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
