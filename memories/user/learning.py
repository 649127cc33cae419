"""Learns facts from conversations: read, extract, check, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, TypeAlias, cast

from pydantic import BaseModel

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, Role, is_partial
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.store.session import session_key
from agent_brain.memories.user.checking import Batch, Draft, Refusal, checked_fact, said_again
from agent_brain.memories.user.facts import OWN, Again, Fact
from agent_brain.memories.user.log import ReadUpTo
from agent_brain.memories.user.novelty import says_something
from agent_brain.memories.user.origins import own_words
from agent_brain.memories.wrapper import WrappingMemory

if TYPE_CHECKING:
    from agent_brain.memories.user.user_memory import UserMemory

BATCH = 20  # messages for a model call, and facts that it is shown
SEEN = 100  # messages before them, of which others' words may be what the assistant repeats
Extract: TypeAlias = Callable[[Batch], Iterable[Draft] | Awaitable[Iterable[Draft]]]
"""Returns the facts that messages tell, as drafts; sync or async."""


@dataclass(frozen=True, slots=True)
class Learned:
    """What came of reading conversations.

    Attributes:
        messages: How many messages were read.
        calls: How often the extractor was called.
        facts: The facts that were stored.
        refused: The drafts that were not, with reasons.
        replaced: The IDs of the facts that these have replaced.
    """

    messages: int = 0
    calls: int = 0
    facts: tuple[Fact, ...] = ()
    refused: tuple[Refusal, ...] = ()
    replaced: tuple[str, ...] = ()

    def __add__(self, other: Learned) -> Learned:
        return Learned(
            self.messages + other.messages,
            self.calls + other.calls,
            self.facts + other.facts,
            self.refused + other.refused,
            self.replaced + other.replaced,
        )


@dataclass(frozen=True)
class Reading:
    """Messages of a conversation that were not read before, at most 20.

    Attributes:
        batch: The messages, and the facts that are most like them.
        before: How far the conversation was read before.
        after: How far it is read then.
        worthwhile: Whether a message of the user says something new.
        again: The facts that the user says again, if nothing is new.
    """

    batch: Batch
    before: ReadUpTo
    after: ReadUpTo
    worthwhile: bool = True
    again: Sequence[Again] = ()


async def read_next(user: UserMemory, conversation: Memory | str) -> Reading | None:
    """Return the next messages of a conversation; None if all were read."""
    entries = None
    if isinstance(conversation, str):
        entries = await _entries(user, conversation)
        await user.log.look()
        if entries == user.log.read_up_to(conversation).entries:
            return None
    memory = _opened(user, conversation) if isinstance(conversation, str) else conversation
    if not hasattr(memory, "find_news") or not await _keeps_news(memory):
        raise MemoryUseError(
            f"learn() reads built-in memories, and {type(memory).__name__} has no find_news(): "
            "give it a journal with DurableMemory"
        )
    try:
        return await _read(user, cast("MessagesMemory", memory), entries)
    finally:
        if isinstance(conversation, str):
            await memory.aclose()


async def _keeps_news(memory: Memory) -> bool:
    while isinstance(memory, WrappingMemory) and memory.wrapped:
        memory = memory.wrapped[0]
    return hasattr(memory, "find_news")


async def _entries(user: UserMemory, session: str) -> int:
    """Return the number of the last entry of a session."""
    if user.journal is None:
        raise MemoryUseError(
            f"learn({session!r}) reads a session of the journal, and this user's memory has none: "
            "pass the memory of the conversation"
        )
    return await user.journal.last(session_key(session, user.tenant))


def _opened(user: UserMemory, session: str) -> Memory:
    return MessagesMemory(
        journal=user.journal, session=session, tenant=user.tenant, readonly=True, shared=True
    )


async def _read(user: UserMemory, memory: MessagesMemory, entries: int | None) -> Reading | None:
    await user.log.look()
    name = memory.session or user.name_of(memory)
    before = user.log.read_up_to(name)
    news, cursor = await memory.find_news(before.after)
    if cursor < before.after:  # the session was replaced
        before = ReadUpTo(conversation=name, refused=before.refused)
        news, cursor = await memory.find_news(0)
    ids = [message.id for message in news]
    behind = ids.index(before.last) + 1 if before.last in ids else 0
    waiting = [message for message in news[behind:] if not is_partial(message)]
    taken = waiting[:BATCH]
    if not taken:
        return None
    whole = len(taken) == len(waiting)
    after = ReadUpTo(
        conversation=name,
        after=cursor if whole else before.after,
        last=None if whole else taken[-1].id,
        entries=entries if whole else None,
        refused=before.refused,
    )
    said = [m for m in taken if m.role is Role.USER and says_something(m.content)]
    known = [(m, await user.said_as(m.content)) for m in said]
    fresh = [message for message, fact in known if fact is None]
    facts = await user.like(fresh, BATCH) if fresh else []
    seen = news[max(behind - SEEN, 0) : behind]
    batch = Batch(taken, facts, memory.session, user.names, seen)
    again = [Again(fact=f.id, at=m.created_at) for m, f in known if f and is_stated(m, f, user)]
    return Reading(batch, before, after, bool(fresh), () if fresh else again)


def is_stated(message: Message, fact: Fact, user: UserMemory) -> bool:
    """Return whether the user says by a message that a fact of the user's own still holds."""
    own = own_words(message, user.names)
    later = message.created_at > fact.said_at
    return fact.origin in OWN and later and bool(own) and not own.rstrip().endswith(("?", "？"))


async def extract(make: Extract, reading: Reading) -> list[Draft]:
    """Return the drafts of what was read; none if it says nothing new."""
    if not reading.worthwhile:
        return []
    made = make(reading.batch)
    drafts = [*(await made if isawaitable(made) else made)]
    for draft in drafts:
        if not isinstance(draft, Draft):
            raise MemoryUseError(f"extract= must return drafts (Draft), not {draft!r}")
    return drafts


async def write(user: UserMemory, reading: Reading, drafts: Sequence[Draft]) -> Learned:
    """Check drafts and store what passes, with how far the conversation was read: one append.

    If another process has read the same meanwhile, nothing is stored.
    """
    learned = Learned()

    def plan() -> list[BaseModel]:
        nonlocal learned
        log = user.log
        if log.read_up_to(reading.after.conversation) != reading.before:
            learned = Learned()
            return []
        facts: list[Fact] = []
        refused: list[Refusal] = []
        again: list[BaseModel] = [*reading.again]
        for draft in drafts:
            known = log.facts() | {fact.id: fact for fact in facts}
            found = checked_fact(draft, reading.batch, known, user.clock())
            if isinstance(found, Fact):
                facts.append(found)
                continue
            refused.append(found)
            if found.fact is not None and found.same is not None:
                again += said_again(found.fact, found.same, log.all(Again))
        counts = Counter(reading.before.refused)
        counts.update(refusal.reason.partition(":")[0] for refusal in refused)
        learned = Learned(
            len(reading.batch.messages), int(reading.worthwhile), tuple(facts), tuple(refused)
        )
        return [*facts, *again, reading.after.model_copy(update={"refused": dict(counts)})]

    await user.log.write(plan)
    new = {fact.id for fact in learned.facts}
    known = user.log.facts().values() if new else ()
    replaced = tuple(f.id for f in known if f.status == "replaced" and f.replaced_by in new)
    return replace(learned, replaced=replaced)


def report_learned(memory: Memory, learned: Learned, session: str | None) -> None:
    """Report what was learned as an event of the run of a memory."""
    if learned.messages or learned.facts:
        memory.report(
            "learned",
            session=session,
            added=tuple(fact.id for fact in learned.facts),
            replaced=learned.replaced,
            refused=dict(Counter(refusal.reason.partition(":")[0] for refusal in learned.refused)),
            read=learned.messages,
            calls=learned.calls,
        )
