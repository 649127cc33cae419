"""Forgets facts, and what they rest on, wherever the user's sessions have it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from agent_brain.common.text import folded
from agent_brain.memories.base import Memory
from agent_brain.memories.branches.forgetting import stored_in
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message, Role
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.sessions.listing import delete_lists, delete_session, sessions_of
from agent_brain.memories.store.erasure import LEAST_LETTERS
from agent_brain.memories.store.filters import ForgetOptions, checked_text, forgettable
from agent_brain.memories.store.session import USER_SESSION, session_key
from agent_brain.memories.user.facts import USER, Again, Ended, Fact, Origin, Source
from agent_brain.memories.user.known import Block, ReadUpTo
from agent_brain.memories.user.learning import drop_forgotten
from agent_brain.memories.user.log import UserLog
from agent_brain.memories.user.origins import LEAST_WORDS, has_quote, words_of

if TYPE_CHECKING:
    from agent_brain.memories.sessions.forgetting import MakeMemory
    from agent_brain.memories.stored import StoredMemory
    from agent_brain.memories.user.user_memory import UserMemory


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be forgotten: one of the choices of :meth:`UserMemory.forget`.

    Attributes:
        messages: The IDs of the messages of the conversation.
        facts: The facts that it takes; see :func:`look`.
    """

    fact_id: str | None = None
    text: str | None = None
    slot: str | None = None
    about: str | None = None
    conversation: str | None = None
    everything: bool = False
    messages: frozenset[str] = frozenset()
    facts: tuple[Fact, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.everything, bool):
            raise MemoryUseError(f"forget(everything={self.everything!r}): True or False")
        names = ("fact_id", "text", "slot", "about", "conversation")
        texts = {name: getattr(self, name) for name in names if getattr(self, name) is not None}
        given = [name for name, value in texts.items() if checked_text(f"forget({name}=)", value)]
        given += ["everything"] if self.everything else []
        if len(given) != 1:
            raise MemoryUseError(
                "forget() takes one choice: a fact's ID, text=, slot=, about=, conversation= or "
                f"everything=True, not {' and '.join(given) or 'nothing'}"
            )
        if self.text and len(self.text.strip()) < LEAST_LETTERS:
            raise MemoryUseError(
                f"text={self.text!r} is too short: it needs at least {LEAST_LETTERS} characters"
            )

    def takes(self, fact: Fact, told: Iterable[Fact | Again]) -> bool:
        """Return whether a fact is to be forgotten.

        Args:
            fact: The fact.
            told: The fact as it was said, and when it was said again.
        """
        if self.fact_id is not None:
            return fact.id == self.fact_id
        if self.slot is not None:
            return (fact.said[1], fact.about) == (folded(self.slot), USER)
        if self.about is not None:
            return fact.said[0] == folded(self.about)
        if self.conversation is not None:
            return all(each.sources and not self.left(each.sources) for each in told)
        if self.text is not None:
            said = (fact.text, *(source.quote for source in fact.sources))
            return any(has_quote(each, self.text) for each in said)
        return self.everything

    def left(self, sources: Iterable[Source]) -> tuple[Source, ...]:
        """Return the sources that are not of the conversation."""
        return tuple(
            source
            for source in sources
            if source.session != self.conversation and source.message not in self.messages
        )

    @property
    def cited(self) -> set[str]:
        """The IDs of the messages that the facts cite."""
        return {source.message for fact in self.facts for source in fact.sources}

    @property
    def texts(self) -> set[str]:
        """The texts that are to be forgotten in sessions."""
        texts = {self.text} if self.text else set[str]()
        return texts.union(*([fact.text, *map(_quote, fact.sources)] for fact in self.facts))

    def queries(self, cited: Collection[str], texts: Iterable[str]) -> list[ForgetOptions]:
        """Return what is to be forgotten in sessions: messages, and what has one of the texts."""
        told = [text for text in texts if text == self.text or len(words_of(text)) >= LEAST_WORDS]
        which: list[ForgetOptions] = [{"where": lambda m: m.id in cited}] if cited else []
        return [*which, *(ForgetOptions(text=text) for text in sorted(told))]


def _quote(source: Source) -> str:
    return source.quote.removesuffix("…")


async def look(user: UserMemory, choice: Chosen) -> Chosen:
    """Return a choice with the facts that it takes.

    Raises:
        MemoryUseError: There is no such fact.
    """
    await user.log.look()
    facts, told = user.log.facts(), user.log.known.statements()
    chosen = tuple(fact for fact in facts.values() if choice.takes(fact, told[fact.id]))
    if choice.fact_id is not None and not chosen:
        raise MemoryUseError(f"No fact has the ID {choice.fact_id!r}")
    return replace(choice, facts=chosen)


async def messages_of(user: UserMemory, choice: Chosen) -> set[str]:
    """Return the IDs of the messages that would be forgotten with facts, in all sessions."""
    if user.journal is None:
        return set()
    queries = choice.queries(choice.cited, choice.texts)
    fits = [forgettable(None, query, user.clock()).fits for query in queries]
    said = _said_in(user, await sessions_of(user.journal, user.tenant))
    return {m.id async for m in said if any(fit(m) for fit in fits)}


async def _said_in(user: UserMemory, sessions: Iterable[str]) -> AsyncIterator[Message]:
    """Yield the messages of sessions."""
    for name in sessions:
        place: dict[str, Any] = {"journal": user.journal, "session": name, "tenant": user.tenant}
        async with MessagesMemory(**place, readonly=True, shared=True) as session:
            for message in await session.messages():
                yield message


async def forget(
    user: UserMemory, choice: Chosen, memory: MakeMemory | None, running: Memory | None
) -> int:
    """See :meth:`UserMemory.forget`.

    The facts go last: until then they are the record of what is to be forgotten in sessions.
    """
    if user.journal is not None and running is not None:
        its = next(stored_in(running), None)
        same = its is not None and its.journal is not None and its.journal.same_as(user.journal)
        if same and (choice.everything or choice.conversation == running.session):
            raise MemoryUseError(
                f"A run cannot forget its own conversation, {running.session!r}, as a whole. "
                "Nothing was forgotten: forget it when the run has ended"
            )
    if user.journal is not None and choice.conversation is not None:
        said = _said_in(user, [choice.conversation])
        choice = replace(choice, messages=frozenset([message.id async for message in said]))
    choice = await look(user, choice)
    if user.journal is not None:
        if choice.everything:
            await _delete(user.journal, await sessions_of(user.journal, user.tenant), user.tenant)
            await delete_lists(user.journal, user.tenant)
        else:
            await _forget_in_sessions(user, choice, memory, running)
        if choice.conversation is not None:
            await _delete(user.journal, [choice.conversation], user.tenant)
    if choice.everything:
        await user.log.clear()
    else:
        await _forget_here(user.log, choice)
    await drop_forgotten(user)
    return len(choice.facts)


async def forget_known(journal: Journal, tenant: str | None, text: str) -> None:
    """Forget the facts and blocks that contain a text, if anything is known about the tenant."""
    from agent_brain.memories.user.user_memory import UserMemory

    if await journal.last(session_key(USER_SESSION, tenant)):
        async with UserMemory(journal=journal, tenant=tenant) as user:
            await _forget_here(user.log, await look(user, Chosen(text=text)))


async def _delete(journal: Journal, sessions: Collection[str], tenant: str | None) -> None:
    """Delete sessions that no run uses.

    Raises:
        LeaseHeldError: A run uses one; none was deleted.
    """
    async with AsyncExitStack() as leases:
        for session in sessions:
            lease = await journal.acquire(session_key(session, tenant))
            leases.push_async_callback(journal.release, lease)
        for session in sessions:
            await delete_session(journal, session, tenant=tenant)


async def _forget_in_sessions(
    user: UserMemory, choice: Chosen, memory: MakeMemory | None, running: Memory | None
) -> None:
    from agent_brain.memories.sessions.forgetting import forget_in_sessions

    assert user.journal is not None
    forget_each = partial(forget_in_sessions, user.journal, tenant=user.tenant, memory=memory)
    here = [] if running is None or running.session is None else [running.session]
    cited, texts, others = choice.cited, choice.texts, set[str]()
    if choice.conversation is not None:  # its forks have its messages too; it goes last itself
        others = {*await sessions_of(user.journal, user.tenant)} - {choice.conversation}
        cited |= choice.messages
        texts = await _told_there_only(user, choice, others)
        here.append(choice.conversation)
    for each in choice.queries(cited, texts):
        if running is not None and hasattr(running, "forget"):
            await cast("StoredMemory", running).forget(**each)
        await forget_each(without=[*here, USER_SESSION], **each)
    if cited and choice.conversation is not None:  # what its memory has stored elsewhere
        await forget_each(without=others, where=lambda m: m.id in cited)


async def _told_there_only(user: UserMemory, choice: Chosen, sessions: Iterable[str]) -> set[str]:
    """Return texts of a conversation that the user has not said in other sessions too."""
    texts, kept = choice.texts, set[str]()
    for fact in user.log.facts().values():
        left = choice.left(fact.sources)
        kept |= {source.message for source in left}
        texts |= {_quote(source) for source in fact.sources if source not in left}
    async for message in _said_in(user, sessions):
        own = message.role is Role.USER and "recalled" not in message.metadata
        if message.id not in choice.messages and (own or message.id in kept):
            texts = {text for text in texts if not text or not has_quote(message.content, text)}
    return texts


async def _forget_here(log: UserLog, choice: Chosen) -> None:
    """Forget facts, and what blocks say of them."""
    going = {fact.id: fact for fact in choice.facts}
    await log.write(lambda: _left_replaced(log, choice, going))
    if choice.conversation is not None:
        await log.exchange(lambda: _with_sources_left(log, choice, going))
    said = [set(words_of(fact.text)) for fact in choice.facts]

    def tells(message: Message) -> bool:
        item = log.known.item(message.id)
        if isinstance(item, Block):
            words = set(words_of(item.text))
            told = any(fact and fact <= words for fact in said)
            return told or bool(choice.text and has_quote(item.text, choice.text))
        if isinstance(item, Again):
            return item.fact in going
        if isinstance(item, ReadUpTo) and choice.conversation is not None:
            return item.conversation == choice.conversation
        return message.id in going

    await log.forget(where=tells)


def _left_replaced(log: UserLog, choice: Chosen, going: Mapping[str, Fact]) -> list[Ended]:
    """Return notes that facts stay replaced whose successors are forgotten.

    One that says the same in another conversation holds again.
    """
    ended: dict[Any, list[str]] = {}
    for fact in log.facts().values():
        by = going.get(fact.replaced_by or "")
        again = choice.conversation is not None and by is not None and by.said == fact.said
        if fact.status == "replaced" and by is not None and fact.id not in going and not again:
            ended.setdefault(fact.valid_to, []).append(fact.id)
    return [Ended(ids=tuple(ids), at=at) for at, ids in ended.items()]


def _with_sources_left(
    log: UserLog, choice: Chosen, going: Collection[str]
) -> tuple[list[str], list[BaseModel]]:
    """Return what says that other conversations tell facts, and the messages that it replaces.

    A fact that was said in the conversation first was said when another one says so.
    """
    known, now = log.known, log.store.clock()
    gone: dict[str, None] = {}
    kept: list[BaseModel] = []
    stated: list[tuple[str, Fact | Again]] = [
        *known.items(Fact).items(),
        *known.items(Again).items(),
    ]
    for message_id, item in stated:
        left = choice.left(item.sources)
        fact_id = item.id if isinstance(item, Fact) else item.fact
        if message_id in gone or fact_id in going or left == item.sources:
            continue
        gone[message_id] = None
        if left:
            kept.append(item.model_copy(update={"sources": left}))
        elif isinstance(item, Fact):
            again = [(i, each) for i, each in known.items(Again).items() if each.fact == fact_id]
            told = [(i, e) for i, e in again if not e.sources or choice.left(e.sources)]
            first, by = min(told, key=lambda one: _said_at(one[1], now))
            gone[first] = None
            kept.append(_said_by(item, choice.left(by.sources), _said_at(by, now)))
    return [*gone], kept


def _said_at(again: Again, now: datetime) -> datetime:
    said = max((each.at for each in again.sources if each.at is not None), default=again.at)
    return min(said, now)


def _said_by(fact: Fact, sources: tuple[Source, ...], at: datetime) -> Fact:
    """Return a fact as it was said again at a moment."""
    since = at if fact.valid_from == fact.said_at else fact.valid_from
    origin = fact.origin if sources else Origin.PROGRAM
    changes = {"sources": sources, "said_at": at, "valid_from": since, "origin": origin}
    return fact.model_copy(update=changes)
