"""A queue of runs, and the workers that do them."""

from __future__ import annotations

import math
import re
import threading
from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from anyio import to_thread
from sniffio import current_async_library

from agent_brain.brain import Brain
from agent_brain.common.errors import EventLoopError
from agent_brain.common.litellm import connections
from agent_brain.common.secrets import scrub as hide
from agent_brain.common.suggest import did_you_mean
from agent_brain.common.values import check_count
from agent_brain.errors import QueueError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.opening import open_journal
from agent_brain.memories.journal.postgres.journal import PostgresJournal
from agent_brain.memories.journal.ram import RamJournal
from agent_brain.memories.message import Message
from agent_brain.workers.client import QueueClient
from agent_brain.workers.liveness import Liveness, worker_name
from agent_brain.workers.part import (
    Part,
    Schedule,
    checked_label,
    checked_name,
    checked_schedule,
    task_data,
)
from agent_brain.workers.performing import one_error
from agent_brain.workers.worker import Worker
from agent_brain.workers.workflows import Workflows

if TYPE_CHECKING:
    from agent_brain.serving.sessions import Sessions
    from agent_brain.serving.users import UserLike

_one_worker = threading.Lock()  # DBOS is one object for the whole process


class RunQueue:
    """A queue of runs that any number of workers do, on any number of machines.

    ::

        queue = RunQueue("postgresql://me@db.example/app", {"support": Brain("react", tools=[…])})

        async with queue.client() as client:             # in any program
            run = await client.submit("support", "Where is my order?", session="42")
            print((await run.result()).answer)

    ``agent-brain worker app:queue`` starts a worker. On asyncio only. Needs
    ``pip install "agent-brain[dbos]"``. Building a queue connects to nothing.

    Args:
        place: A PostgreSQL database, ``postgresql://…``; or the path of a SQLite file, for the
            processes of one machine.
        brains: Brains by the names that runs are submitted with. Each run uses a copy over the
            session's memory, made as the brain's own, which must have been given by name.
        journal: Where the sessions and events are stored, if not in ``place``.
        at_once: Runs at once in a worker.
        per_tenant: Runs of one tenant at once, over all workers; None for no limit. Runs without
            a tenant count as those of one.
        in_all: Runs at once over all workers; None for no limit.
        version: The version of the program. A run that was begun by a version is continued by
            workers of that version only.
        continues: Older versions whose runs this one can continue.
        deps: What the runs need, as for :meth:`Brain.run`; the same object for all.
        user: What is known about each tenant over all of their sessions, as for
            :class:`~agent_brain.serving.Sessions`: runs see it and have its tools, and sessions of
            a server learn. Without one, run the net ``learn`` on the queue.
        name: The name of the queue in the database: 3 to 200 of ``a-z``, ``0-9``, ``-``, ``_``.
        poll: Seconds between looks of a worker for runs to begin.
        dead_after: Seconds of silence after which a worker of another machine is taken for dead,
            and its runs are continued by others. One of the same machine is noticed in about 2.
        grace: Seconds that a worker that is stopped gives its runs to end their step.

    Raises:
        QueueError: An argument is wrong.
        BrainDefinitionError: The memory of a brain has a session of its own.
        MemoryDefinitionError: The memory of a brain cannot be stored in a journal.
    """

    def __init__(
        self,
        place: str | PathLike[str],
        brains: Mapping[str, Brain[Any]],
        *,
        journal: Journal | str | PathLike[str] | None = None,
        at_once: int = 8,
        per_tenant: int | None = None,
        in_all: int | None = None,
        version: str = "1",
        continues: Collection[str] = (),
        deps: object = None,
        user: UserLike | None = None,
        name: str = "agent-brain",
        poll: float = 0.5,
        dead_after: float = 30.0,
        grace: float = 30.0,
    ) -> None:
        self.brains = _checked_brains(brains)
        for what, number in (("at_once", at_once), ("per_tenant", per_tenant), ("in_all", in_all)):
            check_count(QueueError, what, number, optional=what != "at_once")
        if not isinstance(version, str) or not version.strip():
            raise QueueError(f"version={version!r}: give a text that is not empty")
        if isinstance(continues, str) or version in continues:
            raise QueueError(f"continues={continues!r}: give a list of older versions")
        for one in (version, *continues):
            checked_label("version", one)
        if not re.fullmatch(r"[a-z0-9_-]{3,200}", name):
            raise QueueError(f"name={name!r}: give 3 to 200 of a-z, 0-9, '-' and '_'")
        for what, seconds, least in (
            ("poll", poll, 0.01),
            ("dead_after", dead_after, 1),
            ("grace", grace, 0),
        ):
            if not least <= seconds < math.inf:
                raise QueueError(f"{what}={seconds!r}: give seconds, at least {least}")
        self.url, self.searchable = _url_of(place)
        self.place = fspath(place)
        self.at_once, self.per_tenant, self.in_all = at_once, per_tenant, in_all
        self.version = version
        self.continues = tuple(continues)
        self.deps = deps
        if user is not None:
            from agent_brain.serving.users import check_user_like

            check_user_like(user)
        self.user = user
        self.name = name
        self.poll = poll
        self.dead_after = dead_after
        self.grace = grace
        self.schedules: dict[str, Schedule] = {}
        self._journal = journal

    def schedule(
        self,
        name: str,
        cron: str,
        brain: str,
        task: str | Message,
        *,
        session: str | None = None,
        tenant: str | None = None,
        timezone: str = "UTC",
    ) -> None:
        """Submit a run at each time of a schedule, once, whatever the number of workers.

        A worker stores the schedules when it starts. Times at which no worker lives are left out.

        Args:
            name: The name; a later schedule of the name replaces it.
            cron: When: minute, hour, day, month, weekday, such as ``"0 3 * * *"``; with six fields
                the first one is the second.
            brain: The name of the brain.
            task: What is to be done.
            session: The session of all its runs; None for a new one each time.
            tenant: Whose runs they are.
            timezone: The time zone of ``cron``, such as ``"Europe/Berlin"``.

        Raises:
            QueueError: An argument is wrong.
        """
        self.check_brain(brain)
        if session is not None:
            checked_name("session", session)
        run = Part(name, tenant, session or "", brain, task_data(task))
        self.schedules[name] = checked_schedule(Schedule(cron, timezone, run))

    def check_brain(self, name: str) -> None:
        """Check that there is a brain of that name.

        Raises:
            QueueError: There is none.
        """
        if name not in self.brains:
            raise QueueError(
                f"The queue has no brain {name!r}.{did_you_mean(name, self.brains)} "
                f"It has {', '.join(map(repr, self.brains))}"
            )

    @asynccontextmanager
    async def client(self) -> AsyncIterator[QueueClient]:
        """Yield a client, which submits runs and follows them.

        Creates the tables of the queue if they are missing.

        Raises:
            QueueError: The database cannot be used, or DBOS is not installed.
            EventLoopError: The event loop is not asyncio's.
        """
        async with self._open() as (workflows, journal):
            yield QueueClient(self, workflows, journal)

    async def work(
        self,
        *,
        stop: anyio.Event | None = None,
        on_ready: Callable[[str], object] | None = None,
    ) -> None:
        """Do runs until ``stop`` is set, then hand back those under way; or until cancelled.

        Args:
            stop: Ends the work. Runs end their step, and other workers continue them.
            on_ready: Called with the name of the worker when it takes runs.

        Raises:
            QueueError: The process has a worker already, uses DBOS itself, or cannot use the
                database.
            WorkerLostError: Other workers have taken this one for dead.
            EventLoopError: The event loop is not asyncio's.
        """
        if not _one_worker.acquire(blocking=False):
            raise QueueError("This process has a worker already: start another process")
        try:
            async with self._open() as (workflows, journal), AsyncExitStack() as stack:
                stack.push_async_callback(connections.close)
                for brain in self.brains.values():
                    await brain.open()
                name = worker_name()
                liveness = Liveness(journal, name, seconds=self.dead_after)
                worker = Worker(self, workflows, journal, liveness, name)
                with one_error():
                    await worker.run(stop or anyio.Event(), on_ready or (lambda _: None))
        finally:
            _one_worker.release()

    def sessions(self, brain: str, **options: Any) -> Sessions:
        """Return sessions of a server whose runs are done by workers.

        ::

            app = make_app(queue.sessions("support"), token={"a-long-secret": "ann"})

        Any number of servers may have them. The events of a run are read on the server that has
        started it; those of the step that a dead worker was doing are repeated. A message to an
        active run waits for its end. Usage is counted by the hooks of the workers only.

        Args:
            brain: The name of the brain.
            **options: Options of :class:`~agent_brain.serving.Sessions` beside the brain, the
                memory, the journal and ``user``, which are those of the queue.

        Raises:
            QueueError: There is no such brain.
        """
        from agent_brain.workers.served import QueueSessions

        self.check_brain(brain)
        return QueueSessions(self, brain, **options)

    @property
    def journal_place(self) -> Journal | str | PathLike[str]:
        """The journal, or its place."""
        return self.place if self._journal is None else self._journal

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[tuple[Workflows, Journal]]:
        if current_async_library() != "asyncio":
            raise EventLoopError("A RunQueue needs asyncio: DBOS does not run on other event loops")
        from agent_brain.workers.launch import connect

        async with AsyncExitStack() as stack:
            journal = self.journal_place
            if not isinstance(journal, Journal):
                if fspath(journal).startswith(("postgres://", "postgresql://")):
                    seconds = min(max(self.dead_after, 5.0), 30.0)  # a stopped process may block
                    journal = PostgresJournal(fspath(journal), timeout=seconds)
                else:
                    journal = open_journal(journal)
                stack.push_async_callback(journal.aclose)
            client = await to_thread.run_sync(connect, self.url, self.name)
            stack.push_async_callback(to_thread.run_sync, client.destroy)
            yield Workflows(client, self.name, searchable=self.searchable), journal


def _checked_brains(brains: Mapping[str, Brain[Any]]) -> dict[str, Brain[Any]]:
    if not isinstance(brains, Mapping) or not brains:
        raise QueueError(f"brains={brains!r}: give brains by name")
    for name, brain in brains.items():
        if not isinstance(name, str) or not isinstance(brain, Brain):
            raise QueueError(f"brains={{{name!r}: {brain!r}}}: give brains by name")
        if not brain.can_make_memories:
            raise QueueError(
                f"The memory of brain {name!r} was given as an object, and each session needs one "
                "of its own: give the name of a memory and memory_options="
            )
        if brain.user is not None:
            raise QueueError(
                f"Brain {name!r} knows one user, and a queue has runs of many: give user= to the "
                "queue"
            )
        brain.memory_for("a session", journal=RamJournal())  # raises what is wrong now
    return dict(brains)


def _url_of(place: str | PathLike[str]) -> tuple[str, bool]:
    """Return the URL of the database of the queue, and whether it is PostgreSQL."""
    given: object = place
    if not isinstance(given, str | PathLike) or not isinstance(text := fspath(given), str):
        raise QueueError(f"place={given!r}: give postgresql://… or the path of a SQLite file")
    if text == ":memory:":
        raise QueueError("place=':memory:': a queue in RAM has no workers; give the path of a file")
    scheme, separator, rest = text.partition("://")
    if separator and scheme in ("postgres", "postgresql"):
        return f"postgresql://{rest}", True
    if separator or not text:
        raise QueueError(f"place={hide(text)!r}: give postgresql://… or the path of a SQLite file")
    return f"sqlite:///{Path(text).absolute()}.queue", False
