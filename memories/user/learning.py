"""Learns facts from conversations: read, extract, check, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import BaseModel

from agent_brain.memories.base import Memory
from agent_brain.memories.branches.forgetting import stored_in
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, Role, is_partial
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.store.session import session_key
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.user.checking import Batch, Draft, Refusal, checked_fact, heard_again
from agent_brain.memories.user.facts import LIVE, Again, Fact
from agent_brain.memories.user.known import ReadUpTo
from agent_brain.memories.user.stating import said_in, says_something
from agent_brain.memories.wrapper import offers

if TYPE_CHECKING:
    from agent_brain.memories.journal.base import Journal
    from agent_brain.memories.runs.work import RunWork
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
        facts: The facts that were stored, with the status that they have now.
        refused: The drafts that were not, with reasons.
        replaced: The IDs of the facts that these have replaced.
    """

    messages: int = 0
    calls: int = 0
    facts: tuple[Fact, ...] = ()
    refused: tuple[Refusal, ...] = ()
    replaced: tuple[str, ...] = ()

    @property
    def reasons(self) -> Counter[str]:
        """How many drafts were refused, by reason."""
        return Counter(refusal.reason.partition(":")[0] for refusal in self.refused)

    def __add__(self, other: Learned) -> Learned:
        return Learned(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))


@dataclass(frozen=True)
class Reading:
    """Messages of a conversation that were not read before, at most 20.

    Attributes:
        batch: The messages, and the facts that are most like them.
        before: How far the conversation was read before.
        after: How far it is read then.
        worthwhile: Whether a message of the user says something new.
        again: The facts that the user says again.
    """

    batch: Batch
    before: ReadUpTo
    after: ReadUpTo
    worthwhile: bool = True
    again: Sequence[Again] = ()


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation that is read.

    Attributes:
        name: Its name in what is known about the user.
        memory: Its messages.
        entries: The number of its last entry in the journal, if it is in that of the user.
    """

    name: str
    memory: Memory
    entries: int | None = None


@asynccontextmanager
async def opened(
    user: UserMemory, conversation: Memory | str
) -> AsyncIterator[Conversation | None]:
    """Open a conversation: a session, or the memory of one; None if it has nothing new.

    A memory with a journal is read from there, as it may have dropped what has left its window.

    Raises:
        MemoryUseError: There is no such session, or it is of another tenant.
    """
    await user.log.look()
    if isinstance(conversation, str):
        if user.journal is None:
            raise MemoryUseError(
                f"learn({conversation!r}) reads a session of the journal, and this user's memory "
                "has none: pass the memory of the conversation"
            )
        session, tenant, journal = conversation, user.tenant, user.journal
    else:
        check_tenant(user, conversation)
        held = cast("Journal | None", getattr(conversation, "journal", None))
        if held is None or conversation.session is None:
            yield Conversation(user.name_of(conversation), conversation)
            return
        session, tenant, journal = conversation.session, conversation.tenant, held
    same = user.journal is None or journal.same_as(user.journal)
    name = session if same else f"{session} (in another journal)"
    entries = await journal.last(session_key(session, tenant))
    if not entries and isinstance(conversation, str):
        raise MemoryUseError(f"learn(): {tenant!r} has no session {session!r} in the journal")
    if entries == user.log.read_up_to(name).entries:
        yield None
        return
    place: dict[str, Any] = {"journal": journal, "session": session, "tenant": tenant}
    async with MessagesMemory(**place, readonly=True, shared=True) as memory:
        yield Conversation(name, memory, entries)


def check_tenant(user: UserMemory, memory: Memory) -> None:
    """Check that a memory is one, and not of somebody else.

    Raises:
        MemoryUseError: It is.
    """
    if not isinstance(memory, Memory):
        raise MemoryUseError(
            f"A conversation is a memory, or the name of a session: {memory!r:.100}"
        )
    named = memory.tenant is not None or getattr(memory, "journal", None) is not None
    if user.tenant is not None and named and memory.tenant != user.tenant:
        raise MemoryUseError(
            f"The memory is of tenant {memory.tenant!r}, and what is known is about "
            f"{user.tenant!r}: open its session with tenant={user.tenant!r}"
        )


async def _news(
    memory: Memory, before: ReadUpTo
) -> tuple[ReadUpTo, list[Message], Sequence[Message], int]:
    """Return how far a memory was read, what is new, what came before that, and a cursor."""
    if not offers(memory, "find_news"):  # of four methods
        told = [*await memory.dump(), *await memory.goal()]
        news, cursor = sorted(told, key=lambda message: message.created_at), 0
    else:
        stored = cast("StoredMemory", memory)
        news, cursor = await stored.find_news(before.after)
        if cursor < before.after:  # the session was replaced
            before = ReadUpTo(conversation=before.conversation, refused=before.refused)
            news, cursor = await stored.find_news(0)
    ids = [message.id for message in news]
    behind = ids.index(before.last) + 1 if before.last in ids else 0
    seen: Sequence[Message] = news[max(behind - SEEN, 0) : behind]
    inner = next(stored_in(memory), None)
    if not seen and inner is not None and news:
        log = inner.store.log
        known = [*log.ids()]
        at = known.index(news[0].id) if news[0].id in log else 0
        seen = [log[i] for i in known[max(at - SEEN, 0) : at]]
    return before, news[behind:], seen, cursor


async def read_next(user: UserMemory, conversation: Conversation) -> Reading | None:
    """Return the next messages of a conversation; None if all were read.

    What is known is as :func:`opened` has found it, or the last :func:`write`.
    """
    memory, name = conversation.memory, conversation.name
    before, news, seen, cursor = await _news(memory, user.log.read_up_to(name))
    waiting = [message for message in news if not is_partial(message)]
    taken = waiting[:BATCH]
    if not taken:
        return None
    whole = len(taken) == len(waiting)
    upto = cursor if whole else before.after
    if not whole and isinstance(memory, StoredMemory):  # so that the rest is read from there
        upto = memory.store.log.find(taken[-1].id) or upto
    after = ReadUpTo(
        conversation=name,
        after=upto,
        last=None if whole and cursor else taken[-1].id,
        entries=conversation.entries if whole else None,
        refused=before.refused,
    )
    said = [m for m in taken if m.role is Role.USER and says_something(m.content)]
    like = [await user.fitting(m.content, BATCH, LIVE) for m in said]
    known = [*zip(said, like, strict=True)]
    fresh = [found for m, found in known if said_in(m.content, found) is None]
    facts = user.first_of(fresh, BATCH) if fresh else []
    batch = Batch(taken, facts, memory.session, user.names, seen)
    now = None if fresh else user.clock()
    again = [heard_again(m, f, batch, now) for m, found in known for f in found]
    return Reading(batch, before, after, bool(fresh), [each for each in again if each is not None])


async def extract(make: Extract, reading: Reading) -> list[Draft]:
    """Return the drafts of what was read; none if it says nothing new."""
    if not reading.worthwhile:
        return []
    made = make(reading.batch)
    found: object = await made if isawaitable(made) else made
    drafts = [*found] if isinstance(found, Iterable) else [found]
    if not all(isinstance(draft, Draft) for draft in drafts):
        raise MemoryUseError(f"extract= must return a list of drafts (Draft), not {found!r:.200}")
    return cast("list[Draft]", drafts)


async def still_there(conversation: Conversation, reading: Reading) -> Reading:
    """Return what was read without messages that were deleted or forgotten since."""
    memory = conversation.memory
    if not isinstance(memory, StoredMemory):
        return reading
    await memory.open()
    left = [message for message in reading.batch.messages if message.id in memory.store.log]
    return replace(reading, batch=replace(reading.batch, messages=left))


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
        again: list[Again] = []
        known = log.facts()
        for draft in drafts:
            found = checked_fact(draft, reading.batch, known, user.clock())
            if isinstance(found, Refusal):
                refused.append(found)
                continue
            same, noted = log.held_as(found, facts)
            again += noted
            if same is None:
                facts.append(found)
            else:
                refused.append(Refusal(draft.text, "known"))
        told = {(each.fact, source.message) for each in again for source in each.sources}
        for each in reading.again:  # of what was not forgotten meanwhile
            (source,) = each.sources
            there = each.fact in known and source.message in reading.batch.by_id
            again += [each] if there and (each.fact, source.message) not in told else []
        learned = Learned(
            len(reading.batch.messages), int(reading.worthwhile), tuple(facts), tuple(refused)
        )
        counts = Counter(reading.before.refused) + learned.reasons
        return [*facts, *again, reading.after.model_copy(update={"refused": dict(counts)})]

    await user.log.write(plan)
    replaced = replaced_by(user, learned.facts)
    if learned.messages:
        fields = {
            "session": reading.batch.conversation,
            "added": tuple(fact.id for fact in learned.facts),
            "replaced": replaced,
            "refused": dict(learned.reasons),
            "read": learned.messages,
            "calls": learned.calls,
        }
        user._untold.append((reading.after.conversation, fields))
    return replace(learned, replaced=replaced)


def replaced_by(user: UserMemory, facts: Collection[Fact]) -> tuple[str, ...]:
    """Return the IDs of the facts that new ones have replaced."""
    new = {fact.id for fact in facts}
    known = user.log.facts().values() if new else ()
    return tuple(f.id for f in known if f.status == "replaced" and f.replaced_by in new)


async def drop_forgotten(user: UserMemory) -> None:
    """Drop what is untold of conversations and facts that were forgotten or deleted."""
    if not user._untold:
        return
    gone = set[str]()
    if (journal := user.journal) is not None:
        for name in {name for name, fields in user._untold if name == fields["session"]}:
            if not await journal.last(session_key(name, user.tenant)):
                gone.add(name)
    await user.log.look()  # after which nothing is awaited: others learn and forget meanwhile
    there = {each.conversation for each in user.log.known.all(ReadUpTo)} - gone
    facts, untold = user.log.facts(), [*user._untold]
    user._untold.clear()
    for name, told in untold:
        if name in there:
            kept = {key: tuple(i for i in told[key] if i in facts) for key in ("added", "replaced")}
            user._untold.append((name, told | kept))


async def tell_learned(user: UserMemory, work: RunWork | None) -> None:
    """Tell the readers of a run, if there are any, what was learned until now."""
    if work is None or not work.listens:
        return
    await drop_forgotten(user)
    while user._untold:
        work.report("learned", user._untold.popleft()[1])
