"""The sessions of a server: a brain for each, opened when needed and closed when unused."""

from __future__ import annotations

import json
import secrets
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeAlias, get_args

import anyio
from anyio.abc import TaskGroup, TaskStatus
from pydantic import JsonValue

from agent_brain.brain import Brain
from agent_brain.common.aio import maybe_await
from agent_brain.common.litellm import connections
from agent_brain.common.secrets import get_logger
from agent_brain.errors import (
    BrainDefinitionError,
    BrainUseError,
    LeaseHeldError,
    SessionConflictError,
    SessionNotFoundError,
    SessionsClosedError,
    TooManySessionsError,
)
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import JournalError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.opening import open_journal
from agent_brain.memories.message import Message
from agent_brain.memories.registry import create_memory
from agent_brain.memories.sessions.copies import SessionCopy
from agent_brain.memories.sessions.forgetting import forget_in_sessions
from agent_brain.memories.store.options import JournalLike
from agent_brain.memories.store.session import delete_key, session_key
from agent_brain.memories.wrapper import WrappingMemory
from agent_brain.serving import forking
from agent_brain.serving.catalog import (
    Branch,
    Catalog,
    Origin,
    SessionInfo,
    chat_of,
    make_title,
    matches,
)
from agent_brain.serving.forking import Chat, Edits
from agent_brain.serving.pool import Pool
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun, WhenBusy
from agent_brain.usage.ledger import UsageLedger

if TYPE_CHECKING:
    from agent_brain.memories.user.user_memory import UserMemory
    from agent_brain.serving.users import KnownUsers, UserLike

logger = get_logger(__name__)

MakeMemory: TypeAlias = Callable[["SessionKey"], Memory | Awaitable[Memory]]
MAX_ID = 128  # characters
LEARN_SECONDS = 10.0  # for learning when the server ends
CLOSED = "The sessions are closed: use 'async with Sessions(…) as sessions'"


class SessionKey(NamedTuple):
    """Which session, and whose.

    Attributes:
        owner: The tenant of the session's memory: the user, or tenant and user; None for nobody.
        session: The ID.
    """

    owner: str | None
    session: str


def owner_of(user: str | None, tenant: str | None = None) -> str | None:
    """Return the journal's tenant for a user of a tenant; no two pairs have the same one."""
    if tenant is None and (user is None or not user.startswith("[")):
        return user
    return json.dumps([tenant, user], ensure_ascii=False)


class Sessions:
    """Gives the sessions of a server a brain each; use it as an async context manager.

    One brain says how all sessions run: its net, tools, limits and hooks. Each session has a memory
    of its own::

        brain = Brain("react", tools=[search])
        async with Sessions(brain, "windowed", journal="chats.db") as sessions:
            async with sessions.use(None, user="ann") as session:
                async with session.stream("Hello!") as run:
                    async for item in run:
                        print(item.event)

    A session belongs to the user who opened it. For a caller without a user, only IDs that the
    server has made are valid; they cannot be guessed, and knowing one grants access.

    Attributes:
        brain: Runs every session.
        ledger: Counts what models use, by run, session and user (as ``owner_of`` names it). It is
            the brain's, if it has a :class:`~agent_brain.UsageLedger` among its hooks.

    Args:
        brain: Runs every session, with its tools; its own memory is not used. Closed by the caller.
        memory: The name of a registered memory, or a function that returns the memory of a session
            with the brain's tools.
        journal: Where the sessions are stored: a journal, or the path of a SQLite file, which is
            closed with the sessions. Without one, a session ends when it is closed; a memory with
            the option ``path`` stores them there.
        memory_options: Further options of the memory.
        when_busy: What to do with a task for a session that has a run: ``"wait"`` for its end,
            ``"refuse"`` it, or ``"queue"`` it as a message to the run.
        max_sessions: Maximum number of open sessions. The least recently used are closed.
        max_per_user: Maximum number of open sessions of one user, likewise.
        idle: Seconds after which an unused session is closed; None keeps it open.
        grace: Seconds without a reader after which a run that the server drives is stopped after
            its step; after twice as many it is cancelled. None lets it continue.
        user: What is known about each user over all of their sessions, which needs a journal:
            options of :class:`~agent_brain.memories.UserMemory`, such as ``{"extract": …}``, or a
            function from the tenant of a user's sessions to the user's memory. Runs see it and
            have its tools; it is learned in the background. Nothing is kept about callers who are
            not identified.

    Raises:
        BrainDefinitionError: A value is not valid.
    """

    def __init__(
        self,
        brain: Brain[Any],
        memory: str | MakeMemory = "messages",
        *,
        journal: JournalLike | None = None,
        memory_options: Mapping[str, Any] | None = None,
        when_busy: WhenBusy = "wait",
        max_sessions: int = 1000,
        max_per_user: int = 100,
        idle: float | None = 600.0,
        grace: float | None = 30.0,
        user: UserLike | None = None,
    ) -> None:
        numbers = {"max_sessions": max_sessions, "max_per_user": max_per_user}
        for name, value in {**numbers, "idle": idle, "grace": grace}.items():
            if value is not None and not value > 0:
                raise BrainDefinitionError(f"{name} must be greater than 0, not {value!r}")
        if when_busy not in get_args(WhenBusy):
            raise BrainDefinitionError(
                f"when_busy={when_busy!r}: choose one of {', '.join(get_args(WhenBusy))}"
            )
        self.brain = brain
        known = [hook for hook in brain.hooks if isinstance(hook, UsageLedger)]
        self.ledger = known[0] if known else UsageLedger()
        self._hooks = brain.hooks if known else (*brain.hooks, self.ledger)
        self.when_busy: WhenBusy = when_busy
        self._memory = memory
        self._memory_options = _checked_options(memory, memory_options or {})
        if journal is None and (folder := self._memory_options.get("path")) is not None:
            journal = Path(folder) / "journal.db"  # where a vector memory keeps its messages
            journal.parent.mkdir(parents=True, exist_ok=True)
        self._owned = None if isinstance(journal, Journal | None) else open_journal(journal)
        self._journal = journal if isinstance(journal, Journal) else self._owned
        self._catalog = None if self._journal is None else Catalog(self._journal)
        self._max_sessions = max_sessions
        self._max_per_user = max_per_user
        self._idle = idle
        self._grace = grace
        self._known = self._known_users(user)
        self._pool: Pool[SessionKey, Session] = Pool(
            self._open,
            self._left,
            most=max_sessions,
            idle=idle,
            group=lambda key: key.owner,
            most_of_group=max_per_user,
        )
        self._tasks: TaskGroup | None = None
        self._runs: set[SessionRun] = set()
        self._in_a_hurry = False
        self.active = False

    # Sessions

    @asynccontextmanager
    async def use(
        self, session: str | None, *, user: str | None = None, tenant: str | None = None
    ) -> AsyncIterator[Session]:
        """Yield a session, which stays open meanwhile.

        Args:
            session: The ID; None for a new session with an ID that cannot be guessed.
            user: Who asks; None if nobody is identified.
            tenant: The user's tenant; users of different tenants are different users.

        Raises:
            SessionNotFoundError: The caller is not identified, and has no session of that ID.
            TooManySessionsError: Too many sessions are in use.
            SessionsClosedError: The sessions are closed.
            BrainUseError: The ID is not valid.
        """
        name = secrets.token_urlsafe(16) if session is None else session
        key = SessionKey(owner_of(user, tenant), name)
        if not key.session or len(key.session) > MAX_ID or not key.session.isprintable():
            raise BrainUseError(
                f"A session ID has 1 to {MAX_ID} printable characters, unlike {key.session[:40]!r}"
            )
        if session is not None and key.owner is None and not await self._has(key):
            raise _not_found(session)
        self._check_room(key)
        ended = session is not None and key.owner is None and self._catalog is None
        async with self._pool.take(key, _ended if ended else None) as opened:
            await opened.refresh()
            yield opened

    @asynccontextmanager
    async def temporary(
        self,
        messages: Iterable[Message] = (),
        *,
        user: str | None = None,
        tenant: str | None = None,
    ) -> AsyncIterator[Session]:
        """Yield a session that begins with ``messages``, is not stored and ends with the block.

        Args:
            messages: What was said before.
            user: Who asks; hooks and memories see it as the tenant.
            tenant: The user's tenant.

        Raises:
            SessionsClosedError: The sessions are closed.
        """
        if not self.active:
            raise SessionsClosedError(CLOSED)
        key = SessionKey(owner_of(user, tenant), secrets.token_urlsafe(16))
        opened = await self._open(key, stored=False)
        try:
            await opened.memory.update([*messages])
            yield opened
        finally:
            with anyio.CancelScope(shield=True):
                await _close(opened)

    async def list(
        self,
        *,
        user: str | None = None,
        tenant: str | None = None,
        limit: int | None = None,
        after: str | None = None,
        search: str = "",
    ) -> list[SessionInfo]:
        """Return the sessions of a user that had a run or were named, the last changed first.

        Callers who are not identified get none, as knowing an ID grants access.

        Args:
            user: Whose.
            tenant: The user's tenant.
            limit: Maximum number; None for all.
            after: The ``cursor`` of the last session that the caller knows; None begins.
            search: Only those whose title contains this text, in any case.

        Raises:
            BrainUseError: ``after`` is not a cursor.
        """
        owner = owner_of(user, tenant)
        if owner is None:
            return []
        if self._catalog is not None:
            found = await self._catalog.sessions(owner, limit=limit, after=after, search=search)
        else:
            found = [*self._opened(owner, after, search)[:limit]]
        return [await self._as_of_now(info, SessionKey(owner, info.id)) for info in found]

    def _opened(self, owner: str, after: str | None, search: str) -> Sequence[SessionInfo]:
        """Return the open sessions of ``owner`` as :meth:`list` does, without a journal."""
        found = [
            replace(known.info, cursor=known.info.updated_at.isoformat() + known.id)
            for known in self._pool.values()
            if known.info and known.owner == owner and matches(known.info, search)
        ]
        found.sort(key=lambda info: info.cursor, reverse=True)
        return [info for info in found if after is None or info.cursor < after]

    async def rename(
        self, session: str, title: str, *, user: str | None = None, tenant: str | None = None
    ) -> SessionInfo:
        """Give a session another title, of which the first 80 characters are kept.

        Raises:
            SessionNotFoundError: There is no such session.
            BrainUseError: The title is empty.
        """
        if not (title := make_title(title)):
            raise BrainUseError("A session needs a title that is not empty")
        await self._existing(session, user, tenant)
        async with self.use(session, user=user, tenant=tenant) as opened:
            if opened.deleted:
                raise _not_found(session)
            known = opened.info or SessionInfo(session, title, datetime.now(UTC))
            named = replace(known, title=title)
            info = await self._note(opened, named, changes=["title", "updated_at"])
            return opened.with_status(info)

    async def delete(
        self, session: str, *, user: str | None = None, tenant: str | None = None
    ) -> None:
        """Cancel the run of a session and delete everything it holds.

        Raises:
            SessionNotFoundError: There is no such session.
            LeaseHeldError: Another process has a run in it; nothing was changed.
            SessionConflictError: The same, if its run has just begun.
        """
        key = await self._existing(session, user, tenant)
        self._check_room(key)
        async with self._pool.take(key) as opened:
            opened.deleted = True  # runs that wait for their turn do not begin
            try:
                if opened.run is not None:
                    opened.run.cancel()
                async with opened.exclusive(), opened.noting:
                    if self._pool.get(key) is not opened:  # deleted meanwhile
                        raise _not_found(session)
                    opened.deleted = True  # also if another deletion was refused meanwhile
                    await opened.erase()
                    if self._catalog is not None and self._journal is not None:
                        await self._catalog.remove(key.owner, session)
                        await delete_key(self._journal, session_key(session, key.owner))
                    if self._known is not None and key.owner is not None:
                        await self._known.drop_forgotten(key.owner)
            except (LeaseHeldError, SessionConflictError):  # another process runs it: no change
                opened.deleted = False
                raise
            finally:
                if opened.deleted:
                    if self._pool.get(key) is opened:  # not one opened after another deletion
                        self._pool.discard(key)
                    opened.log.close()

    async def forget(self, text: str, *, user: str | None = None, tenant: str | None = None) -> int:
        """Forget a text in all sessions of a user, as :func:`forget_in_sessions` does.

        Runs of the user that are in progress end first. Readers that come back find no earlier
        events of these sessions.

        Args:
            text: The text; in any case, with any spaces.
            user: Whose sessions.
            tenant: The user's tenant.

        Returns:
            How many messages were forgotten.

        Raises:
            BrainUseError: The user is not identified.
            JournalError: Some sessions could not be changed; call it again.
        """
        owner = owner_of(user, tenant)
        if owner is None:
            raise BrainUseError("forget() is for the sessions of a user: give user= or tenant=")
        count = 0
        async with AsyncExitStack() as stack:
            if self._known is not None:
                await stack.enter_async_context(self._known.alone(owner))
            for key in self._open_keys(owner):
                async with self._pool.take(key) as opened, opened.exclusive():
                    count += await opened.forget(text)
            if self._journal is not None and self._catalog is not None:
                count += await forget_in_sessions(
                    self._journal, tenant=owner, memory=self._memory_of, text=text
                )
                await self._read_titles(owner)
        return count

    def _open_keys(self, owner: str) -> Sequence[SessionKey]:
        return sorted(SessionKey(owner, s.id) for s in self._pool.values() if s.owner == owner)

    async def _read_titles(self, owner: str) -> None:
        assert self._catalog is not None
        for opened in self._pool.values():
            if opened.owner == owner:
                opened.info = await self._catalog.get(owner, opened.id)

    # What is known about users

    def _known_users(self, user: UserLike | None) -> KnownUsers | None:
        if isinstance(self.brain.memory, WrappingMemory):
            from agent_brain.memories.user.knowing import UserAwareMemory

            if isinstance(self.brain.memory, UserAwareMemory):
                raise BrainDefinitionError(
                    "Brain(user=…) knows one user, and sessions have many: give user= to Sessions"
                )
        if user is None:
            return None
        from agent_brain.serving.users import KnownUsers

        return KnownUsers(user, self._journal, self._hooks, self.look_after)

    @property
    def knows_users(self) -> bool:
        """Whether something is kept about users: ``user=`` was given."""
        return self._known is not None

    @asynccontextmanager
    async def known(
        self, *, user: str | None = None, tenant: str | None = None
    ) -> AsyncIterator[UserMemory]:
        """Yield what is known about a user; forget with :meth:`forget_known`.

        Raises:
            BrainUseError: Nothing is kept about users, or the user is not identified.
            SessionsClosedError: The sessions are closed.
        """
        users, owner = self._users_of(user, tenant)
        async with users.use(owner) as known:
            yield known.memory

    def _users_of(self, user: str | None, tenant: str | None) -> tuple[KnownUsers, str]:
        owner = owner_of(user, tenant)
        if self._known is None or owner is None:
            why = "Sessions(user=…) was not given" if self._known is None else "give user="
            raise BrainUseError(f"Nothing is kept about this user: {why}")
        if not self.active:
            raise SessionsClosedError(CLOSED)
        return self._known, owner

    async def forget_known(
        self,
        fact_id: str | None = None,
        *,
        user: str | None = None,
        tenant: str | None = None,
        **which: Any,
    ) -> int:
        """Forget facts and what they rest on, as :meth:`UserMemory.forget` does.

        Runs of the user that are in progress end first, and nothing is learned meanwhile.

        Args:
            fact_id: As for :meth:`UserMemory.forget`.
            user: Whose.
            tenant: The user's tenant.
            **which: ``text``, ``slot``, ``about``, ``conversation`` or ``everything``, which
                deletes all sessions of the user too.

        Returns:
            How many facts were forgotten.

        Raises:
            BrainUseError: As for :meth:`known`.
            MemoryUseError: Nothing, or more than one thing, was chosen; or there is no such fact.
            JournalError: Some sessions could not be changed; call it again.
        """
        users, owner = self._users_of(user, tenant)
        assert self._catalog is not None
        async with AsyncExitStack() as stack:
            memory = await stack.enter_async_context(users.alone(owner))
            chosen = {name: value for name, value in which.items() if value is not None}
            if chosen == {"everything": True} and fact_id is None:
                for info in await self.list(user=user, tenant=tenant):
                    await self.delete(info.id, user=user, tenant=tenant)
            for key in self._open_keys(owner):
                opened = await stack.enter_async_context(self._pool.take(key))
                await stack.enter_async_context(opened.exclusive())
                opened.log.clear()
            count = await memory.forget(fact_id, memory=self._memory_of, **which)
            await self._read_titles(owner)
        if (conversation := which.get("conversation")) is not None:
            with suppress(SessionNotFoundError):
                await self.delete(conversation, user=user, tenant=tenant)
        return count

    async def _memory_of(self, *, session: str, tenant: str | None, journal: Journal) -> Memory:
        return await self._make_memory(SessionKey(tenant, session), stored=True)

    async def fork(
        self,
        session: str,
        step: int,
        *,
        messages: Mapping[str, str] | None = None,
        calls: Mapping[str, Mapping[str, JsonValue]] | None = None,
        user: str | None = None,
        tenant: str | None = None,
    ) -> SessionInfo:
        """Copy a session as of a step into a new session, whose run can be resumed from there.

        ::

            copy = await sessions.fork("first", 12, messages={goal.id: "Plan a day in Bergen"})
            async with sessions.use(copy.id) as session:
                await session.start_resume()

        The session stays as it is.

        Args:
            session: The ID.
            step: The number of the step (:attr:`~agent_brain.memories.SavedStep.number`).
            messages: New texts of messages in the copy, by ID; there they have IDs of their own.
                The changed result of a tool counts as a success. What states have noted elsewhere,
                such as a plan, is not changed.
            calls: New arguments of calls that run next in the copy, by ID.
            user: Whose session it is.
            tenant: The user's tenant.

        Returns:
            The new session.

        Raises:
            SessionNotFoundError: There is no such session.
            StepNotFoundError: The journal does not have that step.
            BrainUseError: The session keeps no steps, or as of the step it has no such message, or
                no such call that runs next.
        """
        await self._existing(session, user, tenant)
        async with self.use(session, user=user, tenant=tenant) as source:
            copied = await forking.copy_as_of(source, step, Edits(messages or {}, calls or {}))
        origin = Origin(session, step)
        return await self._write(copied, forking.title_of(copied), origin, user=user, tenant=tenant)

    async def branch(
        self,
        session: str,
        message: str,
        text: str | None = None,
        *,
        user: str | None = None,
        tenant: str | None = None,
    ) -> SessionInfo:
        """Take the turn of a message another way, in a new session that is a branch of the chat.

        ::

            other = await sessions.branch("first", question.id, "And in Bergen?")
            async with sessions.use(other.id) as session:
                await session.start_resume()

        The session stays as it is. :meth:`chat` says what the branches of a chat are.

        Args:
            session: The ID.
            message: The ID of the message of a user.
            text: What it says in the branch, as a message with an ID of its own; None for the same
                message, to get another answer.
            user: Whose session it is.
            tenant: The user's tenant.

        Returns:
            The new session, as of the step that the message was recorded with.

        Raises:
            SessionNotFoundError: There is no such session.
            StepNotFoundError: The journal has no such message, or does not have that step.
            BrainUseError: The session keeps no steps, the message is not one of a user, or it would
                be empty.
        """
        catalog, owner = self._catalog, (await self._existing(session, user, tenant)).owner
        async with self.use(session, user=user, tenant=tenant) as source:
            step = await forking.step_with(source, message)
            edits = Edits({} if text is None else {message: text})
            copied = await forking.copy_as_of(source, step, edits)
            info = source.info if catalog is None else await catalog.get(owner, session)
        title = forking.title_of(copied) if info is None else info.title
        chat = session if info is None else chat_of(info)
        origin = Origin(session, step, None if catalog is None else chat)
        info = await self._write(copied, title, origin, user=user, tenant=tenant)
        if catalog is not None:
            branches = await catalog.branches(owner, chat)
            of = forking.first_with(branches, session, step)
            first = forking.first_of(branches, message)
            own = edits.ids.get(message, message)
            await catalog.add_branch(owner, chat, Branch(info.id, of, first, step, own))
        return info

    async def _write(
        self, copied: SessionCopy, title: str, origin: Origin, **whose: str | None
    ) -> SessionInfo:
        """Write a copy to a new session."""
        async with self.use(None, **whose) as target:
            kept = forking.kept_by(target)
            await copied.write(kept.journal, kept.key)
            await target.refresh()
            info = SessionInfo(target.id, title, datetime.now(UTC), origin=origin)
            return target.with_status(await self._note(target, info))

    async def chat(
        self, session: str, *, user: str | None = None, tenant: str | None = None
    ) -> Chat:
        """Return the sessions that are branches of the same chat, and where they part.

        Args:
            session: The ID of one of them.
            user: Whose session it is.
            tenant: The user's tenant.
        """
        owner, catalog = owner_of(user, tenant), self._catalog
        info = None if catalog is None else await catalog.get(owner, session)
        if catalog is None or info is None:
            return Chat([session], {})
        existing = await catalog.chat(owner, chat_of(info))
        branches = await catalog.branches(owner, chat_of(info))
        return Chat(existing, forking.choices_in(branches, session, existing))

    async def _existing(self, session: str, user: str | None, tenant: str | None) -> SessionKey:
        """Return the key of a session that there is.

        Raises:
            SessionNotFoundError: There is no such session.
        """
        key = SessionKey(owner_of(user, tenant), session)
        if not await self._has(key):
            raise _not_found(session)
        return key

    async def _has(self, key: SessionKey) -> bool:
        if key in self._pool:
            return True
        return self._catalog is not None and (await self._catalog.get(*key)) is not None

    @property
    def keeps_steps(self) -> bool:
        """Whether sessions keep the steps of their runs; with memories of your own, they may."""
        return self._journal is not None or not isinstance(self._memory, str)

    @property
    def open_sessions(self) -> int:
        """The number of open sessions."""
        return len(self._pool)

    @property
    def active_runs(self) -> int:
        """The number of runs in progress."""
        return len(self._runs)

    async def _as_of_now(self, info: SessionInfo, key: SessionKey) -> SessionInfo:
        opened = self._pool.get(key)
        if opened is not None:
            return opened.with_status(info)
        return info if self._catalog is None else await self._catalog.as_of_now(key.owner, info)

    def _check_room(self, key: SessionKey) -> None:
        if not self.active:
            raise SessionsClosedError(CLOSED)
        if self._pool.is_used(key):
            return
        if self._pool.used >= self._max_sessions:
            raise TooManySessionsError("Too many sessions are in use: try again later")
        if key.owner is not None and self._pool.used_of(key.owner) >= self._max_per_user:
            raise TooManySessionsError(
                f"You use {self._max_per_user} sessions at once: end one of them first"
            )

    async def _open(self, key: SessionKey, *, stored: bool = True) -> Session:
        async with AsyncExitStack() as using:
            known = None
            if self._known is not None and key.owner is not None:
                known = await using.enter_async_context(self._known.use(key.owner))
            memory = await self._make_memory(key, stored=stored)
            if known is not None:
                memory = known.memory.over(memory, learn=False)
            brain = self.brain.over(memory)
            brain.hooks = self._hooks
            kept = using.pop_all()
        session = Session(key.session, key.owner, brain, self, kept, stored=stored)
        try:
            await memory.open()
            if stored and self._catalog is not None:
                session.info = await self._catalog.get(*key)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _close(session)
            raise
        return session

    async def _left(self, session: Session) -> None:
        """Close a session that nobody uses, and learn from it."""
        await _close(session)
        if self._known is not None and session.owner is not None:
            self._known.left(session.owner, session.id)

    async def _make_memory(self, key: SessionKey, *, stored: bool) -> Memory:
        tools = self.brain.memory.available_tools.values()
        if stored and not isinstance(self._memory, str):
            memory = await maybe_await(self._memory(key))
            memory.add_tools(tool for tool in tools if tool.name not in memory.available_tools)
            return memory
        options = {**self._memory_options, "session": key.session, "tenant": key.owner}
        if not stored:
            options.pop("path", None)
        elif self._journal is not None:
            options["journal"] = self._journal
        name = self._memory if isinstance(self._memory, str) else "messages"
        return create_memory(name, tools, **options)

    # Runs

    async def run_begins(self, session: Session, run: SessionRun, task: str | None) -> None:
        """Note that a run begins, with ``task`` unless it is resumed.

        Raises:
            SessionsClosedError: The sessions are being closed.
            SessionNotFoundError: The session was deleted meanwhile.
        """
        if not self.active:
            raise SessionsClosedError(CLOSED)
        if session.deleted:
            raise _not_found(session.id)
        known = session.info
        if (known is None or self._catalog is not None) and task is not None and session.stored:
            known = SessionInfo(session.id, make_title(task), datetime.now(UTC))  # if it is new
        if known is not None:  # as running, which is what is left of it after a kill
            began = replace(known, status="running", failed=False, resumable=False)
            await self._note(session, began, again=task is None)
            if not self.active:
                raise SessionsClosedError(CLOSED)
        self._runs.add(run)  # last: from here on it can be stopped

    async def _note(
        self,
        session: Session,
        info: SessionInfo,
        *,
        changes: Collection[str] = (),
        again: bool = False,
    ) -> SessionInfo:
        """Record what the list says of a session, one change at a time; return it.

        See :meth:`Catalog.note`.
        """
        info = replace(info, updated_at=datetime.now(UTC))
        if self._catalog is None:
            session.info = info
            return info
        async with session.noting:
            session.info = info = await self._catalog.note(
                session.owner, info, changes=changes, again=again
            )
        return info

    async def run_ended(self, session: Session, run: SessionRun) -> None:
        """Note that a run has ended, whether it has failed, and whether it can be resumed."""
        self._runs.discard(run)
        if self._known is not None and session.owner is not None and session.stored:
            self._known.heard(session.owner, session.id)
        if session.info is None or session.deleted or not run.begun:
            return
        ended = session.with_status(session.info)
        if ended.status != "waiting":
            ended = replace(ended, status="closed")
        try:
            await self._note(session, ended, again=True)
        except JournalError:  # the run has ended all the same
            logger.warning("The list does not show how session %r ended", session.id, exc_info=True)

    async def drive(self, session: Session, run: SessionRun) -> None:
        """Drive ``run`` in a task of its own; return once it has begun.

        Raises:
            Exception: The run could not begin.
        """
        await self._group.start(self._drive, session, run)

    def drive_soon(self, session: Session, run: SessionRun) -> None:
        """Like :meth:`drive`, without waiting for the beginning."""
        self._group.start_soon(self._drive, session, run)

    async def continues(self, session: Session) -> bool:
        """Return whether the run of a session, which no process has, is continued by itself."""
        return False

    def look_after(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Do ``work`` in the background until it ends, or the sessions are closed."""
        if self.active:
            self._group.start_soon(work)

    async def _drive(
        self,
        session: Session,
        run: SessionRun,
        *,
        task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED,
    ) -> None:
        key = SessionKey(session.owner, session.id)
        async with self._pool.take(key):  # it stays open
            try:
                async with run:
                    session.log.unread_since = anyio.current_time()
                    await anext(run)
                    task_status.started()
                    async for _ in run:
                        pass
            except Exception:
                if not run.begun and task_status is not anyio.TASK_STATUS_IGNORED:
                    raise
                what = "failed" if run.begun else "did not begin"
                logger.warning("A run of session %r %s", session.id, what, exc_info=True)

    # Lifetime

    @property
    def _group(self) -> TaskGroup:
        if self._tasks is None or not self.active:
            raise SessionsClosedError(CLOSED)
        return self._tasks

    async def _tidy(self) -> None:
        """Stop runs that nobody reads and close unused sessions, until cancelled."""
        periods = [period for period in (self._idle, self._grace) if period is not None]
        if not periods:
            return
        while True:
            await anyio.sleep(min(periods) / 4)
            await self._pool.expire()
            if self._grace is not None:
                for session in self._pool.values():
                    session.tidy(anyio.current_time(), self._grace)
                    del session  # else the last one is kept

    async def stop(self, timeout: float = 10.0) -> None:
        """Stop all runs softly, end all readers, and accept no more runs.

        Args:
            timeout: Seconds after which runs that have not ended are cancelled. With 0, learning is
                cut short too, also where it continues already; the rest is learned later.
        """
        self.active = False
        self._in_a_hurry = self._in_a_hurry or not timeout
        if self._known is not None and not timeout:
            self._known.hurry()
        runs = [*self._runs]
        for run in runs:
            run.stop()
        with anyio.move_on_after(timeout):
            for run in runs:
                await run.over()
        for run in runs:
            run.cancel()
        for session in self._pool.values():
            session.log.close()

    async def __aenter__(self) -> Self:
        if self._tasks is not None:
            raise BrainUseError("Sessions can be opened only once")
        await self.brain.open()
        self._tasks = await anyio.create_task_group().__aenter__()
        self._tasks.start_soon(self._tidy)
        self.active = True
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        assert self._tasks is not None
        with anyio.CancelScope(shield=True):
            await self.stop(0 if error is not None else 10.0)
        self._tasks.cancel_scope.cancel()
        try:
            await self._tasks.__aexit__(None, None, None)
        finally:
            with anyio.CancelScope(shield=True):
                await self._pool.aclose()
                if self._known is not None:
                    await self._known.aclose(seconds=0 if self._in_a_hurry else LEARN_SECONDS)
                if self._owned is not None:
                    await self._owned.aclose()
                await connections.close()  # of LiteLLM, which opens new ones if they are needed


async def _close(session: Session) -> None:
    session.log.close()
    try:
        await session.brain.aclose()
    finally:
        async with session.using:
            await session.memory.aclose()


async def _ended(key: SessionKey) -> Session:
    raise _not_found(key.session)


def _checked_options(memory: object, options: Mapping[str, Any]) -> dict[str, Any]:
    own = sorted({"journal", "session", "tenant"} & options.keys())
    if own:
        raise BrainDefinitionError(
            f"memory_options={own}: the sessions choose these; give journal= to Sessions"
        )
    if options and not isinstance(memory, str):
        raise BrainDefinitionError("memory_options= go with a memory by name")
    return dict(options)


def _not_found(session: str) -> SessionNotFoundError:
    return SessionNotFoundError(f"There is no session {session!r}, or it is not yours")
