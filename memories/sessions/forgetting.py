"""Forgets in all sessions of a tenant."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from inspect import isawaitable
from typing import Any, TypeAlias, Unpack, cast

from agent_brain.common.text import count_tokens
from agent_brain.memories.base import Memory
from agent_brain.memories.branches.forgetting import stored_in
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.sessions.listing import sessions_of, tenant_prefix
from agent_brain.memories.sessions.redaction import redact
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.filters import ForgetOptions, forgettable
from agent_brain.memories.store.session import USER_SESSION, listed_prefix, session_key
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.views.calls import Calls
from agent_brain.memories.views.everything import Everything
from agent_brain.memories.views.summary import Summarized

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
            async with _in_use(await made if isawaitable(made) else made) as opened:
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


@asynccontextmanager
async def _in_use(memory: Memory) -> AsyncIterator[Memory]:
    """Keep runs away from a memory meanwhile, and close it."""
    async with memory:
        taken: list[StoredMemory] = []
        try:
            for stored in stored_in(memory):
                await stored.acquire()
                taken.append(stored)
            yield memory
        finally:
            for stored in taken:
                await stored.release()
