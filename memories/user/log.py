"""What is stored about a user: facts, blocks and what was read, in one session of a journal."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from operator import attrgetter
from typing import Any, cast

from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.memories.recall.results import Recalled
from agent_brain.memories.recall.search import Scope
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.store.events import Added, Change, Removed
from agent_brain.memories.store.removal import scrub
from agent_brain.memories.user.facts import LIVE, Again, Fact, resolve
from agent_brain.memories.user.known import Block, Known, ReadUpTo, as_message
from agent_brain.memories.vector import VectorMemory
from agent_brain.memories.views.base import View


class UserLog(VectorMemory):
    """The session that stores what is known about a user, in a message for each item."""

    _of_user = True

    def __init__(self, **options: Any) -> None:
        super().__init__(recent=1, k=0, **options)

    def _new_views(self, recent: int, max_tokens: int | None) -> list[View]:
        return [*super()._new_views(recent, max_tokens), Known()]

    @property
    def known(self) -> Known:
        """What is stored; after :meth:`look`."""
        return cast("Known", self.store.views[-1])

    async def look(self) -> None:
        """Read what others have written."""
        await self.open()
        if self.store.log.encoded:
            await self.store.log.decoded()
        self.known.look()

    async def write(self, plan: Callable[[], Sequence[BaseModel]]) -> Sequence[BaseModel]:
        """Add the items that ``plan`` returns in one append; return these.

        How far a conversation was read before is removed with it.

        Args:
            plan: Called when all that is stored has been read, and again if another process writes
                first. What it raises leaves all as it was.
        """

        def exchanged() -> tuple[Sequence[str], Sequence[BaseModel]]:
            made = plan()
            read = {item.conversation for item in made if isinstance(item, ReadUpTo)}
            before = self.known.items(ReadUpTo).items()
            return [i for i, item in before if item.conversation in read], made

        return await self.exchange(exchanged, forget=False)

    async def exchange(
        self,
        plan: Callable[[], tuple[Sequence[str], Sequence[BaseModel]]],
        *,
        forget: bool = True,
    ) -> Sequence[BaseModel]:
        """Put items in the place of others in one append; return these.

        Args:
            plan: Returns the IDs of the messages that store the others, and the items; called as by
                :meth:`write`.
            forget: Whether the others are forgotten.
        """
        gone: Sequence[str] = ()
        made: Sequence[BaseModel] = ()

        def changes() -> list[Change]:
            nonlocal gone, made
            self.known.look()
            gone, made = plan()
            found: list[Change] = [Removed(gone, forgotten=forget)] if gone else []
            return [*found, Added([as_message(item) for item in made])] if made else found

        await self._get_ready()
        await self._write("write()")
        await self.store.change(changes)
        self.known.look()
        await self._catch_up()
        if gone and forget:
            await scrub(self)
        return made

    async def find(
        self,
        query: str,
        k: int,
        where: Callable[[Message], bool],
        *,
        scope: Scope = "session",
        but: Collection[str] = (),
    ) -> list[Recalled]:
        """As :meth:`recall`, of what :meth:`look` has seen: without looking at the journal again.

        Args:
            query: A question, or any text.
            k: The most messages to return.
            where: Only messages that this function accepts.
            scope: ``"tenant"`` for the messages of all sessions.
            but: IDs of messages: not of the sessions that have one of them.
        """
        with self.work_for(EMBEDDING):
            sessions = await self._together(tool_results=False) if scope == "tenant" else None
            left_out = () if sessions is None else sessions.holding(but)

            def accepted(item_id: str) -> bool:
                if item_id.startswith(left_out):
                    return False
                found = (
                    self.store.log.get(item_id) if sessions is None else sessions.find(item_id)[1]
                )
                return found is not None and where(found)

            return await self._recall(query, k, where=accepted, sessions=sessions)

    def facts(self) -> dict[str, Fact]:
        """Return all facts by ID, with what has become of each; after :meth:`look`."""
        return self.known.facts(self.store.clock())

    def facts_at(self, moment: datetime) -> list[Fact]:
        """Return the facts that held at a moment, by what is known now; after :meth:`look`."""
        begun = [fact for fact in self.known.all(Fact) if fact.valid_from <= moment]
        again = [each for each in self.known.all(Again) if each.at <= moment]
        held = resolve(begun, moment, self.known.ended, again)
        known = self.facts()
        current = (known[i] for i, fact in held.items() if fact.status == "current")
        return [fact for fact in current if fact.status != "claim"]

    def held_as(self, fact: Fact, added: Iterable[Fact] = ()) -> tuple[Fact | None, list[Again]]:
        """Return the fact that says the same, if one does, and what is stored as it was said again.

        That is one from the same message, or one that holds since before; after :meth:`look`.

        Args:
            fact: A new fact.
            added: Facts that are to be stored before it.
        """
        known, cited = self.facts(), {source.message for source in fact.sources}
        ends = any(i in known and known[i].status in ("current", "planned") for i in fact.replaces)
        same = None
        for other in [*self.known.said_as(fact), *(e for e in added if e.said == fact.said)]:
            from_same = cited & {source.message for source in other.sources}
            if from_same or (not ends and _covers(other, fact)):
                same = other
        return same, [] if same is None else _said_again(fact, same, self.known.again(same.id))

    def newest_blocks(self) -> list[Block]:
        """Return the current version of each block that is not empty, by name; after a look."""
        ordered = sorted(self.known.all(Block), key=attrgetter("name", "version"))
        newest = {block.name: block for block in ordered}
        return [block for block in newest.values() if block.text]

    def blocks(self, name: str) -> list[Block]:
        """Return the versions of a block, oldest first; after :meth:`look`."""
        found = (block for block in self.known.all(Block) if block.name == name)
        return sorted(found, key=attrgetter("version"))

    def read_up_to(self, conversation: str) -> ReadUpTo:
        """Return how far a conversation was read; after :meth:`look`."""
        read = [each for each in self.known.all(ReadUpTo) if each.conversation == conversation]
        return read[-1] if read else ReadUpTo(conversation=conversation)


def _covers(other: Fact, fact: Fact) -> bool:
    """Return whether a fact adds nothing to one in the same words."""
    return (
        (other.status in ("current", "planned") or other.origin is fact.origin)
        and other.status in LIVE
        and other.origin.rank <= fact.origin.rank
        and other.unsure <= fact.unsure
        and other.said_at <= fact.said_at
        and other.valid_from <= fact.valid_from
        and (other.valid_to, other.expires_at) == (fact.valid_to, fact.expires_at)
    )


def _said_again(fact: Fact, same: Fact, noted: Collection[Again]) -> list[Again]:
    """Return what is stored if a known fact was said again, by another message or at a later time.

    Args:
        fact: What was said.
        same: The known fact.
        noted: When it was said again so far.
    """
    if fact.sources:
        known = (same.sources, *(each.sources for each in noted))
        told = {source.message for sources in known for source in sources}
        new = not told.issuperset(source.message for source in fact.sources)
    else:
        new = fact.said_at > same.said_at and all(fact.said_at != each.at for each in noted)
    alike = fact.unsure == same.unsure and fact.origin.rank == same.origin.rank
    at = max(fact.said_at, same.said_at)
    again = Again(fact=same.id, at=at, sources=fact.sources)
    return [again] if new and alike else []
