"""Steering a run that goes on: stop it, cancel it, send it messages."""

from __future__ import annotations

from enum import Enum
from typing import Any

import anyio
import pytest

from agent_brain import (
    Brain,
    Limits,
    Message,
    MessagesMemory,
    Net,
    SQLiteJournal,
    State,
    react,
    tool,
)
from agent_brain.errors import BrainUseError, MemoryBusyError
from agent_brain.memories import RamJournal, Role, WindowedMemory
from agent_brain.nets import SubnetState
from agent_brain.states import FunctionState
from agent_brain.states.events import (
    ActionFinished,
    ActionRequested,
    ActionStarted,
    MessageReceived,
    RunFailed,
    RunFinished,
    RunStarted,
    StateExited,
    TextDelta,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.clock import FakeClock, fake_clock
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


@tool
async def double(n: int) -> int:
    """Double a number."""
    return 2 * n


def doubling(n: int) -> list[Action]:
    return [Action(name="double", args={"n": n})]


def asked(*answers: Any, **options: Any) -> Brain:
    return Brain("react", tools=[double], llm=ScriptedLLM(list(answers)), **options)


async def contents(brain: Brain) -> list[str]:
    memory: Any = brain.memory
    return [m.content for m in await memory.messages()]


async def test_a_stopped_run_ends_after_the_step_and_continues_with_its_open_call():
    brain = asked(doubling(2), "four")
    async with brain.stream("2 times 2?") as run:
        async for event in run:
            if isinstance(event, ActionRequested):
                run.stop()
    assert run.result.stop_reason == "stopped"
    assert run.result.steps == 1
    assert len(brain.memory.control.next_actions) == 1
    result = await brain.resume()
    assert (result.stop_reason, result.answer) == ("done", "four")
    assert [m.content for m in result.messages if m.role is Role.TOOL] == ["4"]


async def test_a_run_that_is_stopped_before_its_first_step_does_nothing():
    brain = asked("yes")
    async with brain.stream("well?") as run:
        run.stop()
        kinds = [event.kind async for event in run]
    assert kinds == ["run_started", "run_finished"]
    assert (await brain.resume()).answer == "yes"


async def test_a_run_that_is_stopped_in_its_last_step_is_done():
    brain = asked("yes")
    async with brain.stream("well?") as run:
        async for event in run:
            if isinstance(event, StateExited) and event.next is None:
                run.stop()
    assert run.result.stop_reason == "done"


async def test_a_stop_at_every_event_loses_and_repeats_nothing():
    brain = asked(doubling(2), doubling(3), "done")
    async with brain.stream("go") as run:
        count = len([event async for event in run])
    expected = await contents(brain)
    for at in range(count):
        brain = asked(doubling(2), doubling(3), "done")
        async with brain.stream("go") as run:
            seen = 0
            async for _ in run:
                if seen == at:
                    run.stop()
                seen += 1
        if run.result.stop_reason == "stopped":
            assert (await brain.resume()).stop_reason == "done"
        assert await contents(brain) == expected


async def test_a_new_goal_after_a_stop_answers_the_open_calls():
    brain = asked(doubling(2), "something else")
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, ActionRequested):
                run.stop()
    result = await brain.run("forget it")
    assert result.answer == "something else"
    told = [m.content for m in await brain.memory.dump() if m.role is Role.TOOL]
    assert told == ["The call was not run: a new goal was set first"]


class Outer(Enum):
    INNER = "inner"


async def test_a_stop_inside_a_subnet_on_the_same_memory_continues_there():
    inner = react(ScriptedLLM([doubling(2), "four"]))
    net = Net({Outer.INNER: SubnetState(inner, on_done=None)})
    brain = Brain(net, MessagesMemory([double]))
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, ActionRequested):
                run.stop()
    assert run.result.stop_reason == "stopped"
    result = await brain.resume()
    assert (result.answer, result.stop_reason) == ("four", "done")


async def test_a_stop_lets_a_branch_on_its_own_memory_complete():
    inner = react(ScriptedLLM([doubling(2), "four"]))
    net = Net({Outer.INNER: SubnetState(inner, on_done=None, fork=True)})
    brain = Brain(net, MessagesMemory([double]))
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, ActionRequested):
                run.stop()
    assert run.result.answer == "four"


async def test_a_stopped_run_of_a_journal_continues_in_another_program(tmp_path: Any):
    path = tmp_path / "journal.db"
    async with MessagesMemory([double], journal=SQLiteJournal(path)) as memory:
        llm = ScriptedLLM([doubling(2)])
        async with Brain(react(llm), memory).stream("go") as run:
            async for event in run:
                if isinstance(event, ActionRequested):
                    run.send("and quickly")
                    run.stop()
        assert [m.content for m in run.unread] == ["and quickly"]
    async with MessagesMemory([double], journal=SQLiteJournal(path)) as memory:
        result = await Brain(react(ScriptedLLM(["four"])), memory).resume()
        assert result.answer == "four"


@pytest.mark.parametrize("timeout", [None, 60])
async def test_cancelling_ends_a_tool_that_waits_and_the_events_end_with_the_result(timeout: Any):
    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return ""

    llm = ScriptedLLM([[Action(name="wait")], "after"])
    brain = Brain(react(llm), tools=[wait], limits=Limits(timeout=timeout))
    events = []
    async with anyio.create_task_group() as tasks, brain.stream("go") as run:
        async for event in run:
            events.append(event)
            if isinstance(event, ActionStarted):
                tasks.start_soon(_cancel, run)
    assert isinstance(events[-1], RunFinished)
    assert run.result.stop_reason == events[-1].stop_reason == "cancelled"
    assert "was interrupted" in run.result.messages[-1].content


async def _cancel(run: Any) -> None:
    run.cancel()


async def test_cancelling_between_two_events_ends_the_run_at_the_next():
    brain = asked("one two three")
    async with brain.stream("go") as run:
        kinds = []
        async for event in run:
            kinds.append(event.kind)
            if isinstance(event, TextDelta):
                run.cancel()
    assert kinds.count("text_delta") == 1
    assert kinds[-1] == "run_finished"
    assert run.result.stop_reason == "cancelled"


@pytest.mark.parametrize("timeout", [None, 5])
async def test_a_run_can_be_cancelled_before_it_starts_and_leaves_nothing(timeout: Any):
    brain = asked("yes", limits=Limits(timeout=timeout))
    async with brain.stream("go") as run:
        run.cancel()
        kinds = [event.kind async for event in run]
        assert run.ended
    assert kinds == ["run_finished"]
    assert await contents(brain) == []
    assert (await brain.run("again")).answer == "yes"


async def test_a_tool_may_cancel_its_own_run():
    holder: list[Any] = []

    @tool
    async def give_up() -> str:
        """Give up."""
        holder[0].cancel()
        await anyio.sleep_forever()
        return ""

    brain = Brain("react", tools=[give_up], llm=ScriptedLLM([[Action(name="give_up")], "after"]))
    async with brain.stream("go") as run:
        holder.append(run)
        async for _ in run:
            pass
    assert run.result.stop_reason == "cancelled"


async def test_cancelling_leaves_the_task_that_reads_alone():
    brain = asked("one", "two")
    with anyio.CancelScope() as scope:
        async with brain.stream("go") as run:
            async for event in run:
                if isinstance(event, RunStarted):
                    run.cancel()
        await anyio.lowlevel.checkpoint()
        assert (await brain.run("again")).answer == "one"
    assert not scope.cancelled_caught


async def test_a_run_whose_events_are_read_by_several_tasks_can_be_cancelled():
    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return ""

    brain = Brain("react", tools=[wait], llm=ScriptedLLM([[Action(name="wait")], "after"]))
    async with brain.stream("go") as run:
        events = aiter(run)
        seen: list[Any] = []

        async def read() -> None:
            seen.append(await anext(events, None))

        while not seen or not isinstance(seen[-1], ActionStarted):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(read)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read)
            tasks.start_soon(_cancel, run)
        assert isinstance(seen[-1], RunFinished)
        await anyio.lowlevel.checkpoint()  # this task was not cancelled
    assert run.result.stop_reason == "cancelled"


async def test_a_scope_around_the_reader_that_is_cancelled_at_the_same_time_wins():
    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return ""

    brain = Brain("react", tools=[wait], llm=ScriptedLLM([[Action(name="wait")], "after"]))
    with anyio.CancelScope() as scope:

        async def both(run: Any) -> None:
            scope.cancel()
            run.cancel()

        async with anyio.create_task_group() as tasks, brain.stream("go") as run:
            async for event in run:
                if isinstance(event, ActionStarted):
                    tasks.start_soon(both, run)
    assert scope.cancelled_caught
    assert run.result.stop_reason == "cancelled"
    await anyio.lowlevel.checkpoint()


async def test_a_tool_that_swallows_the_cancellation_does_not_cancel_the_reader():
    holder: list[Any] = []

    @tool
    async def stubborn() -> str:
        """Go on whatever happens."""
        try:
            holder[0].cancel()
            await anyio.sleep_forever()
        except BaseException:
            return "still here"
        return ""

    brain = Brain("react", tools=[stubborn], llm=ScriptedLLM([[Action(name="stubborn")], "x"]))
    async with brain.stream("go") as run:
        holder.append(run)
        async for _ in run:
            await anyio.lowlevel.checkpoint()
    assert run.result.stop_reason == "cancelled"
    await anyio.lowlevel.checkpoint()


async def test_a_message_is_told_before_a_stop_inside_a_subnet():
    inner = react(ScriptedLLM([doubling(2), "four"]))
    net = Net({Outer.INNER: SubnetState(inner, on_done=None)})
    told = []
    async with Brain(net, MessagesMemory([double])).stream("2 times 2?") as run:
        async for event in run:
            if isinstance(event, ActionFinished):
                run.send("hello")
                run.stop()
            if isinstance(event, MessageReceived | RunFinished):
                told.append(event.kind)
    assert told == ["message_received", "run_finished"]
    assert run.result.stop_reason == "stopped"


@pytest.mark.parametrize("reason", ["stopped", "max_steps"])
async def test_the_end_of_a_step_is_told_where_a_stored_run_stops_inside_a_subnet(tmp_path, reason):
    inner = react(ScriptedLLM([doubling(2), "four"]))
    net = Net({Outer.INNER: SubnetState(inner, on_done=None)})
    limits = Limits(max_steps=1) if reason == "max_steps" else Limits()
    left = []
    async with SQLiteJournal(tmp_path / "a.db") as journal:
        brain = Brain(net, MessagesMemory([double], journal=journal), limits=limits)
        async with brain.stream("2 times 2?") as run:
            async for event in run:
                if isinstance(event, ActionRequested) and reason == "stopped":
                    run.stop()
                if isinstance(event, StateExited):
                    left.append(event.at.state)
        assert (run.result.stop_reason, left) == (reason, ["REASONING", "INNER"])
        if reason == "stopped":
            assert (await brain.resume()).answer == "four"


async def test_a_run_that_has_ended_ignores_stop_and_cancel():
    brain = asked("yes")
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, RunFinished):
                run.stop()
                run.cancel()
    assert run.result.stop_reason == "done"
    run.stop()
    run.cancel()


async def test_messages_are_recorded_before_the_next_step_in_order():
    brain = asked(doubling(2), "four, and hello")
    received = []
    async with brain.stream("2 times 2?") as run:
        async for event in run:
            if isinstance(event, ActionFinished):
                run.send("hello")
                run.send(Message.user("again", name="Ann"))
                assert len(run.unread) == 2
            if isinstance(event, MessageReceived):
                received.append((event.message.content, event.step, event.state))
    assert received == [("hello", 2, None), ("again", 2, None)]
    assert run.unread == []
    assert await contents(brain) == ["2 times 2?", "", "4", "hello", "again", "four, and hello"]


async def test_a_message_never_comes_between_a_call_and_its_result():
    brain = asked([*doubling(1), *doubling(2)], "done")
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, ActionRequested) and len(run.unread) < 1:
                run.send("by the way")
    assert await contents(brain) == ["go", "", "2", "4", "by the way", "done"]


async def test_a_message_during_the_answer_is_answered_too():
    brain = asked("four", "and five")
    async with brain.stream("2 times 2?") as run:
        async for event in run:
            if isinstance(event, TextDelta) and event.text == "four":
                run.send("plus one?")
    assert run.result.answer == "and five"
    assert await contents(brain) == ["2 times 2?", "four", "plus one?", "and five"]


async def test_a_message_in_the_last_step_stays_unread():
    async def say(memory: Any) -> str:
        return "said"

    brain = Brain(Net({Outer.INNER: FunctionState(say)}))
    async with brain.stream("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                run.send("too late")
    assert [m.content for m in run.unread] == ["too late"]
    with pytest.raises(BrainUseError, match="The run has ended"):
        run.send("later still")


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ("", "The message is empty"),
        ("  ", "The message is empty"),
        (Message.system("obey"), "not one with role='system'"),
        (Message.assistant("well"), "not one with role='assistant'"),
    ],
)
async def test_what_is_not_a_message_of_a_user_is_refused(message: Any, problem: str):
    brain = asked("yes")
    async with brain.stream("go") as run:
        with pytest.raises(BrainUseError, match=problem):
            run.send(message)
        async for _ in run:
            pass
    assert run.result.answer == "yes"


async def test_a_message_that_a_journal_has_recorded_survives_a_crash(tmp_path: Any):
    class Fails(State):
        async def run(self, memory: Any) -> Any:
            yield "working"
            raise RuntimeError("crash")

        async def next_state(self, memory: Any) -> None:
            return None

    async def first(memory: Any) -> str:
        return "first"

    class Two(Enum):
        FIRST = 1
        FAILS = 2

    net = Net({Two.FIRST: FunctionState(first, on_done=Two.FAILS), Two.FAILS: Fails()})
    path = tmp_path / "journal.db"
    async with WindowedMemory(journal=SQLiteJournal(path)) as memory:
        run = Brain(net, memory).stream("go")
        with pytest.raises(RuntimeError):
            await _send_after(run, "first", "remember me")
    async with WindowedMemory(journal=SQLiteJournal(path)) as memory:
        assert "remember me" in [m.content for m in await memory.dump()]


async def test_a_message_that_a_run_has_received_survives_a_kill():
    store = RamJournal()
    journal = MortalJournal(store)

    async def first(memory: Any) -> str:
        return "first"

    async def ends(memory: Any) -> str:
        journal.die()
        raise Killed

    class Two(Enum):
        FIRST = 1
        ENDS = 2

    def net(last: Any) -> Net:
        states = {Two.FIRST: FunctionState(first, on_done=Two.ENDS), Two.ENDS: FunctionState(last)}
        return Net(states)

    with pytest.raises((Killed, BaseExceptionGroup)):
        await _send_after(
            Brain(net(ends), MessagesMemory(journal=journal)).stream("go"), "first", "remember me"
        )
    later = Brain(net(first), MessagesMemory(journal=store))
    await later.resume()
    assert "remember me" in await contents(later)


async def _send_after(run: Any, text: str, message: str) -> None:
    async with run:
        async for event in run:
            said = event.text if isinstance(event, TextDelta) else ""
            if said == text or (isinstance(event, ActionFinished) and event.result.content == text):
                run.send(message)


async def test_a_memory_that_cannot_record_a_message_keeps_it_unread():
    class Full(MessagesMemory):
        async def update(self, messages: Any) -> None:
            if any(m.content == "hello" for m in messages):
                raise OSError("disk full")
            await super().update(messages)

    llm = ScriptedLLM([doubling(2), "four"])
    brain = Brain(react(llm), Full([double]))
    run = brain.stream("go")
    with pytest.raises(OSError, match="disk full"):
        await _send_after(run, "4", "hello")
    assert [m.content for m in run.unread] == ["hello"]


class Cancels(State):
    """Cancels its run in one of its methods, and waits for nothing."""

    def __init__(self, where: str, holder: list[Any]) -> None:
        self.where = where
        self.holder = holder

    def at(self, where: str) -> None:
        if where == self.where:
            self.holder[0].cancel()

    async def on_enter(self, memory: Any) -> None:
        self.at("on_enter")

    async def run(self, memory: Any) -> Any:
        self.at("run")
        yield "text"

    async def on_exit(self, memory: Any) -> None:
        self.at("on_exit")

    async def next_state(self, memory: Any) -> None:
        self.at("next_state")


@pytest.mark.parametrize("timeout", [None, 60])
@pytest.mark.parametrize("where", ["on_enter", "run", "on_exit", "next_state"])
async def test_a_state_that_cancels_its_run_leaves_the_reader_alone(where: str, timeout: Any):
    holder: list[Any] = []
    net = Net({Outer.INNER: Cancels(where, holder)})
    brain = Brain(net, limits=Limits(timeout=timeout))
    async with brain.stream("go") as run:
        holder.append(run)
        async for _ in run:
            pass
    assert run.result.stop_reason == "cancelled"
    await anyio.lowlevel.checkpoint()
    assert (await brain.resume()).stop_reason == "done"


@pytest.mark.parametrize("timeout", [None, 60])
async def test_a_cancellation_while_the_end_is_recorded_leaves_the_reader_alone(timeout: Any):
    class Cancelling(MessagesMemory):
        async def turn(self) -> Any:
            run.cancel()
            return await super().turn()

    brain = Brain(react(ScriptedLLM(["yes"])), Cancelling(), limits=Limits(timeout=timeout))
    async with brain.stream("go") as run:
        kinds = [event.kind async for event in run]
    assert kinds[-1] == "run_finished"
    await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("timeout", [None, 60])
async def test_a_state_that_cancels_its_run_and_fails_raises_its_error(timeout: Any):
    class Fails(State):
        async def run(self, memory: Any) -> Any:
            yield "text"
            run.cancel()
            raise ValueError("wrong")

        async def next_state(self, memory: Any) -> None:
            return None

    run = Brain(Net({Outer.INNER: Fails()}), limits=Limits(timeout=timeout)).stream("go")
    with pytest.raises(ValueError, match="wrong"):
        await _cancel_at_the_failure(run)
    await anyio.lowlevel.checkpoint()


async def _cancel_at_the_failure(run: Any) -> None:
    async for event in run:
        if isinstance(event, RunFailed):
            run.cancel()
            with pytest.raises(BrainUseError, match="has ended"):
                run.send("still there?")


async def test_a_run_whose_memory_another_one_uses_has_ended():
    brain = asked("yes", "yes")
    async with brain.stream("go") as first, brain.stream("go too") as run:
        await anext(aiter(first))
        with pytest.raises(MemoryBusyError):
            await anext(aiter(run))
        assert run.ended


async def test_a_run_that_was_closed_before_it_began_takes_no_messages():
    async with asked("yes").stream("go") as run:
        run.send("before")
    with pytest.raises(BrainUseError, match="has ended"):
        run.send("after")
    assert [m.content for m in run.unread] == ["before"]


async def test_a_reader_that_is_slow_at_the_failure_gets_the_error_and_no_timeout():
    class Fails(State):
        async def run(self, memory: Any) -> Any:
            yield "text"
            raise ValueError("wrong")

        async def next_state(self, memory: Any) -> None:
            return None

    run = Brain(Net({Outer.INNER: Fails()}), limits=Limits(timeout=0.2)).stream("go")
    with fake_clock() as clock, pytest.raises(ValueError, match="wrong"):
        await _wait_at_the_failure(run, clock)


async def _wait_at_the_failure(run: Any, clock: FakeClock) -> None:
    async for event in run:
        if isinstance(event, RunFailed):
            clock.advance(0.3)
            await anyio.lowlevel.checkpoint()


async def test_a_run_in_the_cleanup_of_a_cancelled_task_can_be_cancelled():
    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return ""

    brain = Brain("react", tools=[wait], llm=ScriptedLLM([[Action(name="wait")], "after"]))
    reasons = []
    with anyio.CancelScope() as scope:
        scope.cancel()
        try:
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                async with anyio.create_task_group() as tasks, brain.stream("go") as run:
                    async for event in run:
                        if isinstance(event, ActionStarted):
                            tasks.start_soon(_cancel, run)
                reasons.append(run.result.stop_reason)
                await anyio.lowlevel.checkpoint()
                reasons.append((await brain.resume()).stop_reason)
    assert reasons == ["cancelled", "done"]


async def test_a_message_that_is_recorded_when_the_step_is_cancelled_is_not_unread():
    class Indexing(MessagesMemory):
        async def update(self, messages: Any) -> None:
            await super().update(messages)
            if any(m.content == "hello" for m in messages):
                run.cancel()
                await anyio.sleep_forever()

    llm = ScriptedLLM([doubling(2), "four"])
    brain = Brain(react(llm), Indexing([double]))
    run = brain.stream("go")
    await _send_after(run, "4", "hello")
    assert run.result.stop_reason == "cancelled"
    assert (await contents(brain)).count("hello") == 1
    assert run.unread == []


@pytest.mark.parametrize("timeout", [None, 60])
async def test_a_cancellation_while_a_run_that_was_left_is_recorded_changes_nothing(timeout: Any):
    here, cancelled = anyio.Event(), anyio.Event()

    class Slow(MessagesMemory):
        async def turn(self) -> Any:  # what a result is made of
            here.set()
            await cancelled.wait()
            return await super().turn()

    async def cancel() -> None:
        await here.wait()
        run.cancel()
        cancelled.set()

    llm = ScriptedLLM([["one ", "two"], "again"])
    brain = Brain(react(llm), Slow(), limits=Limits(timeout=timeout))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(cancel)
        async with brain.stream("go") as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    break
        await anyio.lowlevel.checkpoint()
    assert run.result.stop_reason == "cancelled"
    said = [message.content for message in run.result.messages]  # from the memory
    assert said == ["go", "one "]
    assert (await brain.resume()).answer == "again"
