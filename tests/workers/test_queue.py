"""A queue in a SQLite file, with a worker in this process."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from enum import Enum
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from pydantic import BaseModel

from agent_brain import Brain, Message, MessagesMemory, register_memory, tool
from agent_brain.errors import (
    BrainDefinitionError,
    EventLoopError,
    QueueError,
    ResumeError,
    RunConflictError,
)
from agent_brain.nets import Net, ParallelState, react
from agent_brain.states import OtherEvent
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action, SleepNeeded
from agent_brain.workers import QueueClient, QueuedRun, RunQueue
from benchmarks.workers.program import Clerk
from tests.nets.models import FunctionLLM
from tests.support.own_events import FIELDS, reading_net
from tests.workers.support import until

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


@tool
def note(number: int) -> str:
    """Take a note."""
    return f"noted {number}"


@tool(requires_approval=True)
def charge(euros: int) -> str:
    """Charge the customer."""
    return "charged"


def make_queue(folder: Path, **options: Any) -> RunQueue:
    brain = Brain(react(Clerk()), "windowed", tools=[note, charge])
    return RunQueue(folder / "app.db", {"clerk": brain}, poll=0.05, **options)


@asynccontextmanager
async def working(queue: RunQueue) -> AsyncIterator[QueueClient]:
    """A worker in this process, and a client."""
    stop, ready = anyio.Event(), anyio.Event()
    async with anyio.create_task_group() as group, queue.client() as client:

        async def work() -> None:
            await queue.work(stop=stop, on_ready=lambda _: ready.set())

        group.start_soon(work)
        await ready.wait()
        try:
            yield client
        finally:
            stop.set()


@pytest.mark.thorough
async def test_runs_are_done_on_one_machine_and_on_schedule(tmp_path: Path) -> None:
    queue = make_queue(tmp_path)
    queue.schedule("tick", "*/2 * * * * *", "clerk", "Tick pause 0", tenant="ann")
    async with working(queue) as client:
        run = await client.submit("clerk", "Work pause 0", session="42")
        assert (await run.result()).answer.endswith("Done after 3 calls.")

        async def two_ticks() -> bool:
            return len(await client.list(tenant="ann", status="ended")) >= 2

        with pytest.raises(QueueError, match="This process has a worker already"):
            await queue.work()
        await until(two_ticks)

        infos = await client.list(tenant="ann")
        for info in infos:
            name, _, due = info.id.partition("@")
            assert (name, datetime.fromisoformat(due).isoformat()) == ("tick", due)
        assert len({info.id for info in infos}) == len({info.session for info in infos})


async def test_runs_of_a_session_keep_the_order_of_submission_whatever_their_ids(
    tmp_path: Path,
) -> None:
    async with working(make_queue(tmp_path)) as client:
        runs = [
            await client.submit("clerk", f"Task {name} pause 0", session="42", id=name)
            for name in "ba"
        ]
        for run in runs:
            await run.result()

    async with MessagesMemory(journal=str(tmp_path / "app.db"), session="42") as memory:
        said = [m.content for m in await memory.context() if m.role == "user"]
    assert said == ["Task b pause 0", "Task a pause 0"]


async def test_a_call_of_a_tool_that_the_net_brings_is_approved(tmp_path: Path) -> None:
    brain = Brain(react(Clerk(), tools=[note, charge]), "windowed")
    async with working(RunQueue(tmp_path / "app.db", {"clerk": brain}, poll=0.05)) as client:
        run = await client.submit("clerk", "Please charge pause 0")
        assert (await run.result()).stop_reason == "approval"
        await run.resume(approve=True)
        assert (await run.result()).answer.endswith("Done after 1 calls.")


@pytest.mark.thorough
async def test_a_version_continues_its_own_runs_and_those_that_it_can(tmp_path: Path) -> None:
    async with working(make_queue(tmp_path, version="1")) as client:
        run = await client.submit("clerk", "Please charge pause 0", session="42", id="1")
        assert (await run.result()).stop_reason == "approval"
    async with working(make_queue(tmp_path, version="2")) as client:
        run = await client.get("1")
        await run.resume(approve=True)
        new = await client.submit("clerk", "Work pause 0", session="43")
        await new.result()
        assert await run.status() == "queued"
        assert {(i.id, i.version) for i in await client.list()} == {("1", "1"), (new.id, "2")}

    async with working(make_queue(tmp_path, version="3", continues=["1", "2"])) as client:
        run = await client.get("1")
        assert (await run.result()).answer.endswith("Done after 1 calls.")


async def test_a_run_that_is_stopped_before_it_begins_is_continued(tmp_path: Path) -> None:
    async with make_queue(tmp_path).client() as client:
        run = await client.submit("clerk", "Work pause 0")
        await run.stop()
        cancelled = await client.submit("clerk", "Work pause 0")
        await cancelled.cancel()
        assert (await cancelled.result()).stop_reason == "cancelled"
        assert [event async for event in cancelled.events()] == []

    async with working(make_queue(tmp_path)):
        assert (await run.result()).stop_reason == "stopped"


@pytest.mark.thorough
async def test_a_run_in_progress_is_cancelled_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with working(make_queue(tmp_path)) as client:
        run = await client.submit("clerk", "Work pause 5")
        await anext(run.events())
        await run.cancel()
        assert (await run.result()).stop_reason == "cancelled"
    ours = [record for record in caplog.records if record.name.startswith("agent_brain")]
    assert [record.getMessage() for record in ours if record.levelno >= logging.WARNING] == []


async def test_a_run_that_waits_is_cancelled_and_deleted(tmp_path: Path) -> None:
    async with working(make_queue(tmp_path)) as client:
        run = await client.submit("clerk", "Please charge pause 0")
        await run.result()
        with pytest.raises(RunConflictError, match="is waiting: cancel it first"):
            await run.delete()

        await run.cancel()

        assert await run.status() == "cancelled"
        assert (await run.result()).stop_reason == "cancelled"
        await run.delete()
        assert await client.list() == []


async def test_the_id_of_a_deleted_run_is_that_of_another_run(tmp_path: Path) -> None:
    llm = ScriptedLLM(["One.", "Two."])
    queue = RunQueue(tmp_path / "app.db", {"chat": Brain("react", llm=llm)}, poll=0.05)
    async with working(queue) as client:
        for task, answer in (("1", "One."), ("2", "Two.")):
            run = await client.submit("chat", task, session="s", id="same")
            assert (await run.result()).answer == answer
            await run.delete()


async def test_the_next_run_discards_one_that_waits(tmp_path: Path) -> None:
    async with working(make_queue(tmp_path)) as client:
        first = await client.submit("clerk", "Please charge pause 0", session="42")
        await first.result()
        second = await client.submit("clerk", "Work pause 0", session="42")
        await second.result()

        assert await first.status() == "cancelled"
        assert [info.id for info in await client.list(status="waiting")] == []
        with pytest.raises(ResumeError, match="Another run has begun in session '42'"):
            await first.resume(approve=True)


@pytest.mark.parametrize("options", [{"status": "bogus"}, {"limit": -1}, {"limit": True}])
async def test_a_list_that_cannot_be_made_is_refused(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    async with make_queue(tmp_path).client() as client:
        with pytest.raises(QueueError, match=f"{next(iter(options))}=.*: give"):
            await client.list(**options)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"place": "mysql://host/app"}, "give postgresql://"),
        ({"place": ""}, "give postgresql://"),
        ({"brains": {}}, "give brains by name"),
        ({"brains": {"a": "react"}}, "give brains by name"),
        ({"brains": {"a": Brain(memory=MessagesMemory())}}, "was given as an object"),
        ({"at_once": 0}, "at_once=0: it must be a whole number of at least 1"),
        ({"at_once": None}, "at_once=None"),
        ({"per_tenant": True}, "per_tenant=True"),
        ({"in_all": 1.5}, "in_all=1.5"),
        ({"version": ""}, "version=''"),
        ({"continues": "1"}, "continues='1': give a list"),
        ({"continues": ["1"]}, "older versions"),
        ({"name": "My queue"}, "name='My queue'"),
        ({"poll": 0}, "poll=0: give seconds"),
        ({"dead_after": 0.5}, "dead_after=0.5: give seconds, at least 1"),
        ({"grace": float("inf")}, "grace=inf"),
        ({"place": None}, "place=None: give postgresql://"),
        ({"place": b"app.db"}, "place=b'app.db'"),
        ({"place": ":memory:"}, "a queue in RAM"),
        ({"version": "1\0"}, "version="),
        ({"continues": ["0\0"]}, "version="),
        ({"continues": [0]}, "version=0"),
    ],
)
def test_a_queue_that_cannot_work_is_refused(options: dict[str, Any], problem: str) -> None:
    given = {"place": "app.db", "brains": {"a": Brain()}, **options}

    with pytest.raises(QueueError, match=problem):
        RunQueue(given.pop("place"), given.pop("brains"), **given)


def test_a_brain_whose_sessions_cannot_be_stored_is_refused() -> None:
    brain = Brain(memory_options={"session": "mine"})

    with pytest.raises(BrainDefinitionError, match="leave these to memory_for"):
        RunQueue("app.db", {"a": brain})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"cron": "every day"}, "cron='every day' is not a schedule"),
        ({"timezone": "Mars"}, "timezone='Mars' is not known"),
        ({"brain": "clark"}, "Did you mean 'clerk'"),
        ({"task": ""}, "The task is empty"),
        ({"task": 5}, "The task is a text or a Message, not int"),
        ({"name": ""}, "name='': give a text"),
        ({"session": ""}, "session='': give a text"),
        ({"cron": "0 0 30 2 *"}, "names no time that ever comes"),
        ({"name": "n\0"}, "without null characters"),
        ({"task": Message.assistant("t")}, "not of role 'assistant'"),
    ],
)
def test_a_schedule_that_is_wrong_is_refused(
    tmp_path: Path, options: dict[str, Any], problem: str
) -> None:
    given = {"name": "n", "cron": "0 3 * * *", "brain": "clerk", "task": "t", **options}

    with pytest.raises(QueueError, match=problem):
        make_queue(tmp_path).schedule(**given)


async def test_a_database_that_is_not_there_is_reported() -> None:
    queue = RunQueue("postgresql://me:s3cret-word@127.0.0.1:1/app", {"a": Brain()})

    with pytest.raises(QueueError, match="cannot be used") as error:
        async with queue.client():
            pass
    assert "s3cret-word" not in str(error.value)


@pytest.mark.parametrize("anyio_backend", ["trio"])
async def test_it_needs_asyncio(tmp_path: Path, anyio_backend: str) -> None:
    with pytest.raises(EventLoopError, match="A RunQueue needs asyncio"):
        async with make_queue(tmp_path).client():
            pass


def test_dbos_is_loaded_when_it_is_needed(tmp_path: Path) -> None:
    program = (
        "import sys, logging\n"
        "from agent_brain import Brain\n"
        "from agent_brain.workers import RunQueue\n"
        "RunQueue('app.db', {'a': Brain()})\n"
        "assert not {'dbos', 'sqlalchemy', 'litellm', 'chromadb'} & sys.modules.keys()\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=tmp_path)
    assert [*tmp_path.iterdir()] == []


async def test_a_missing_dbos_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "agent_brain.workers.launch", raising=False)
    monkeypatch.setitem(sys.modules, "dbos", None)

    with pytest.raises(QueueError, match=r"pip install 'agent-brain\[dbos\]'"):
        async with make_queue(tmp_path).client():
            pass


def sleeping_queue(
    folder: Path, naps: list[timedelta], memory: str = "windowed", **options: Any
) -> RunQueue:
    """A queue with an agent whose tool is not ready for some times."""

    @tool
    def note(number: int) -> str:
        """Take a note."""
        if naps:
            raise SleepNeeded(naps.pop(0))
        return f"noted {number}"

    brain = Brain(react(Clerk()), memory, tools=[note])
    return RunQueue(folder / "app.db", {"clerk": brain}, poll=0.05, **options)


async def until_asleep(run: QueuedRun) -> None:
    async def asleep_or_over() -> bool:
        found = await run._latest()
        return found.asleep or found.status == "ended"

    await until(asleep_or_over)


@pytest.mark.thorough
async def test_a_run_that_sleeps_is_woken_although_all_workers_were_restarted(
    tmp_path: Path,
) -> None:
    naps = [timedelta(seconds=0.5)]
    async with working(sleeping_queue(tmp_path, naps)) as client:
        run = await client.submit("clerk", "Work pause 0", session="42")
        await until_asleep(run)
    async with working(sleeping_queue(tmp_path, naps)) as client:
        run = await client.get(run.id)
        assert (await run.result()).answer.endswith("Done after 3 calls.")
        reasons = [
            e.event.stop_reason async for e in run.events() if e.event.kind == "run_finished"
        ]
    assert reasons == ["sleeping", "done"]


async def test_a_run_that_sleeps_gives_way_to_the_next_one_of_its_session(tmp_path: Path) -> None:
    async with working(sleeping_queue(tmp_path, [timedelta(days=1)] * 2)) as client:
        run = await client.submit("clerk", "Work pause 0", session="42")
        await until_asleep(run)
        assert await run.status() == "queued"
        await run.resume()  # it sleeps again
        later = await client.submit("clerk", "Please charge pause 0", session="42")
        assert (await later.result()).stop_reason == "done"
        assert await run.status() == "cancelled"


async def test_a_run_that_is_woken_as_the_next_one_begins_gives_way_too(tmp_path: Path) -> None:
    opening, go_on = threading.Event(), threading.Event()

    class Waits(MessagesMemory):
        """Waits when the next run opens it."""

        async def open(self) -> None:
            await super().open()
            if self.control.status == "waiting":
                opening.set()
                await anyio.to_thread.run_sync(go_on.wait)

    register_memory("waits", Waits)
    queue = sleeping_queue(tmp_path, [timedelta(days=1)], "waits", at_once=1)
    async with working(queue) as client:
        run = await client.submit("clerk", "Work pause 0", session="42")
        await until_asleep(run)
        later = await client.submit("clerk", "Please charge pause 0", session="42")
        await anyio.to_thread.run_sync(opening.wait)
        await run.resume()

        async def woken() -> bool:
            return not (await run._latest()).asleep

        await until(woken)
        go_on.set()
        assert (await later.result()).stop_reason == "done"
        assert await run.status() == "cancelled"


class Trip(Enum):
    PLAN = "plan"


def mixed_queue(folder: Path, naps: list[timedelta], done: list[str]) -> RunQueue:
    """A queue with an agent of two branches: one asks a person, the other one sleeps."""

    @tool
    def look() -> str:
        """Look."""
        if naps:  # a whole day is ended by the test
            raise SleepNeeded(naps[0] if naps[0] >= timedelta(days=1) else naps.pop(0))
        done.append("look")
        return "seen"

    @tool(requires_approval=True)
    def pay() -> str:
        """Pay."""
        done.append("pay")
        return "paid"

    def agent(name: str) -> Net:
        def reply(call: ModelCall) -> Any:
            results = [m.content for m in call.messages if m.role == "tool"]
            return results[-1] if results else Action(name=name, args={}, id=name)

        return react(FunctionLLM(reply))

    net = Net({Trip.PLAN: ParallelState({"looks": agent("look"), "pays": agent("pay")})})
    brain = Brain(net, "messages", tools=[look, pay])
    return RunQueue(folder / "app.db", {"trip": brain}, poll=0.05)


@pytest.mark.thorough
async def test_a_branch_that_sleeps_is_woken_while_another_one_waits(tmp_path: Path) -> None:
    done: list[str] = []
    naps = [timedelta(seconds=2), timedelta(seconds=0.2)]

    async def looked() -> bool:
        return done == ["look"] and not (await run._latest()).active

    async with working(mixed_queue(tmp_path, naps, done)) as client:
        run = await client.submit("trip", "go", session="42")
        first = await run.result()
        assert (first.stop_reason, await run.status()) == ("approval", "waiting")
        assert first.wake_at is not None
        assert done == []
        await until(looked)
        second = await run.result()
        assert (second.stop_reason, second.wake_at) == ("approval", None)
        assert await run.status() == "waiting"
        await run.resume(approve=True)
        last = await run.result()
    assert last.stop_reason == "done"
    assert done == ["look", "pay"]


@pytest.mark.thorough
async def test_a_person_decides_while_another_branch_sleeps(tmp_path: Path) -> None:
    done: list[str] = []
    naps = [timedelta(days=1)]
    async with working(mixed_queue(tmp_path, naps, done)) as client:
        run = await client.submit("trip", "go", session="42")
        assert (await run.result()).stop_reason == "approval"
        await run.stop()  # which does nothing
        with pytest.raises(ResumeError, match="No call 'look' waits"):
            await run.resume(approve=["look"])
    async with working(mixed_queue(tmp_path, naps, done)) as client:
        run = await client.get(run.id)
        await run.resume(approve=True)
        await until_asleep(run)
        assert await run.status() == "queued"
        assert done == ["pay"]
        naps.clear()
        await run.resume()
        assert (await run.result()).stop_reason == "done"
        events = [item.event async for item in run.events()]
        assert [e.stop_reason for e in events if e.kind == "run_finished"] == [
            "approval",
            "sleeping",
            "done",
        ]
    assert done == ["pay", "look"]


@pytest.mark.thorough
@pytest.mark.parametrize("decided", [False, True])
async def test_a_branch_that_is_woken_now_leaves_the_other_one_waiting(
    decided: bool, tmp_path: Path
) -> None:
    done: list[str] = []
    naps = [timedelta(days=1)]
    async with working(mixed_queue(tmp_path, naps, done)) as client:
        run = await client.submit("trip", "go", session="42")
        await run.result()
        naps.clear()
        await run.resume()
        if decided:

            async def taken_in() -> bool:
                try:
                    await run.resume(approve=True)
                except RunConflictError:  # a worker wakes it just now
                    return False
                return True

            await until(taken_in)
            assert (await run.result()).stop_reason == "done"
            return

        async def looked() -> bool:
            return bool(done)

        await until(looked)
        assert (await run.result()).stop_reason == "approval"
        assert done == ["look"]


@pytest.mark.thorough
@pytest.mark.parametrize("way", ["cancelled", "next"])
async def test_a_run_that_waits_and_sleeps_is_discarded(way: str, tmp_path: Path) -> None:
    done: list[str] = []
    async with working(mixed_queue(tmp_path, [timedelta(days=1)], done)) as client:
        run = await client.submit("trip", "go", session="42")
        await run.result()
        if way == "cancelled":
            await run.cancel()
        else:
            later = await client.submit("trip", "go", session="42")
            assert (await later.result()).stop_reason == "approval"
        assert await run.status() == "cancelled"
        assert (await run.result()).stop_reason == "cancelled"
    assert "pay" not in done


async def test_an_event_of_a_class_of_its_own_is_read_from_the_queue(tmp_path: Path) -> None:
    queue = RunQueue(tmp_path / "app.db", {"reader": Brain(reading_net())}, poll=0.05)
    async with working(queue) as client:
        run = await client.submit("reader", "Read.", session="42")
        events: list[Any] = [each async for each in run.events()]
        [own] = [each for each in events if isinstance(each.event, OtherEvent)]
        assert (own.event.kind, own.event.state) == ("pages_read", "PAGES")
        assert own.event.data == FIELDS
        assert own.to_dict()["note"] == FIELDS["note"]
        assert events[-1].event.kind == "run_finished"
        async with (
            queue.sessions("reader") as sessions,
            sessions.use("43", user="ann") as session,
            session.stream("Read.") as served,
        ):
            frames = [item.json async for item in served]
        assert [json.loads(frame)["done"] for frame in frames if b"pages_read" in frame] == [3]


class Accept(BaseModel):
    why: str


class Decline(BaseModel):
    why: str


async def test_members_of_a_union_with_the_same_fields_stay_what_they_were(tmp_path: Path) -> None:
    def decide(call: ModelCall) -> Any:
        return Action(name="final_result_Decline", args={"why": "too far"})

    brain = Brain(react(FunctionLLM(decide), output_type=Accept | Decline))
    async with working(RunQueue(tmp_path / "app.db", {"clerk": brain}, poll=0.05)) as client:
        run = await client.submit("clerk", "Will you come?")
        assert (await run.result()).output == Decline(why="too far")
