"""Runs that wait for a time, and runs that are paused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, Literal

import pytest

from agent_brain import Brain, MessagesMemory, Net, tool
from agent_brain.errors import ResumeError
from agent_brain.memories import RamJournal, list_sessions
from agent_brain.nets import ParallelState, ReAct
from agent_brain.states import (
    InputRequested,
    Sleep,
    SleepRequested,
    State,
    StateDefinitionError,
    StateEntered,
)
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state
from agent_brain.tools import Action, SleepNeeded, ToolError, wake
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


class Step(Enum):
    WAIT = "wait"
    TELL = "tell"


class Wait(State):
    def __init__(self, *naps: Sleep) -> None:
        self.naps = naps

    async def run(self, memory: Any) -> Any:
        for nap in self.naps:
            yield nap
        yield "waited"

    async def next_state(self, memory: Any) -> Literal[Step.TELL]:
        return Step.TELL


class Tell(State):
    async def run(self, memory: Any) -> Any:
        yield "told"

    async def next_state(self, memory: Any) -> None:
        return None


def net(*naps: Sleep) -> Net:
    return Net({Step.WAIT: Wait(*naps), Step.TELL: Tell()})


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(wake, "now", found)
    return found


async def test_a_run_stops_until_the_time_has_come(clock: Clock) -> None:
    brain = Brain(net(Sleep(NOON + timedelta(hours=1))))
    async with brain.stream("go") as run:
        events = [event async for event in run]
    assert run.result.stop_reason == "sleeping"
    assert run.result.wake_at == NOON + timedelta(hours=1)
    assert [e.until for e in events if isinstance(e, SleepRequested)] == [run.result.wake_at]
    assert brain.memory.control.status == "waiting"

    early = await brain.resume()
    assert (early.stop_reason, early.wake_at) == ("sleeping", run.result.wake_at)
    clock.now += timedelta(hours=1)
    late = await brain.resume()
    assert (late.stop_reason, late.answer, late.wake_at) == ("done", "told", None)


async def test_a_time_that_has_passed_does_not_stop_the_run(clock: Clock) -> None:
    result = await Brain(net(Sleep(NOON), Sleep(timedelta(0)), Sleep(timedelta(-1)))).run("go")
    assert result.stop_reason == "done"


async def test_a_length_of_time_is_measured_once(clock: Clock) -> None:
    brain = Brain(net(Sleep(timedelta(hours=1)), Sleep(timedelta(hours=1), name="second")))
    first = await brain.run("go")
    clock.now += timedelta(minutes=59)
    assert (await brain.resume()).wake_at == first.wake_at == NOON + timedelta(hours=1)
    clock.now += timedelta(minutes=1)
    second = await brain.resume()
    assert second.wake_at == NOON + timedelta(hours=2)
    clock.now += timedelta(hours=1)
    assert (await brain.resume()).stop_reason == "done"


async def test_another_process_resumes_it(clock: Clock) -> None:
    journal = RamJournal()
    nap = Sleep(timedelta(days=1))
    await Brain(net(nap), MessagesMemory(journal=journal)).run("go")
    (info,) = await list_sessions(journal)
    assert (info.status, info.wake_at) == ("waiting", NOON + timedelta(days=1))
    clock.now += timedelta(days=1)
    result = await Brain(net(nap), MessagesMemory(journal=journal)).resume()
    assert result.answer == "told"
    (info,) = await list_sessions(journal)
    assert (info.status, info.wake_at) == ("ended", None)


async def test_a_run_killed_at_any_write_keeps_its_time(clock: Clock) -> None:
    nap = Sleep(timedelta(days=1))
    for writes in range(1, 12):
        clock.now, journal = NOON, RamJournal()
        mortal = MortalJournal(journal, writes, after=True)
        try:
            await Brain(net(nap), MessagesMemory(journal=mortal)).run("go")
        except Killed:
            clock.now += timedelta(minutes=1)
        else:
            break
        brain = Brain(net(nap), MessagesMemory(journal=journal))
        async with brain.memory:
            if brain.memory.control.run_id is None:
                continue
            slept = await brain.resume()
            assert slept.stop_reason == "sleeping"
            assert slept.wake_at is not None
            assert slept.wake_at <= NOON + timedelta(days=1, minutes=1)
            clock.now += timedelta(days=1)
            assert (await brain.resume()).stop_reason == "done"
    assert writes > 2


async def test_a_new_task_replaces_a_run_that_sleeps(clock: Clock) -> None:
    brain = Brain(net(Sleep(timedelta(days=1))))
    await brain.run("go")
    clock.now += timedelta(days=2)
    again = await brain.run("again")
    assert (again.stop_reason, again.wake_at) == ("sleeping", clock.now + timedelta(days=1))


async def test_a_stream_left_at_the_request_leaves_the_run_asleep(clock: Clock) -> None:
    brain = Brain(net(Sleep(timedelta(days=1))))
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, SleepRequested):
                break
    assert brain.memory.control.stop_reason == "sleeping"
    clock.now += timedelta(days=1)
    assert (await brain.resume()).answer == "told"


async def test_a_time_beyond_the_calendar_is_its_end(clock: Clock) -> None:
    result = await Brain(net(Sleep(timedelta.max))).run("go")
    assert result.wake_at == datetime.max.replace(tzinfo=UTC)


async def test_a_state_is_tested_alone(clock: Clock) -> None:
    memory = FakeMemory()
    done = await run_state(Wait(Sleep(timedelta(days=1))), memory)
    assert done.waits
    assert memory.control.wake_at == NOON + timedelta(days=1)


@pytest.mark.parametrize("until", [datetime(2030, 1, 1), 5, None, "tomorrow"])  # noqa: DTZ001
def test_what_is_not_a_time_is_refused(until: Any) -> None:
    with pytest.raises(StateDefinitionError, match=r"Sleep\("):
        Sleep(until)


async def test_a_paused_run_continues_with_its_calls() -> None:
    calls: list[int] = []

    def look(number: int) -> str:
        """Look."""
        calls.append(number)
        return "seen"

    llm = ScriptedLLM([Action(name="look", args={"number": 1}), "done"])
    journal = RamJournal()
    brain = Brain("react", MessagesMemory(journal=journal), [look], llm=llm)
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, StateEntered):
                run.pause()
    assert run.result.stop_reason == "paused"
    (info,) = await list_sessions(journal)
    assert (info.status, info.state, calls) == ("waiting", ReAct.ACTION.name, [])
    other = Brain("react", MessagesMemory(journal=journal), [look], llm=llm)
    assert (await other.resume()).answer == "done"
    assert calls == [1]


async def test_a_stop_is_not_turned_into_a_pause() -> None:
    llm = ScriptedLLM([Action(name="nothing", args={}), "done"])
    async with Brain("react", llm=llm).stream("go") as run:
        async for _ in run:
            run.stop()
            run.pause()
    assert run.result.stop_reason == "stopped"


def branches(count: int, *naps: Sleep) -> Net:
    return Net(
        {Step.WAIT: ParallelState([net(*naps)] * count, on_done=Step.TELL), Step.TELL: Tell()}
    )


def stored(journal: RamJournal | None) -> MessagesMemory:
    return MessagesMemory() if journal is None else MessagesMemory(journal=journal)


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_branches_sleep(clock: Clock, count: int, durable: bool) -> None:
    journal = RamJournal() if durable else None
    memory, nap = stored(journal), Sleep(timedelta(hours=1))
    result = await Brain(branches(count, nap), memory).run("go")
    assert (result.stop_reason, result.wake_at) == ("sleeping", NOON + timedelta(hours=1))
    clock.now += timedelta(minutes=30)
    memory = stored(journal) if durable else memory
    result = await Brain(branches(count, nap), memory).resume()
    assert (result.stop_reason, result.wake_at) == ("sleeping", NOON + timedelta(hours=1))
    clock.now += timedelta(minutes=30)
    memory = stored(journal) if durable else memory
    assert (await Brain(branches(count, nap), memory).resume()).answer == "told"


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_branches_are_paused_after_their_steps(count: int, durable: bool) -> None:
    journal = RamJournal() if durable else None
    memory = stored(journal)
    states: list[str | None] = []
    async with Brain(branches(count), memory).stream("go") as run:
        async for event in run:
            if isinstance(event, StateEntered) and event.path:
                run.pause()
                states.append(event.state)
    assert run.result.stop_reason == "paused"
    assert set(states) == {"WAIT"}
    memory = stored(journal) if durable else memory
    async with Brain(branches(count), memory).stream_resume() as run:
        states += [e.state async for e in run if isinstance(e, StateEntered) and e.path]
    assert run.result.answer == "told"
    assert sorted(map(str, states)) == ["TELL"] * count + ["WAIT"] * count


async def test_one_branch_asks_and_another_sleeps(clock: Clock) -> None:
    class Ask(Wait):
        async def run(self, memory: Any) -> Any:
            if memory.control.input is None:
                yield InputRequested("Which?")
            yield "asked"

    asking = Net({Step.WAIT: Ask(), Step.TELL: Tell()})
    both = [asking, net(Sleep(timedelta(hours=1)))]
    brain = Brain({Step.WAIT: ParallelState(both, on_done=Step.TELL), Step.TELL: Tell()})
    first = await brain.run("go")
    assert (first.stop_reason, first.wake_at) == ("input", NOON + timedelta(hours=1))
    clock.now += timedelta(hours=1)
    second = await brain.resume()  # nobody has answered; the other branch goes on
    assert (second.stop_reason, second.wake_at) == ("input", None)
    assert (await brain.resume(input="this")).answer == "told"


class Job:
    """A tool that waits until its job is ready, and counts how often it ran."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.ran = 0

    def result_of(self, number: int) -> str:
        """Return the result of a job."""
        self.ran += 1
        if self.clock.now < NOON + timedelta(hours=1):
            raise SleepNeeded(timedelta(minutes=30))
        return f"job {number} is done"


@pytest.mark.parametrize("durable", [False, True])
async def test_a_tool_waits_and_runs_again(clock: Clock, durable: bool) -> None:
    job, journal = Job(clock), RamJournal() if durable else None
    calls = [Action(name="result_of", args={"number": 1}), Action(name="ping", args={})]
    pinged: list[int] = []

    def ping() -> str:
        """Ping."""
        pinged.append(1)
        return "pong"

    llm = ScriptedLLM([calls, "ready"])
    tools: list[Any] = [job.result_of, ping]
    first = Brain("react", stored(journal), tools, llm=llm)

    def brain() -> Brain:
        return Brain("react", stored(journal), tools, llm=llm) if durable else first

    result = await brain().run("go")
    assert (result.stop_reason, result.wake_at) == ("sleeping", NOON + timedelta(minutes=30))
    clock.now += timedelta(minutes=30)
    assert (await brain().resume()).stop_reason == "sleeping"
    clock.now += timedelta(minutes=30)
    last = await brain().resume()
    assert (last.answer, job.ran, pinged) == ("ready", 3, [1])
    results = [m.content for m in last.messages if m.role == "tool"]
    assert results == ["job 1 is done", "pong"]


async def test_a_tool_of_a_nested_brain_waits(clock: Clock) -> None:
    job = Job(clock)
    inner = Brain(
        "react",
        tools=[job.result_of],
        llm=ScriptedLLM([Action(name="result_of", args={"number": 2}), "found"]),
    )
    ask = Action(name="ask", args={"task": "Look."})
    outer = Brain(
        "react", tools=[inner.as_tool("ask", "Asks.")], llm=ScriptedLLM([ask, "all done"])
    )
    result = await outer.run("go")
    assert (result.stop_reason, result.wake_at) == ("sleeping", NOON + timedelta(minutes=30))
    clock.now += timedelta(hours=1)
    assert (await outer.resume()).answer == "all done"
    assert job.ran == 2


async def test_a_brain_that_is_called_outside_of_a_run_says_that_it_waits(clock: Clock) -> None:
    llm = ScriptedLLM([Action(name="result_of", args={"number": 1})])
    asking = Brain("react", tools=[Job(clock).result_of], llm=llm).as_tool("ask", "Asks.")
    with pytest.raises(ToolError, match="stopped early, sleeping"):
        await asking.execute(task="Look.")


@pytest.mark.parametrize("other", [Sleep(timedelta(hours=1)), None], ids=["sleeps", "asks"])
async def test_a_pause_counts_before_what_other_branches_wait_for(
    clock: Clock, other: Sleep | None
) -> None:
    class Ask(Wait):
        async def run(self, memory: Any) -> Any:
            if memory.control.input is None:
                yield InputRequested("Which?")
            yield "asked"

    waiting = net(other) if other else Net({Step.WAIT: Ask(), Step.TELL: Tell()})
    both = ParallelState({"a": waiting, "b": net()}, on_done=Step.TELL)
    brain = Brain({Step.WAIT: both, Step.TELL: Tell()})
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, StateEntered) and event.path[-1:] == ("b",):
                run.pause()
    assert (run.result.stop_reason, run.result.wake_at) == ("paused", None)
    result = await brain.resume()
    assert result.stop_reason == ("sleeping" if other else "input")
    clock.now += timedelta(hours=1)
    last = await (brain.resume() if other else brain.resume(input="this"))
    assert last.answer == "told"


async def test_no_decision_at_all_is_refused() -> None:
    def pay() -> str:
        """Pay."""
        return "paid"

    pay_tool = tool(requires_approval=True)(pay)
    llm = ScriptedLLM([Action(name="pay", args={}), "done"])
    brain = Brain("react", tools=[pay_tool], llm=llm)
    assert (await brain.run("go")).stop_reason == "approval"
    nothings: list[dict[str, Any]] = [{"approve": []}, {"deny": {}}, {"edit": {}}, {"input": {}}]
    for nothing in nothings:
        with pytest.raises(ResumeError, match="waits for a person"):
            await brain.resume(**nothing)
    assert (await brain.resume(approve=True)).answer == "done"


async def test_a_run_that_slept_is_replayed_without_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slept, ran = Clock(), []

    class Nap(Wait):
        async def run(self, memory: Any) -> Any:
            ran.append(1)
            yield Sleep(NOON + timedelta(hours=1))
            yield Sleep(timedelta(days=3650))
            yield "waited"

    memory = MessagesMemory(journal=RamJournal())
    brain = Brain({Step.WAIT: Nap(), Step.TELL: Tell()}, memory, trace=True)
    with monkeypatch.context() as patch:
        patch.setattr(wake, "now", slept)
        await brain.run("go")
        slept.now += timedelta(hours=1)
        await brain.resume()
        slept.now += timedelta(days=3650)
        assert (await brain.resume()).answer == "told"
    ran.clear()
    report = await brain.replay()
    assert report.equal, report
    assert len(ran) <= 3
    assert wake.now() < NOON + timedelta(days=3650)
