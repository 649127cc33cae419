"""What is known about a user over all conversations: facts, blocks, and how they are learned."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import zip_longest
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, cast, get_args, overload
from weakref import WeakKeyDictionary

from anyio.abc import AsyncResource
from pydantic import AwareDatetime, BaseModel, ValidationError

from agent_brain.common.ids import new_id
from agent_brain.common.text import folded
from agent_brain.common.values import error_lines, is_count
from agent_brain.memories.base import Memory
from agent_brain.memories.embedders.function import EmbedderLike
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message
from agent_brain.memories.recall.results import Recalled
from agent_brain.memories.runs.work import run_here
from agent_brain.memories.store.checks import whole_number
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.filters import checked_text, moment
from agent_brain.memories.store.filters import names as names_in
from agent_brain.memories.store.options import JournalLike
from agent_brain.memories.store.session import USER_SESSION, long_term_session, session_key
from agent_brain.memories.user import erasing, learning
from agent_brain.memories.user.checking import Batch, Cited, Draft, Refusal, checked_fact
from agent_brain.memories.user.facts import CURRENT, LIVE, USER, Again, Fact, Kind, Status
from agent_brain.memories.user.knowing import profile_of
from agent_brain.memories.user.known import Block, Exported, ReadUpTo
from agent_brain.memories.user.learning import Extract, Learned
from agent_brain.memories.user.log import UserLog
from agent_brain.memories.user.stating import said_in, says_something
from agent_brain.memories.user.tools import TOOLS, tools_of

if TYPE_CHECKING:
    from agent_brain.memories.sessions.forgetting import MakeMemory
    from agent_brain.memories.user.knowing import UserAwareMemory
    from agent_brain.tools.base import BaseTool

Mode: TypeAlias = Literal["program", "agent", "both"]
What: TypeAlias = Literal["facts", "messages", "both"]
UNTOLD = 20
MOST_BLOCKS = 20


class UserMemory(AsyncResource):
    """What is known about one user, over all conversations: facts and blocks.

    ::

        user = UserMemory(journal="agents.db", tenant="ann", extract=model_extractor("openai/…"))
        async with Brain("react", journal…, user=user) as brain:
            ...  # the model sees what is known, and what it learns is stored at the end

    It is stored in a session of its own among those of the tenant, which any number of processes
    may write to at once. Facts are never changed: a new one replaces an old one, of which it is
    known what it said, since when, and who said so.

    Args:
        journal: Where it is stored, which is where the user's conversations are: a journal or its
            place, as for :class:`StoredMemory`. None keeps it in RAM only.
        tenant: Whose it is: the tenant of the user's sessions.
        extract: Returns the facts that messages tell, such as what
            :func:`agent_brain.states.model_extractor` returns; None learns nothing by itself.
        mode: Who writes: the ``"program"`` (:meth:`learn`, at the end of a conversation), the
            ``"agent"``, with tools, or ``"both"``.
        names: The user's names, where several people speak in a conversation: what others say is
            not the user's word. Empty: every speaker is the user.
        profile_tokens: How many tokens the profile may have in a context.
        recall_tokens: How many tokens facts and messages may have that fit the goal.
        approve: The names of tools whose calls a person approves first, such as ``"forget"``.
        embedder: As for :class:`VectorMemory`, as are ``path``, ``url`` and ``client``, where
            vectors are stored.
        path: A folder for the vectors, and for the journal if none is given.
        url: The address of a Chroma server.
        client: A client of Chroma.
        clock: Returns the time (aware).
        readonly: Only read.

    Attributes:
        learning_error: Why the last conversation that was closed could not be learned from; None if
            it could. :meth:`learn` tries again; :meth:`unread` names what waits for it.

    Raises:
        MemoryDefinitionError: Options that make no sense.
    """

    def __init__(
        self,
        *,
        journal: JournalLike | None = None,
        tenant: str | None = None,
        extract: Extract | None = None,
        mode: Mode = "both",
        names: Collection[str] = (),
        profile_tokens: int = 400,
        recall_tokens: int = 800,
        approve: Collection[str] = (),
        embedder: EmbedderLike = None,
        path: str | PathLike[str] | None = None,
        url: str | None = None,
        client: Any = None,
        clock: Callable[[], datetime] = utc_now,
        readonly: bool = False,
    ) -> None:
        if mode not in get_args(Mode):
            raise MemoryDefinitionError(f"mode={mode!r}: 'program', 'agent' or 'both'")
        if extract is not None and not callable(extract):
            raise MemoryDefinitionError(
                f"extract={extract!r}: a function of messages, such as model_extractor({extract!r})"
            )
        stored = journal is not None or path is not None
        if stored and tenant is None:
            raise MemoryDefinitionError(
                "UserMemory(tenant=…) says whose it is: with a journal, it reads all sessions of "
                "that tenant"
            )
        self.mode = mode
        self.extract = extract
        try:
            self.names, self.approve = names_in("names", names), names_in("approve", approve)
        except MemoryUseError as error:
            raise MemoryDefinitionError(str(error)) from None
        self.profile_tokens, self.recall_tokens = profile_tokens, recall_tokens
        for name in ("profile_tokens", "recall_tokens"):
            whole_number(name, getattr(self, name), least=0)
        if unknown := sorted(self.approve - {*TOOLS}):
            raise MemoryDefinitionError(
                f"approve={unknown}: no tools have these names: {', '.join(TOOLS)}"
            )
        self.clock = clock
        self.log = UserLog(
            journal=journal,
            session=USER_SESSION,
            tenant=tenant,
            embedder=embedder,
            path=path,
            url=url,
            client=client,
            clock=clock,
            readonly=readonly,
            shared=stored,
        )
        self.learning_error: Exception | None = None
        self._untold: deque[tuple[str, dict[str, Any]]] = deque(maxlen=UNTOLD)  # by conversation
        self._tools = tools_of(self)
        self._profile: tuple[int, list[Fact]] = (0, [])
        self._unnamed: WeakKeyDictionary[Memory, str] = WeakKeyDictionary()

    @property
    def journal(self) -> Journal | None:
        """The journal, if there is one."""
        return self.log.journal

    @property
    def tenant(self) -> str | None:
        """Whose it is."""
        return self.log.tenant

    @property
    def untold(self) -> list[dict[str, Any]]:
        """What was learned and no reader of a run was told yet, and what was not forgotten since.

        These are the fields of events ``learned``, at most :data:`UNTOLD`. The next run that learns
        or shows a context, and whose events are read, tells it.
        """
        return [fields for _, fields in self._untold]

    def name_of(self, memory: Memory) -> str:
        """Return a name for a conversation that has none; it is another one in each process."""
        return self._unnamed.setdefault(memory, new_id("conversation"))

    def over(self, memory: Memory, *, close: bool = True, learn: bool = True) -> UserAwareMemory:
        """Return a memory of a conversation that shows what is known about the user.

        Args:
            memory: Any memory.
            close: Close it with the returned one.
            learn: Learn from it when the returned one is closed, if the program writes.
        """
        from agent_brain.memories.user.knowing import UserAwareMemory

        return UserAwareMemory(memory, self, close=close, learn=learn)

    # Writing

    async def remember(
        self,
        text: str,
        *,
        slot: str | None = None,
        about: str = USER,
        kind: Kind = "preference",
        source: Message | None = None,
        quote: str | None = None,
        conversation: str | None = None,
        replaces: Iterable[str] = (),
        unsure: bool = False,
        valid_from: AwareDatetime | None = None,
        valid_to: AwareDatetime | None = None,
        expires_at: AwareDatetime | None = None,
    ) -> Fact:
        """Store a fact; return it, or the same one if it is known already.

        Args:
            text: The fact, as a short sentence.
            slot: What it is the one value of, such as ``"home"``.
            about: Whom it is about.
            kind: See :class:`Fact`.
            source: The message that says so, whose role decides how far the fact is trusted; None
                if the program knows it.
            quote: The words of ``source`` that say so; None for all.
            conversation: The session of ``source``.
            replaces: IDs of facts that it replaces.
            unsure: Whether it may only seem to contradict others.
            valid_from: Since when it has been true; None for when it was said.
            valid_to: Until when it was true.
            expires_at: When it ceases to hold by itself.

        Raises:
            MemoryUseError: The quote is not in the source; the source is a record of the library;
                an instruction that is not from the user; or a field makes no sense.
        """
        cited: tuple[Cited, ...] = ()
        if source is not None or quote is not None:
            if not isinstance(source, Message):
                raise MemoryUseError(
                    f"source= takes a message, and quote= is of it: not {source!r:.100}"
                )
            quote = source.content if quote is None else checked_text("quote=", quote)
            cited = (Cited(message=source.id, quote=quote),)
        if conversation is not None:
            checked_text("conversation=", conversation)
        try:
            draft = Draft(
                text=text,
                sources=cited,
                slot=slot,
                about=about,
                kind=kind,
                replaces=tuple(sorted(names_in("replaces", replaces))),
                unsure=unsure,
                valid_from=valid_from,
                valid_to=valid_to,
                expires_at=expires_at,
            )
        except ValidationError as error:
            problem = "; ".join(error_lines(error, "the fact"))
            raise MemoryUseError(f"remember({text!r:.100}): {problem}") from error
        said = [source] if source is not None else []
        batch = Batch(said, conversation=conversation, names=self.names, by="program")
        fact = checked_fact(draft, batch, draft.replaces, self.clock())
        if isinstance(fact, Refusal):
            place = "" if source is None else f"message {source.id}"
            problems = {
                "not quoted": f"quote={quote!r:.100} is not in {place}",
                "recalled": f"{place} is no source: it is a system message, or quotes what was "
                "recalled",
                "instruction": "instructions are kept only if the user gives them",
            }
            problem = problems.get(fact.reason, fact.reason.removeprefix("invalid: "))
            raise MemoryUseError(f"remember({text!r:.100}): {problem}")
        return await self.store(fact)

    async def correct(self, fact_id: str, text: str) -> Fact:
        """Replace a fact by what the user says now, outside of a conversation; return the new one.

        Args:
            fact_id: The fact; it stays in the history.
            text: What is true, as a short sentence.

        Raises:
            MemoryUseError: There is no such fact, or the text makes no sense.
        """
        (old,) = [fact for fact in await self.history(fact_id) if fact.id == fact_id]
        if not checked_text("correct()", text).strip():
            raise MemoryUseError("correct(): the text is empty")
        said = Message.user(text.strip(), created_at=self.clock())
        kept: dict[str, Any] = {"slot": old.slot, "about": old.about, "kind": old.kind}
        if old.status == "planned":
            kept["valid_from"] = old.valid_from
        return await self.remember(said.content, source=said, replaces=[fact_id], **kept)

    async def store(self, fact: Fact) -> Fact:
        """Store a fact that was made elsewhere; return it, or the same one if it is known."""
        if not isinstance(fact, Fact):
            raise MemoryUseError(f"store() takes a fact (Fact), not {fact!r:.100}")
        stored = fact

        def plan() -> Sequence[BaseModel]:
            nonlocal stored
            known = self.log.facts()
            if missing := [i for i in fact.replaces if i not in known]:
                raise MemoryUseError(f"replaces={missing}: no facts have these IDs")
            same, again = self.log.held_as(fact)
            stored = same or fact
            return again if same else [fact]

        await self.log.write(plan)
        return self.log.facts()[stored.id]

    async def learn(self, *conversations: Memory | str, extract: Extract | None = None) -> Learned:
        """Read what is new in conversations, and store the facts that it tells.

        Every message is read once, over all processes and crashes: facts and how far was read are
        one append. The extractor is called at most once for 20 messages, and not where the user
        says nothing new.

        Args:
            *conversations: Memories, or names of sessions of the tenant in the journal; none for
                all sessions of the tenant.
            extract: In place of that of this object.

        Raises:
            MemoryUseError: There is no extractor; or a memory cannot be read.
        """
        make = extract or self.required_extractor
        learned = Learned()
        for conversation in conversations or await self.unread():
            async with learning.opened(self, conversation) as opened:
                while opened and (reading := await learning.read_next(self, opened)) is not None:
                    with self.log.work_for("learn"):
                        drafts = await learning.extract(make, reading)
                    reading = await learning.still_there(opened, reading)
                    learned += await learning.write(self, reading, drafts)
        await learning.tell_learned(self, run_here())
        known = self.log.facts()  # with what the others say of each
        return replace(learned, facts=tuple(known[f.id] for f in learned.facts if f.id in known))

    @property
    def learns(self) -> bool:
        """Whether the program learns from conversations: it has an extractor and may write."""
        return self.extract is not None and self.mode != "agent" and not self.log.readonly

    @property
    def required_extractor(self) -> Extract:
        """The extractor.

        Raises:
            MemoryUseError: There is none.
        """
        if self.extract is None:
            raise MemoryUseError(
                "Learning needs an extractor: UserMemory(extract=model_extractor(llm))"
            )
        return self.extract

    async def unread(self) -> list[str]:
        """Return the names of the tenant's sessions that :meth:`learn` has not read to their ends.

        Raises:
            MemoryUseError: There is no journal that has sessions.
        """
        from agent_brain.memories.sessions.listing import sessions_of, tenant_prefix

        if self.journal is None:
            raise MemoryUseError("learn() without conversations reads those of a journal")
        await self.log.look()
        read = {each.conversation: each.entries for each in self.log.known.all(ReadUpTo)}
        lasts = await self.journal.lasts(tenant_prefix(self.tenant))
        names = await sessions_of(self.journal, self.tenant)
        long = {long_term_session(name) for name in names}  # which have the same messages
        ends = {name: lasts.get(session_key(name, self.tenant)) for name in names}
        return [name for name in names if name not in long and ends[name] != read.get(name)]

    async def edit_block(self, name: str, text: str, *, expect: int | None = None) -> Block:
        """Write a block, a short text about the user; return it.

        Args:
            name: Its name, such as ``"persona"``; up to 64 characters.
            text: Its text, up to 2,000 characters; empty removes it from the context.
            expect: The version that is replaced, 0 for none; None replaces any.

        Raises:
            MemoryUseError: Another version is there; nothing was written. Or the name or the text
                is too long.
        """
        now = self.clock()

        def plan() -> list[Block]:
            versions = self.log.blocks(name)
            at = versions[-1].version if versions else 0
            if expect is not None and expect != at:
                now_there = f"version {at}: {versions[-1].text!r}" if versions else "not there"
                raise MemoryUseError(
                    f"Block {name!r} is {now_there}, and version {expect} was to be replaced. "
                    "Nothing was written: read it again"
                )
            written = Block(name=name, text=text, version=at + 1, at=now)
            self._check_number_of_blocks([written])
            return [written]

        try:
            (written,) = await self.log.write(plan)
        except ValidationError as error:
            problem = "; ".join(error_lines(error))
            raise MemoryUseError(f"A block's {problem}. Nothing was written") from error
        return cast("Block", written)

    def _check_number_of_blocks(self, added: Iterable[Block]) -> None:
        there = {block.name for block in self.log.known.all(Block)}
        new = {block.name for block in added} - there
        if new and len(there | new) > MOST_BLOCKS:
            raise MemoryUseError(f"There are at most {MOST_BLOCKS} blocks. Nothing was written")

    async def blocks(self) -> list[Block]:
        """Return the current version of each block that is not empty, by name."""
        await self.log.look()
        return self.log.newest_blocks()

    async def block_history(self, name: str) -> list[Block]:
        """Return all versions of a block, oldest first."""
        await self.log.look()
        return self.log.blocks(name)

    # Reading

    async def facts(
        self,
        *,
        about: str | None = None,
        slot: str | None = None,
        kind: Kind | None = None,
        as_of: datetime | None = None,
        status: Status | Literal["all"] = "current",
    ) -> list[Fact]:
        """Return facts in the order in which they were said.

        Args:
            about: Only about this person; ``"user"`` is the user.
            slot: Only of this slot.
            kind: Only of this kind.
            as_of: Those that held at this moment (aware), by what is known now; claims never do.
            status: Only those with this status, or ``"all"``; without ``as_of``.
        """
        if as_of is not None:
            moment("as_of", as_of)
        if status not in (*get_args(Status), "all"):
            raise MemoryUseError(f"facts(status={status!r}): 'all', or {get_args(Status)}")
        if kind is not None and kind not in get_args(Kind):
            raise MemoryUseError(f"facts(kind={kind!r}): one of {get_args(Kind)}")
        for name, value in (("about", about), ("slot", slot)):
            if value is not None:
                checked_text(f"facts({name}=)", value)
        await self.log.look()
        return [
            fact
            for fact in (self.log.facts_at(as_of) if as_of else self.log.facts().values())
            if (about is None or fact.said[0] == folded(about))
            and (slot is None or fact.said[1] == folded(slot))
            and kind in (None, fact.kind)
            and (as_of is not None or status in ("all", fact.status))
        ]

    async def history(self, fact_id: str) -> list[Fact]:
        """Return a fact with those that it replaced and that replaced it, oldest first.

        Raises:
            MemoryUseError: There is no such fact.
        """
        checked_text("history()", fact_id)
        await self.log.look()
        facts = self.log.facts()
        if fact_id not in facts:
            raise MemoryUseError(f"No fact has the ID {fact_id!r}")
        chain, waiting = set[str](), [fact_id]
        while waiting:
            at = waiting.pop()
            if at in chain or at not in facts:
                continue
            chain.add(at)
            waiting += [facts[at].replaced_by or "", *facts[at].replaces]
            waiting += [fact.id for fact in facts.values() if fact.replaced_by == at]
        return [fact for fact in facts.values() if fact.id in chain]

    @overload
    async def recall(
        self, query: str, what: Literal["facts"] = "facts", k: int = 10
    ) -> list[Fact]: ...

    @overload
    async def recall(
        self, query: str, what: Literal["messages"], k: int = 10
    ) -> list[Recalled]: ...

    @overload
    async def recall(self, query: str, what: What, k: int = 10) -> list[Fact | Recalled]: ...

    async def recall(self, query: str, what: What = "facts", k: int = 10) -> Any:
        """Return what fits a query best, best first.

        Args:
            query: A question, or any text.
            what: ``"facts"`` that are current; ``"messages"`` of all conversations of the tenant;
                or ``"both"``: facts, then messages that are the source of none of them, nor of
                what they have replaced.
            k: At most so many of each.

        Raises:
            MemoryUseError: ``what`` or ``k`` makes no sense.
        """
        if what not in get_args(What):
            raise MemoryUseError(f"recall(what={what!r}): 'facts', 'messages' or 'both'")
        checked_text("recall()", query)
        if not is_count(k, least=1):
            raise MemoryUseError(f"recall(k={k!r}): a whole number, at least 1")
        await self.log.look()
        if what == "messages":
            return await self.messages(query, k, outdated=True)
        facts = await self.fitting(query, k)
        if what == "facts":
            return facts
        used = {source.message for fact in facts for source in fact.sources}
        return [*facts, *await self.messages(query, k, used)]

    async def fitting(
        self, query: str, k: int, statuses: Collection[Status] = CURRENT
    ) -> list[Fact]:
        """Return the facts with one of ``statuses`` that fit a query best; after a look."""
        facts = self.log.facts()

        def fits(message: Message) -> bool:
            return message.id in facts and facts[message.id].status in statuses

        hits = await self.log.find(query, k, fits)
        return [facts[hit.message.id] for hit in hits if hit.message.id in facts]

    async def messages(
        self,
        query: str,
        k: int,
        without: Collection[str] = (),
        *,
        outdated: bool = False,
        conversation: Collection[str] = (),
    ) -> list[Recalled]:
        """Return messages of all conversations that fit a query best; after a look.

        Args:
            query: A question, or any text.
            k: At most so many.
            without: IDs of messages to leave out.
            outdated: Also those that say what does not hold any more.
            conversation: IDs of its messages: it is left out, and so are its copies.
        """
        if self.journal is None:
            return []
        self.log.facts()

        def fits(message: Message) -> bool:
            holds = outdated or not self.log.known.is_outdated(message.id)
            return holds and message.id not in without

        return await self.log.find(query, k, fits, scope="tenant", but=conversation)

    async def is_new(self, text: str) -> bool:
        """Return whether a text may say something that is not known; without a model.

        Thanks, mere questions, and what a current fact says in the same words, are not new.
        """
        checked_text("is_new()", text)
        if not says_something(text):
            return False
        await self.log.look()
        return said_in(text, await self.fitting(text, 5, LIVE)) is None

    def first_of(self, lists: Sequence[Sequence[Fact]], k: int) -> list[Fact]:
        """Return ``k`` facts, the first ones of some lists, then the newest; after a look."""
        firsts = (fact for row in zip_longest(*lists) for fact in row if fact is not None)
        ranked = dict.fromkeys(fact.id for fact in firsts)
        facts = self.log.facts()
        for fact in reversed(facts.values()):
            if len(ranked) >= k:
                break
            if fact.status == "current":  # one to replace may share no word with what replaces it
                ranked.setdefault(fact.id)
        return [facts[i] for i in [*ranked][:k]]

    async def refusals(self) -> dict[str, int]:
        """Return how many drafts were refused when conversations were read, by reason."""
        await self.log.look()
        return dict(
            sum((Counter(read.refused) for read in self.log.known.all(ReadUpTo)), Counter())
        )

    def tools(self) -> list[BaseTool]:
        """Return tools for a model: ``remember``, ``recall_user``, ``forget``, ``edit_block``."""
        return [*self._tools]

    def profile(self) -> list[Fact]:
        """Return the first facts of the profile; after a look."""
        facts, version = self.log.facts().values(), self.log.known.version
        if self._profile[0] != version:
            self._profile = version, profile_of(facts)
        return self._profile[1]

    # Forgetting, exporting

    async def forget(
        self,
        fact_id: Fact | str | None = None,
        *,
        text: str | None = None,
        slot: str | None = None,
        about: str | None = None,
        conversation: str | None = None,
        everything: bool = False,
        memory: MakeMemory | None = None,
        running: Memory | None = None,
    ) -> int:
        """Forget facts and what they rest on, in every session, fork and trace of the tenant.

        Give one of the choices. What a forgotten fact had replaced stays replaced.

        Args:
            fact_id: The fact with this ID, or this fact, and the messages that it cites.
            text: Every fact, block and message that contains this text, whatever the case and the
                spaces.
            slot: The facts of this slot about the user, also those that were replaced.
            about: The facts about a person, and the messages that they cite.
            conversation: A session, its messages wherever they were copied, and the facts that rest
                on it alone; others keep the sources that are left.
            everything: All facts and blocks, and all sessions of the tenant.
            memory: Makes the memory of a session, as for :func:`forget_in_sessions`.
            running: The memory of a run in progress, through which its session is changed.

        Returns:
            How many facts were forgotten.

        Raises:
            MemoryUseError: Nothing, or more than one thing, was chosen; or there is no such fact;
                or the session of ``running`` would be deleted. Nothing was forgotten.
            JournalError: Some sessions are in use: call it again. The facts are still there.
        """
        if isinstance(fact_id, Fact):
            fact_id = fact_id.id
        choice = erasing.Chosen(fact_id, text, slot, about, conversation, everything)
        return await erasing.forget(self, choice, memory, running)

    async def export(self) -> dict[str, Any]:
        """Return what is known as JSON data, for :meth:`load`: facts with sources, and blocks."""
        await self.log.look()
        known, facts = self.log.known, [*self.log.facts().values()]
        blocks, again = [*known.all(Block)], [*known.all(Again)]
        exported = Exported(version=1, facts=facts, blocks=blocks, again=again)
        return exported.model_dump(mode="json")

    async def load(self, data: dict[str, Any]) -> int:
        """Add what :meth:`export` returned; return how many facts were new.

        Raises:
            MemoryUseError: It is not what :meth:`export` returns; nothing was added.
        """
        try:
            given = Exported.model_validate(data)
            if not {"facts", "blocks"} & {*data}:
                raise ValueError("It has neither facts nor blocks")
        except ValueError as error:
            lines = error_lines(error) if isinstance(error, ValidationError) else [str(error)]
            raise MemoryUseError(
                f"load() takes what export() returned, in version 1: {'; '.join(lines)}"
            ) from None

        def plan() -> Sequence[BaseModel]:
            known = self.log.facts()
            added = [fact for fact in given.facts if fact.id not in known]
            held = {(block.name, block.version) for block in self.log.known.all(Block)}
            written = [block for block in given.blocks if (block.name, block.version) not in held]
            self._check_number_of_blocks(written)
            noted = self.log.known.all(Again)
            return [*added, *written, *(each for each in given.again if each not in noted)]

        return sum(isinstance(item, Fact) for item in await self.log.write(plan))

    # Life

    async def open(self) -> None:
        """Read what is stored."""
        await self.log.look()

    async def aclose(self) -> None:
        """Close what this object opened. Idempotent."""
        await self.log.aclose()

    async def __aenter__(self) -> Self:
        await self.open()
        return self
