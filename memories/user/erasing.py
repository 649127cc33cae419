"""Forgets facts, and what they rest on, wherever the user's sessions have it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.sessions.listing import delete_session, sessions_of
from agent_brain.memories.store.erasure import LEAST_LETTERS
from agent_brain.memories.store.filters import checked_text
from agent_brain.memories.store.session import USER_SESSION, session_key
from agent_brain.memories.user.facts import USER, Again, Fact
from agent_brain.memories.user.log import Block, Ended, ReadUpTo, UserLog
from agent_brain.memories.user.origins import has_quote, words_of

if TYPE_CHECKING:
    from agent_brain.memories.sessions.forgetting import MakeMemory
    from agent_brain.memories.stored import StoredMemory
    from agent_brain.memories.user.user_memory import UserMemory

LEAST_WORDS = 2  # of a quote that is looked for in all messages: "yes" is in too many


@dataclass(frozen=True, slots=True)
class Chosen:
    """What is to be forgotten: one of these."""

    fact_id: str | None = None
    text: str | None = None
    slot: str | None = None
    about: str | None = None
    conversation: str | None = None
    everything: bool = False

    def __post_init__(self) -> None:
        given = [field.name for field in fields(self) if getattr(self, field.name)]
        if len(given) != 1:
            raise MemoryUseError(
                "forget() takes one choice: a fact's ID, text=, slot=, about=, conversation= or "
                f"everything=True, not {' and '.join(given) or 'nothing'}"
            )
        if self.text is not None and len(checked_text("text=", self.text).strip()) < LEAST_LETTERS:
            raise MemoryUseError(
                f"text={self.text!r} is too short: it needs at least {LEAST_LETTERS} characters"
            )

    def takes(self, fact: Fact) -> bool:
        """Return whether a fact is to be forgotten."""
        if self.fact_id is not None:
            return fact.id == self.fact_id
        if self.slot is not None:
            its = (fact.slot or "").casefold(), fact.about
            return its == (self.slot.casefold(), USER)
        if self.about is not None:
            return fact.about.casefold() == self.about.casefold()
        if self.conversation is not None:
            said_in = {source.session for source in fact.sources}
            return said_in == {self.conversation}
        if self.text is not None:
            said = (fact.text, *(source.quote for source in fact.sources))
            return any(has_quote(each, self.text) for each in said)
        return self.everything


async def forget(
    user: UserMemory, choice: Chosen, memory: MakeMemory | None, running: Memory | None
) -> int:
    """See :meth:`UserMemory.forget`.

    The facts go last: until then they are the record of what is to be forgotten in sessions.
    """
    await user.log.look()
    known = user.log.facts().values()
    chosen = [fact for fact in known if choice.takes(fact)]
    if choice.fact_id is not None and not chosen:
        raise MemoryUseError(f"No fact has the ID {choice.fact_id!r}")
    await _keep_replaced(user.log, chosen, known)
    if user.journal is not None:
        if choice.everything:
            for name in await sessions_of(user.journal, user.tenant):
                await _delete(user.journal, name, user.tenant)
        else:
            await _forget_in_sessions(user, choice, chosen, memory, running)
        if choice.conversation is not None:
            await _delete(user.journal, choice.conversation, user.tenant)
    if choice.everything:
        await user.log.clear()
    else:
        await _forget_here(user.log, choice, chosen)
    return len(chosen)


async def forget_known(journal: Journal, tenant: str | None, text: str) -> None:
    """Forget the facts and blocks that contain a text, if anything is known about the tenant."""
    if not await journal.last(session_key(USER_SESSION, tenant)):
        return
    log = UserLog(journal=journal, tenant=tenant, session=USER_SESSION, shared=True)
    async with log:
        await log.look()
        choice, known = Chosen(text=text), log.facts().values()
        chosen = [fact for fact in known if choice.takes(fact)]
        await _keep_replaced(log, chosen, known)
        await _forget_here(log, choice, chosen)


async def _delete(journal: Journal, session: str, tenant: str | None) -> None:
    """Delete a session that no run uses.

    Raises:
        LeaseHeldError: A run uses it.
    """
    lease = await journal.acquire(session_key(session, tenant))
    try:
        await delete_session(journal, session, tenant=tenant)
    finally:
        await journal.release(lease)


async def _forget_in_sessions(
    user: UserMemory,
    choice: Chosen,
    chosen: Iterable[Fact],
    memory: MakeMemory | None,
    running: Memory | None,
) -> None:
    from agent_brain.memories.sessions.forgetting import forget_in_sessions

    assert user.journal is not None
    cited = {source.message for fact in chosen for source in fact.sources}
    if choice.conversation is not None:  # its forks have its messages too
        place: dict[str, Any] = {"journal": user.journal, "session": choice.conversation}
        async with MessagesMemory(**place, tenant=user.tenant, readonly=True) as conversation:
            cited |= {message.id for message in await conversation.messages()}
    texts = {choice.text} if choice.text else set[str]()
    for fact in chosen:
        texts |= {fact.text, *(source.quote.removesuffix("…") for source in fact.sources)}
    told = [text for text in texts if text == choice.text or len(words_of(text)) >= LEAST_WORDS]
    which: list[Any] = [{"where": lambda m: m.id in cited}] if cited else []
    which += [{"text": text} for text in sorted(told)]
    here = [] if running is None or running.session is None else [running.session]
    for each in which:
        if running is not None and hasattr(running, "forget"):
            await cast("StoredMemory", running).forget(**each)
        await forget_in_sessions(
            user.journal,
            tenant=user.tenant,
            memory=memory,
            without=[*here, USER_SESSION],
            **each,
        )


async def _keep_replaced(log: UserLog, chosen: Iterable[Fact], known: Iterable[Fact]) -> None:
    """Note that facts stay replaced whose successors are forgotten."""
    going = {fact.id for fact in chosen}
    ended: dict[Any, list[str]] = {}
    for fact in known:
        if fact.status == "replaced" and fact.replaced_by in going and fact.id not in going:
            ended.setdefault(fact.valid_to, []).append(fact.id)
    notes: list[BaseModel] = [Ended(ids=tuple(ids), at=at) for at, ids in ended.items()]
    if notes:
        await log.write(lambda: notes)


async def _forget_here(log: UserLog, choice: Chosen, chosen: Iterable[Fact]) -> None:
    """Forget facts, and what blocks say of them."""
    going = {fact.id for fact in chosen}
    said = [set(words_of(fact.text)) for fact in chosen]

    def tells(message: Message) -> bool:
        item = log.item(message)
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
