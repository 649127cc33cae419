"""Runs are submitted to a worker process, followed, decided, stopped and cancelled."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from datetime import date
from pathlib import Path
from uuid import uuid4

import anyio
import anyio.to_thread
import pytest

from agent_brain import Message
from agent_brain.errors import (
    QueuedRunError,
    QueueError,
    ResumeError,
    RunConflictError,
    RunNotFoundError,
)
from agent_brain.workers import QueueClient
from benchmarks.workers.crowd import Crowd, problems_of_events
from benchmarks.workers.program import make_queue
from tests.workers.support import new_workers, until, until_ready

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crowd]:
    """One worker, for all tests here."""
    with new_workers(
        tmp_path_factory.mktemp("workers"), per_tenant=2, in_all=6, poll=0.05
    ) as workers:
        workers.start()
        yield workers


@pytest.fixture
async def client(workers: Crowd, anyio_backend: str) -> AsyncIterator[QueueClient]:
    await until_ready(workers, 1)
    async with make_queue().client() as client:
        yield client


@pytest.fixture
def session() -> str:
    return uuid4().hex


async def test_a_run_has_a_result_and_events(client: QueueClient, session: str) -> None:
    run = await client.submit("clerk", "Work pause 0", session=session, tenant="ann")

    events = [event async for event in run.events()]
    result = await run.result()

    assert problems_of_events(events) == []
    assert result.answer.endswith("Done after 3 calls.")
    assert await run.status() == "ended"
    assert [event async for event in run.events(after=events[4].number)] == events[5:]


async def test_a_run_that_is_submitted_again_is_the_same(client: QueueClient, session: str) -> None:
    task = Message.user("Work pause 0")
    first = await client.submit("clerk", task, session=session, id=session)
    again = await client.submit("clerk", task, session=session, id=session)

    assert await first.result() == await again.result()
    assert [info.id for info in await client.list(session=session)] == [session]


async def test_another_task_of_the_same_id_is_refused(client: QueueClient, session: str) -> None:
    await client.submit("clerk", "Work pause 0", session=session, id=session)

    with pytest.raises(RunConflictError, match="with another task, brain or session"):
        await client.submit("clerk", "Work more", session=session, id=session)


async def test_ids_of_tenants_are_separate(client: QueueClient, session: str) -> None:
    await client.submit("clerk", "Work pause 0", session=session, id=session, tenant="ann")

    other = await client.submit("clerk", "Play", session=session, id=session, tenant="bob")

    assert (await other.result()).messages[0].content == "Play"
    with pytest.raises(RunNotFoundError):
        await client.get(session)
    assert (await client.get(session, tenant="ann")).tenant == "ann"


@pytest.mark.thorough
async def test_runs_of_a_session_are_done_in_the_order_of_submission(
    client: QueueClient, session: str
) -> None:
    runs = [await client.submit("clerk", f"Task {n}", session=session) for n in range(3)]

    results = [await run.result() for run in runs]

    assert [result.messages[0].content for result in results] == ["Task 0", "Task 1", "Task 2"]
    starts = [[e.event async for e in run.events()] for run in runs]
    assert all(events[-1].kind == "run_finished" for events in starts)


async def test_a_run_that_waits_is_continued_with_a_decision(
    client: QueueClient, session: str, workers: Crowd
) -> None:
    run = await client.submit("clerk", "Please charge", session=session)
    waiting = await run.result()
    assert (waiting.stop_reason, await run.status()) == ("approval", "waiting")
    with pytest.raises(ResumeError, match="No call 'other' waits"):
        await run.resume(approve="other")
    read = [event async for event in run.events()]

    await run.resume(approve=True)

    assert (await run.result()).answer.endswith("Done after 1 calls.")
    events = [event async for event in run.events(after=read[-1].number)]
    assert events[0].event.kind == "run_started"
    assert events[-1].event.kind == "run_finished"
    trace = (workers.folder / "trace").read_text().splitlines()
    assert [json.loads(line)[:2] for line in trace].count(["charge", 30]) == 1


async def test_typed_questions_are_answered_with_objects(client: QueueClient, session: str) -> None:
    run = await client.submit("asker", "Book a table", session=session)
    assert (await run.result()).stop_reason == "input"
    with pytest.raises(ResumeError, match="'tomorrow' is not a 'date'"):
        await run.resume(input="tomorrow")

    await run.resume(input=date(2026, 3, 1))
    assert (await run.result()).stop_reason == "input"
    await run.resume(input=4)

    assert (await run.result()).answer == "4 guests on 01.03."


async def test_a_run_that_fails_says_why_and_can_be_resumed(
    client: QueueClient, session: str
) -> None:
    run = await client.submit("clerk", "Please fail", session=session)

    for _ in range(2):
        with pytest.raises(QueuedRunError, match=r"failed: ValueError: the clerk is ill") as error:
            await run.result()
        assert (error.value.type, await run.status()) == ("ValueError", "failed")
        await run.resume()


async def test_a_run_in_progress_cannot_be_resumed(client: QueueClient, session: str) -> None:
    run = await client.submit("clerk", "Work pause 0.2", session=session)

    with pytest.raises(RunConflictError, match="can be continued when it waits"):
        await run.resume()


@pytest.mark.thorough
async def test_a_run_is_stopped_after_its_step_and_continued(
    client: QueueClient, session: str, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    run = await client.submit("clerk", f"Work until {go} pause 0.01", session=session)
    other = await client.submit("clerk", "Work pause 60", session=f"{session} other")
    for each in (run, other):
        await anext(each.events())

    async def ended() -> bool:
        return "run_finished" in [item.event.kind async for item in other.events()]

    await run.stop()
    await other.cancel()
    await until(ended)  # the worker has looked at what is asked of both
    go.touch()
    assert (await run.result()).stop_reason == "stopped"

    await run.resume()

    assert (await run.result()).stop_reason == "done"


async def test_a_run_is_cancelled_while_it_waits_for_its_turn_or_runs(
    client: QueueClient, session: str
) -> None:
    first = await client.submit("clerk", "Work pause 60", session=session)
    second = await client.submit("clerk", "Work pause 0", session=session)
    await anext(first.events())

    await second.cancel()
    await first.cancel()

    for run in (second, first):
        assert (await run.result()).stop_reason == "cancelled"
        assert await run.status() == "cancelled"
    third = await client.submit("clerk", "Work pause 0", session=session)
    assert (await third.result()).stop_reason == "done"


@pytest.mark.thorough
async def test_runs_of_a_tenant_are_limited(
    client: QueueClient, session: str, tmp_path: Path
) -> None:
    go = tmp_path / "go"
    task = f"Work until {go} pause 0.05"
    runs = [await client.submit("clerk", task, tenant=session, session=f"{n}") for n in range(5)]
    most = 0

    async def two_run() -> bool:
        nonlocal most
        infos = await client.list(tenant=session)
        most = max(most, sum(info.status == "running" for info in infos))
        return most >= 2

    async def all_ended() -> bool:
        await two_run()
        return len(await client.list(tenant=session, status="ended")) == len(runs)

    await until(two_run)
    go.touch()
    await until(all_ended)

    assert most == 2
    assert {(await run.result()).stop_reason for run in runs} == {"done"}


async def test_a_run_is_deleted_with_its_events(client: QueueClient, session: str) -> None:
    run = await client.submit("clerk", "Work pause 0", session=session)
    await run.result()

    await run.delete()

    with pytest.raises(RunNotFoundError, match="was deleted"):
        await run.status()
    assert await client.list(session=session) == []


async def test_what_cannot_be_done_is_refused(client: QueueClient) -> None:
    with pytest.raises(QueueError, match=r"no brain 'clark'. Did you mean 'clerk'\?"):
        await client.submit("clark", "Work")
    with pytest.raises(QueueError, match="The task is empty"):
        await client.submit("clerk", " ")
    for what in ("id", "session", "tenant"):
        with pytest.raises(QueueError, match=f"{what}='': give a text of 1 to 200 characters"):
            await client.submit("clerk", "Work", **{what: ""})


async def test_names_may_be_any_text(client: QueueClient) -> None:
    name = "a/b:c%\x00 é'\"\n" + uuid4().hex

    run = await client.submit("clerk", "Work pause 0", session=name, tenant=name, id=name)

    assert (await run.result()).stop_reason == "done"
    [info] = await client.list(session=name, tenant=name)
    assert (info.id, info.tenant, info.session) == (name, name, name)


async def test_events_are_read_while_they_happen(client: QueueClient, session: str) -> None:
    run = await client.submit("clerk", "Work pause 5", session=session)

    async for item in run.events():
        if item.event.kind == "text_delta":
            break

    assert await run.status() == "running"
    with anyio.fail_after(60):
        await run.cancel()
        await run.result()


@pytest.mark.thorough
async def test_the_worker_ends_when_it_is_told_to(
    client: QueueClient, workers: Crowd, tmp_path: Path, session: str
) -> None:
    """A new worker continues the run that the old one was doing."""
    go = tmp_path / "go"
    [worker], stopped = workers.alive, workers.log().count("Stopping")
    run = await client.submit("clerk", f"Work until {go} pause 0.01", session=session)
    await anext(run.events())

    async def stops() -> bool:
        return workers.log().count("Stopping") > stopped

    worker.terminate()
    await until(stops)
    go.touch()
    workers.start()

    assert (await run.result()).stop_reason == "done"
    events = [event async for event in run.events()]
    assert sum(e.event.kind == "run_started" for e in events) == 2
    assert sum(e.event.kind == "run_finished" for e in events) == 1
    assert sum(e.event.kind == "action_started" for e in events) == 3
    with anyio.fail_after(60):
        await anyio.to_thread.run_sync(worker.wait)
    assert worker.returncode == 0, workers.log()
