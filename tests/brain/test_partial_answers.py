"""Text that a reader has seen is kept when a run is cut short, until the run gives all of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest

from agent_brain import (
    LLM,
    Brain,
    Limits,
    Memory,
    MessagesMemory,
    Net,
    ParallelState,
    State,
    StopReason,
    SubnetState,
    UsageBudget,
    UsageLedger,
    WindowedMemory,
    create_memory,
    react,
)
from agent_brain.errors import LLMConnectionError, ResumeError
from agent_brain.memories import Message, Role, SQLiteJournal, is_partial
from agent_brain.states import Finish, TextDelta, Thought, Usage
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import HangingLLM, Say, Steps, add, single
from tests.support.clock import fake_clock
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio

GOAL = "Tell me about bees."
WHOLE = "Bees fly and dance."


class TalkingLLM(HangingLLM):
    """Thinks, says the beginning of an answer, and hangs."""

    async def stream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
        yield Thought("Let me think. ")
        for word in ("Bees ", "fly"):
            yield word
        self.waiting.set()
        await anyio.sleep_forever()


async def cancel(brain: Brain) -> None:
    async with brain.stream(GOAL) as run:
        async for event in run:
            if isinstance(event, TextDelta) and event.text == "fly":
                run.cancel()


async def leave(brain: Brain) -> None:
    async with brain.stream(GOAL) as run:
        async for event in run:
            if isinstance(event, TextDelta) and event.text == "fly":
                break


async def leave_answer(brain: Brain) -> None:
    async with aclosing(brain.answer(GOAL)) as pieces:
        async for piece in pieces:
            if piece == "fly":
                break


async def cancel_task(brain: Brain) -> None:
    llm = TalkingLLM()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(Brain(react(llm), brain.memory).run, GOAL)
        await llm.waiting.wait()
        tasks.cancel_scope.cancel()


async def run_out_of_time(brain: Brain) -> None:
    with fake_clock():
        await Brain(brain.net, brain.memory, limits=Limits(timeout=0.02)).run(GOAL)


async def fail(brain: Brain) -> None:
    llm = ScriptedLLM([[Thought("Let me think. "), "Bees ", "fly", LLMConnectionError("cut")]])
    with pytest.raises(LLMConnectionError):
        await Brain(react(llm), brain.memory).run(GOAL)


WAYS: list[Callable[[Brain], Awaitable[None]]] = [
    cancel, leave, leave_answer, cancel_task, run_out_of_time, fail,
]  # fmt: skip


async def said(memory: Memory) -> list[tuple[str, bool]]:
    messages = [*await memory.goal(), *await memory.dump()]
    return [(message.content, is_partial(message)) for message in messages]


@pytest.mark.parametrize("end", WAYS, ids=lambda end: end.__name__)
async def test_what_was_said_is_kept_and_given_whole_by_the_run_that_continues(
    end: Callable[[Brain], Awaitable[None]],
) -> None:
    memory = MessagesMemory()
    await end(Brain(react(TalkingLLM()), memory))
    assert await said(memory) == [(GOAL, False), ("Bees fly", True)]
    assert (await memory.turns())[-1].answer == "Bees fly"
    result = await Brain(react(ScriptedLLM([WHOLE])), memory).resume()
    assert result.answer == WHOLE
    assert await said(memory) == [(GOAL, False), (WHOLE, False)]


MEMORIES = ("messages", "windowed", "vector", "summary", "layered", "todo")


@pytest.mark.parametrize("stored", [False, True], ids=["ram", "sqlite"])
@pytest.mark.parametrize("name", MEMORIES)
async def test_every_memory_keeps_and_replaces_it(name: str, stored: bool, tmp_path: Path) -> None:
    options: dict[str, Any] = {"journal": tmp_path / "a.db"} if stored else {}
    async with create_memory(name, **options) as memory:
        await leave(Brain(react(TalkingLLM()), memory))
        assert ("Bees fly", True) in await said(memory)
        await Brain(react(ScriptedLLM([WHOLE])), memory).resume()
        assert ("Bees fly", True) not in await said(memory)
        assert (WHOLE, False) in await said(memory)
    if stored:
        async with create_memory(name, **options) as again:
            assert [text for text, _ in await said(again)] == [GOAL, WHOLE]


class FourMethods(Memory):
    """A memory that can delete nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[Message] = []
        self.all: list[Message] = []

    async def set_goal(self, goal: str | Message) -> None:
        self.asked = [goal if isinstance(goal, Message) else Message.user(goal)]

    async def update(self, messages: list[Message]) -> None:
        self.all += messages

    async def goal(self) -> list[Message]:
        return [*self.asked]

    async def dump(self) -> list[Message]:
        return [*self.all]


async def test_a_memory_that_cannot_delete_keeps_the_partial_answer_too() -> None:
    memory = FourMethods()
    net = react(ScriptedLLM([WHOLE]))
    await leave(Brain(react(TalkingLLM()), memory))
    assert (await Brain(net, memory).resume()).answer == WHOLE
    assert await said(memory) == [(GOAL, False), ("Bees fly", True), (WHOLE, False)]


@pytest.mark.parametrize("mode", ["native", "text"])
async def test_the_model_is_told_that_an_answer_was_cut_off(
    mode: Literal["native", "text"],
) -> None:
    brain = Brain(react(TalkingLLM()))
    await leave(brain)
    llm = ScriptedLLM(["They dance.", "They dance."])
    await Brain(react(llm, mode=mode), brain.memory).run("And what else?")
    for call in llm.calls:
        seen = [m.content for m in call.messages if m.role is not Role.SYSTEM]
        assert seen[:3] == [GOAL, "Bees fly\n\n[This answer was cut off]", "And what else?"]
    texts = await said(brain.memory)
    assert ("Bees fly", True) in texts  # a new goal keeps it
    assert not any("cut off" in text for text, _ in texts)


@pytest.mark.parametrize("mode", ["native", "text"])
@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_the_model_is_told_that_its_own_answer_was_cut_off(
    mode: Literal["native", "text"], reason: Literal["length", "content_filter"]
) -> None:
    brain = Brain(react(ScriptedLLM([["Bees fly", Finish(reason)]])))
    assert (await brain.run(GOAL)).finish_reason == reason
    assert not brain.memory.control.resumable
    llm = ScriptedLLM(["They dance.", "They dance."])
    await Brain(react(llm, mode=mode), brain.memory).run("And what else?")
    for call in llm.calls:
        seen = [m.content for m in call.messages if m.role is not Role.SYSTEM]
        assert seen[:3] == [GOAL, "Bees fly\n\n[This answer was cut off]", "And what else?"]
    assert ("Bees fly", False) in await said(brain.memory)


async def test_a_state_of_ones_own_shows_the_model_that_an_answer_was_cut_off() -> None:
    class Ask(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            call = llm.call(await memory.context())
            yield call
            await memory.update([Message.assistant(call.text)])

        async def next_state(self, memory: Memory) -> Literal[None]:
            return None

    llm = ScriptedLLM(["They dance."])
    brain = Brain(react(TalkingLLM()))
    await leave(brain)
    await Brain(single(Ask()), brain.memory).run("And?")
    assert llm.calls[0].messages[1].content == "Bees fly\n\n[This answer was cut off]"


async def test_a_summary_and_what_is_recalled_say_that_an_answer_was_cut_off() -> None:
    summary = create_memory("summary", max_messages=2)
    vector = create_memory("vector", recent=2, k=5)
    for memory in (summary, vector):
        await leave(Brain(react(TalkingLLM()), memory))
        for number in range(4):
            await memory.update([Message.user(f"Next {number}"), Message.assistant("Well.")])
        await memory.set_goal("What do bees do?")
        shown = [m.content for m in await memory.context()]
        assert any("Bees fly" in text and "[This answer was cut off]" in text for text in shown)


async def test_only_what_no_message_holds_is_kept() -> None:
    class TwoAnswers(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            first = ScriptedLLM(["First."]).call(await memory.context())
            yield first
            await memory.update([Message.assistant(first.text)])
            yield "Second"
            await anyio.sleep_forever()

        async def next_state(self, memory: Memory) -> Literal[None]:
            return None

    brain = Brain(single(TwoAnswers()))
    async with brain.stream(GOAL) as run:
        async for event in run:
            if isinstance(event, TextDelta) and event.text == "Second":
                break
    assert await said(brain.memory) == [(GOAL, False), ("First.", False), ("Second", True)]


async def test_a_run_that_is_left_after_its_step_has_no_partial_answer() -> None:
    for where in ("state_exited", "run_finished"):
        brain = Brain(react(ScriptedLLM([WHOLE])))
        async with brain.stream(GOAL) as run:
            async for event in run:
                if event.kind == where:
                    break
        assert await said(brain.memory) == [(GOAL, False), (WHOLE, False)]


async def test_a_call_is_answered_before_the_partial_answer() -> None:
    asks = [["Let me add. ", Action(name="add", args={"a": 1, "b": 2})]]
    brain = Brain(
        react(ScriptedLLM([*asks, ["It is ", "3", LLMConnectionError("cut")]])), tools=[add]
    )
    with pytest.raises(LLMConnectionError):
        await brain.run("1 + 2?")
    roles = [(m.role.value, m.content) for m in await brain.memory.dump()]
    assert roles == [("assistant", "Let me add. "), ("tool", "3"), ("assistant", "It is 3")]


async def test_text_of_an_inner_net_is_kept_where_the_reader_saw_it() -> None:
    inner = react(TalkingLLM())
    net = Net({Steps.ONE: SubnetState(inner)})
    brain = Brain(net)
    await leave(brain)
    assert await said(brain.memory) == [(GOAL, False), ("Bees fly", True)]
    assert brain.last_result is not None
    assert brain.last_result.answer == "Bees fly"


async def test_text_of_branches_streams_as_thoughts_and_is_not_kept() -> None:
    net = Net({Steps.ONE: ParallelState([react(TalkingLLM()), single(Say("x"))])})
    brain = Brain(net)
    await leave(brain)
    assert await said(brain.memory) == [(GOAL, False)]


async def test_thoughts_are_not_kept() -> None:
    class Think(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            yield Thought("Hm.")
            await anyio.sleep_forever()

        async def next_state(self, memory: Memory) -> Literal[None]:
            return None

    brain = Brain(single(Think()), limits=Limits(timeout=0.02))
    with fake_clock():
        assert (await brain.run(GOAL)).stop_reason is StopReason.TIMEOUT
    assert await said(brain.memory) == [(GOAL, False)]


async def test_a_budget_that_is_used_up_within_a_step_keeps_what_was_said() -> None:
    class Twice(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            llm = ScriptedLLM([["First.", Usage(cost=1.0)], "Second."])
            for _ in range(2):
                yield llm.call(await memory.context())

        async def next_state(self, memory: Memory) -> Literal[None]:
            return None

    brain = Brain(single(Twice()), hooks=[UsageLedger([UsageBudget("run", cost=0.5)])])
    result = await brain.run(GOAL)
    assert result.stop_reason is StopReason.BUDGET
    assert await said(brain.memory) == [(GOAL, False), ("First.", True)]


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("killed", ["ending", "continuing"])
async def test_a_kill_at_any_write_leaves_one_whole_answer(
    killed: str, after: bool, tmp_path: Path
) -> None:
    async with SQLiteJournal(tmp_path / "a.db") as store:
        at = deaths = 0
        seen: dict[str, set[Any]] = {"ending": set(), "continuing": set()}
        while deaths == at:
            at += 1
            place: dict[str, Any] = {"session": f"{at}"}
            dies_at = {killed: at}
            for part in ("ending", "continuing"):
                journal = MortalJournal(store, dies_at.get(part), after=after)
                with suppress(Killed, ResumeError):  # the latter where the goal was not written
                    memory = MessagesMemory(journal=journal, **place)
                    if part == "ending":
                        await leave(Brain(react(TalkingLLM()), memory))
                    else:
                        await Brain(react(ScriptedLLM([WHOLE])), memory).resume()
                deaths += journal.dead
                seen[part].add(await left_in(store, f"{at}"))
            memory = MessagesMemory(journal=store, **place)
            await memory.open()
            if memory.control.run_id is not None:  # the goal was written
                await Brain(react(ScriptedLLM([WHOLE])), memory).resume()
                assert await said(memory) == [(GOAL, False), (WHOLE, False)]
        assert at > 2
    assert ("ended", True, ("Bees fly", True)) in seen["ending"]
    assert ("running", True, ("Bees fly", True)) not in seen["ending"]  # it is one write
    assert ("ended", False, (WHOLE, False)) in seen["continuing"]


async def left_in(store: SQLiteJournal, session: str) -> tuple[Any, ...]:
    """The status of the run, whether it can be resumed, and what was answered."""
    memory = MessagesMemory(journal=store, session=session, readonly=True)
    await memory.open()
    control = memory.control
    return (control.status, control.resumable, *(await said(memory))[1:])


class SilentLLM(HangingLLM):
    """Says nothing, and hangs."""

    async def stream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
        await anyio.sleep_forever()
        yield


async def test_a_run_that_continues_and_says_nothing_keeps_what_was_said() -> None:
    memory = MessagesMemory()
    await run_out_of_time(Brain(react(TalkingLLM()), memory))
    again = Brain(react(SilentLLM()), memory, limits=Limits(timeout=0.02))
    with fake_clock():
        assert (await again.resume()).stop_reason is StopReason.TIMEOUT  # seconds count on
    assert await said(memory) == [(GOAL, False), ("Bees fly", True)]
    silent = Brain(react(ScriptedLLM([LLMConnectionError("cut")])), memory)
    with pytest.raises(LLMConnectionError):
        await silent.resume()
    assert await said(memory) == [(GOAL, False), ("Bees fly", True)]


@pytest.mark.parametrize("how", ["clear", "forget", "delete"])
async def test_a_run_whose_goal_is_gone_cannot_be_resumed(how: str) -> None:
    memory = MessagesMemory()
    llm = ScriptedLLM([["One ", "two"]])
    async with Brain("react", memory, llm=llm).stream("Tell me about card 4111") as run:
        async for event in run:
            if event.kind == "text_delta":
                break
    if how == "clear":
        await memory.clear()
        assert not memory.control.resumable
    elif how == "forget":
        await memory.forget(text="4111")
    else:
        await memory.delete((await memory.goal())[0].id)
    with pytest.raises(ResumeError, match="no run to resume"):
        await Brain("react", memory, llm=llm).resume()
    assert len(llm.calls) == 1


@pytest.mark.parametrize("most", [1, 2, 3])
@pytest.mark.parametrize("journaled", [False, True])
async def test_a_partial_answer_leaves_the_last_results_in_a_small_window(
    most: int, *, journaled: bool, tmp_path: Path
) -> None:
    seen: list[bool] = []

    class Adding(LLM):
        """Adds until it sees a result, then answers; hangs in its first answer."""

        async def stream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
            seen.append(any(message.role is Role.TOOL for message in messages))
            if not seen[-1]:
                yield Action(name="add", args={"a": 1, "b": 2})
            elif seen.count(True) == 1:
                yield "The sum"
                await anyio.sleep_forever()
            else:
                yield "The sum is 3."

    options: dict[str, Any] = {"journal": tmp_path / "a.db"} if journaled else {}
    async with WindowedMemory([add], max_messages=most, **options) as memory:
        brain = Brain(react(Adding()), memory)
        async with brain.stream("1 + 2?") as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    break
        if journaled:
            await memory.reopen()
        assert (await brain.resume()).answer == "The sum is 3."
    assert seen == [False, True, True]
