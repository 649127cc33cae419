"""ActionState: all requested calls run concurrently, and each gets a result, in order."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agent_brain.memories import Call, Message, Role
from agent_brain.memories.runs.calls import uncertain
from agent_brain.states import ActionFinished, ActionState, ApprovalRequested, StateDefinitionError
from agent_brain.testing import FakeMemory, run_state
from agent_brain.tools import Action, BaseTool, ToolError, tool
from tests.states.helpers import DurableMemory, N, acting, add

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


def calls(name: str, count: int) -> list[Action]:
    return [Action(name=name, args={"who": who}, id=f"call_{who}") for who in range(count)]


def results(memory: FakeMemory) -> list[tuple[str | None, str, bool]]:
    return [(m.tool_call_id, m.content, m.is_error) for m in memory.updates[-1]]


async def test_a_call_is_run_and_its_result_recorded():
    action = Action(name="add", args={"a": 1, "b": 2})
    memory = FakeMemory("What?", tools=[add], next_actions=[action])
    done = await run_state(acting(), memory)

    [[message]] = memory.updates
    assert (message.role, message.content, message.name) == (Role.TOOL, "3", "add")
    assert (message.tool_call_id, message.cause_by) == (action.id, "ActionState")
    assert done.of(ActionFinished) == [ActionFinished(action, message)]
    assert memory.next_actions == []
    assert done.next_state is N.REASON


async def test_nothing_to_run_writes_nothing():
    memory = FakeMemory("What?")
    done = await run_state(acting(), memory)

    assert (memory.updates, done.events, done.next_state) == ([], [], N.REASON)


async def test_results_are_in_the_order_of_the_calls_however_they_end():
    may_end = [anyio.Event() for _ in range(3)]
    may_end[2].set()
    ended = []

    @tool
    async def wait(who: int) -> str:
        await may_end[who].wait()
        ended.append(who)
        if who:
            may_end[who - 1].set()  # each lets the one before it end
        return f"r{who}"

    memory = FakeMemory("What?", tools=[wait], next_actions=calls("wait", 3))
    done = await run_state(acting(), memory)

    assert ended == [2, 1, 0]
    assert len(memory.updates) == 1
    assert results(memory) == [(f"call_{i}", f"r{i}", False) for i in range(3)]
    assert [event.result.content for event in done.of(ActionFinished)] == ["r2", "r1", "r0"]


@tool
async def meet(who: int) -> str:
    """Wait until three are here."""
    inside.append(who)
    if len(inside) == 3:
        all_here[0].set()
    await all_here[0].wait()
    return "met"


inside: list[int] = []
all_here: list[anyio.Event] = []


async def test_calls_run_at_once():
    inside.clear()
    all_here[:] = [anyio.Event()]
    memory = FakeMemory("What?", tools=[meet], next_actions=calls("meet", 3))

    with anyio.fail_after(60):
        await run_state(acting(), memory)

    assert [content for _, content, _ in results(memory)] == ["met"] * 3


@pytest.mark.parametrize("limit", [1, 2])
async def test_no_more_run_at_once_than_is_said(limit):
    running = most = 0

    @tool
    async def count(who: int) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        running -= 1

    memory = FakeMemory("What?", tools=[count], next_actions=calls("count", 6))
    await run_state(acting(max_concurrency=limit), memory)

    assert most == limit
    assert len(results(memory)) == 6


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit):
    with pytest.raises(StateDefinitionError, match="max_concurrency"):
        ActionState(N.REASON, max_concurrency=limit)


async def test_an_error_in_a_call_is_its_result_and_the_others_continue():
    error = ValueError("bad luck")

    @tool
    async def fail() -> None:
        raise error

    actions = [
        Action(name="fail"),
        Action(name="nowhere"),
        Action(name="add", unparsed="{a: 1"),
        Action(name="add", args={"a": "x"}),
        Action(name="add", args={"a": 1, "b": 2}),
    ]
    memory = FakeMemory("What?", tools=[add, fail], next_actions=actions)
    done = await run_state(acting(), memory)

    assert [is_error for _, _, is_error in results(memory)] == [True, True, True, True, False]
    told = [content for _, content, _ in results(memory)]
    assert "bad luck" in told[0]
    assert "no tool 'nowhere'" in told[1]
    assert "You wrote: {a: 1" in told[2]
    assert "b: Field required" in told[3]
    assert done.of(ActionFinished)[0].exception is error


async def test_a_tool_that_needs_approval_waits_for_it():
    ran = []

    @tool(requires_approval=True)
    async def launch() -> None:
        ran.append(True)

    memory = FakeMemory("What?", tools=[launch], next_actions=[Action(name="launch")])
    done = await run_state(acting(), memory)

    [event] = done.of(ApprovalRequested)
    assert event.actions == tuple(memory.next_actions)
    assert (memory.updates, ran) == ([], [])


async def test_an_error_of_the_memory_is_raised_as_it_is_also_among_several_calls():
    class Full(DurableMemory):
        async def checkpoint(self) -> None:
            if any(call.result is not None for call in self.control.pending.values()):
                raise OSError("disk full")

    actions = [Action(name="add", args={"a": 1, "b": 2}) for _ in range(2)]
    memory = Full("What?", tools=[add], next_actions=actions)

    with pytest.raises(OSError, match="disk full"):
        await run_state(acting(), memory)
    assert len(memory.updates[-1]) == 2


async def test_one_at_a_time_is_in_the_order_of_the_calls():
    order = []

    @tool
    async def work(who: int) -> None:
        order.append(who)

    memory = FakeMemory("What?", tools=[work], next_actions=calls("work", 20))
    await run_state(acting(max_concurrency=1), memory)

    assert order == list(range(20))


async def test_after_an_error_of_the_memory_no_further_call_is_begun():
    class Full(DurableMemory):
        async def checkpoint(self) -> None:
            if ran:
                raise OSError("disk full")

    ran = []

    @tool
    async def work(who: int) -> None:
        ran.append(who)

    memory = Full("What?", tools=[work], next_actions=calls("work", 3))
    with pytest.raises(OSError, match="disk full"):
        await run_state(acting(max_concurrency=1), memory)

    assert ran == [0]


# -- cut short -------------------------------------------------------------------------------------


async def cancelled(memory: FakeMemory, until: anyio.Event, **options: Any) -> None:
    """Run the state and cancel it when ``until`` is set."""
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(run_state, acting(**options), memory)
            await until.wait()
            group.cancel_scope.cancel()


async def test_a_step_that_is_cancelled_records_what_had_finished_and_answers_the_rest():
    hanging = anyio.Event()
    stopped = []

    @tool
    async def work(who: int) -> str:
        if who == 1:
            return "done"
        try:
            hanging.set()
            await anyio.sleep_forever()
            return "never"
        finally:
            stopped.append(who)

    memory = FakeMemory("What?", tools=[work], next_actions=calls("work", 3))
    await cancelled(memory, hanging)

    assert sorted(stopped) in ([0], [0, 2], [2])
    assert [call_id for call_id, _, _ in results(memory)] == ["call_0", "call_1", "call_2"]
    finished = {content for _, content, is_error in results(memory) if not is_error}
    assert finished <= {"done"}
    assert all(
        "interrupted while it was running" in c for _, c, is_error in results(memory) if is_error
    )
    assert memory.next_actions == []
    assert memory.control.pending == {}


async def test_what_had_finished_before_a_cancellation_is_kept():
    first_is_done = anyio.Event()

    @tool
    async def work(who: int) -> str:
        if who == 0:
            return "done"
        first_is_done.set()  # with one at a time, the first has ended by now
        await anyio.sleep_forever()
        return "never"

    memory = FakeMemory("What?", tools=[work], next_actions=calls("work", 3))
    await cancelled(memory, first_is_done, max_concurrency=1)

    assert [(content, is_error) for _, content, is_error in results(memory)] == [
        ("done", False),
        (uncertain(Action(name="work")), True),
        ("The call was not run: the run was cut short", True),
    ]


async def test_a_cancellation_while_results_are_written_loses_none_and_doubles_none():
    class Slow(FakeMemory):
        async def update(self, messages: list[Message]) -> None:
            if not writing.is_set():
                writing.set()
                await anyio.sleep_forever()
            await anyio.lowlevel.checkpoint()
            await super().update(messages)

    writing = anyio.Event()
    memory = Slow("What?", tools=[add], next_actions=[Action(name="add", args={"a": 1, "b": 2})])
    await cancelled(memory, writing)

    assert [content for _, content, _ in results(memory)] == ["3"]
    assert len(memory.updates) == 1


async def test_results_are_the_same_messages_when_they_are_written_again():
    class Failing(FakeMemory):
        async def update(self, messages: list[Message]) -> None:
            await super().update(messages)
            if len(self.updates) == 1:
                raise OSError("connection lost after the write")

    memory = Failing("What?", tools=[add], next_actions=[Action(name="add", args={"a": 1, "b": 2})])
    with pytest.raises(OSError, match="connection lost"):
        await run_state(acting(), memory)

    first, second = memory.updates
    assert [m.id for m in first] == [m.id for m in second]


# -- durable memories ------------------------------------------------------------------------------


class Counting(BaseTool):
    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name, "Count.", {"type": "object"}, **options)
        self.runs = 0

    async def execute(self, **kwargs: Any) -> Any:
        self.runs += 1
        return self.runs


async def test_a_durable_memory_notes_calls_before_they_run_and_results_while_others_run():
    memory = DurableMemory("What?", tools=[add], next_actions=[])
    memory.next_actions = [
        Action(name="add", args={"a": 1, "b": 2}, id="call_1"),
        Action(name="add", args={"a": 3, "b": 4}, id="call_2"),
    ]
    await run_state(ActionState(N.REASON, max_concurrency=1), memory)

    before, after = memory.saved  # the last result is written with the step
    assert [*before.pending] == ["call_1"]
    assert before.pending["call_1"].result is None
    assert after.pending["call_1"].result is not None
    assert after.pending["call_1"].result.content == "3"
    assert after.pending["call_2"].result is None
    assert memory.control.pending == {}


async def test_a_memory_that_is_not_durable_has_no_notes():
    memory = FakeMemory("What?", tools=[add], next_actions=[Action(name="add", args={"a": 1})])
    await run_state(acting(), memory)

    assert not memory.durable
    assert memory.control.pending == {}


async def resumed(
    *tools: BaseTool, pending: dict[str, Call], actions: list[Action]
) -> DurableMemory:
    memory = DurableMemory("What?", tools=tools, next_actions=actions)
    memory.control.pending = pending
    await memory.checkpoint()
    again = memory.after_a_crash()
    await run_state(acting(), again)
    return again


async def test_after_a_crash_a_finished_call_is_not_run_again():
    counter = Counting("count")
    action = Action(name="count")
    note = Call(action=action, result=Message.tool("41", action))
    memory = await resumed(counter, pending={action.id: note}, actions=[action])

    assert counter.runs == 0
    assert results(memory) == [(action.id, "41", False)]
    assert memory.updates[-1] == [note.result]


async def test_after_a_crash_a_call_that_may_have_happened_is_reported_and_not_run_again():
    counter = Counting("count")
    action = Action(name="count")
    memory = await resumed(counter, pending={action.id: Call(action=action)}, actions=[action])

    assert counter.runs == 0
    [(_, told, is_error)] = results(memory)
    assert is_error
    assert "may or may not have taken effect" in told


async def test_after_a_crash_an_idempotent_call_is_run_again():
    counter = Counting("count", idempotent=True)
    action = Action(name="count")
    memory = await resumed(counter, pending={action.id: Call(action=action)}, actions=[action])

    assert counter.runs == 1
    assert results(memory) == [(action.id, "1", False)]


async def test_after_a_crash_calls_that_had_not_begun_are_run():
    counter = Counting("count")
    begun, fresh = Action(name="count"), Action(name="count")
    note = Call(action=begun, result=Message.tool("41", begun, is_error=True))
    memory = await resumed(counter, pending={begun.id: note}, actions=[begun, fresh])

    assert results(memory) == [(begun.id, "41", True), (fresh.id, "1", False)]


async def test_a_crash_between_two_results_keeps_the_first():
    class Crash(BaseException):
        """What no outcome swallows."""

    @tool
    async def crash(who: int) -> int:
        if who == 1:
            raise Crash
        return who

    memory = DurableMemory("What?", tools=[crash], next_actions=calls("crash", 2))
    with pytest.raises(Crash):
        await run_state(acting(max_concurrency=1), memory)

    pending = memory.saved[-1].pending
    assert pending["call_0"].result is not None
    assert pending["call_1"].result is None


async def test_a_tool_error_is_an_event_with_its_exception():
    error = ToolError("no such city")

    @tool
    def fail() -> None:
        raise error

    memory = FakeMemory("What?", tools=[fail], next_actions=[Action(name="fail")])
    done = await run_state(acting(), memory)

    assert done.of(ActionFinished)[0].exception is error
