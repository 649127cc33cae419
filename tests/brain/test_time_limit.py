"""The time limit applies even if the run never waits."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import (
    LLM,
    AnswerState,
    Brain,
    Limits,
    Message,
    ParallelState,
    StopReason,
    UsageLedger,
    VectorMemory,
    react,
    tool,
)
from agent_brain.errors import JournalError
from agent_brain.hooks import Moderation
from agent_brain.memories import MessagesMemory, RamJournal
from agent_brain.nets import self_consistency
from agent_brain.states import TextDelta
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Say, single
from tests.support.clock import FakeClock, fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

PIECES = 200


class Busy(Say):
    """Has every piece ready, and keeps the processor busy for a while before each."""

    def __init__(self, clock: FakeClock) -> None:
        super().__init__()
        self.clock = clock
        self.made: list[str] = []

    async def run(self, memory: Any) -> AsyncIterator[str]:
        for _ in range(PIECES):
            self.made.append("word ")
            self.clock.advance(0.005)
            yield "word "


class BusyLLM(LLM):
    """As above, for a model."""

    model = "busy"

    def __init__(self, clock: FakeClock) -> None:
        self.clock = clock
        self.made = 0

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str]:
        for _ in range(PIECES):
            self.made += 1
            self.clock.advance(0.005)
            yield '{"n": '


class Number(BaseModel):
    n: int


async def test_pieces_that_are_all_ready_do_not_hide_the_clock() -> None:
    with fake_clock() as clock:
        busy = Busy(clock)
        brain = Brain(single(busy), limits=Limits(timeout=0.05))
        result = await brain.run("go")
    assert result.stop_reason is StopReason.TIMEOUT
    assert 0 < len(busy.made) < PIECES / 2
    assert result.answer.startswith("word ")
    assert brain.memory.control.status == "ended"


async def test_nor_do_pieces_of_a_model_that_nobody_is_shown() -> None:
    with fake_clock() as clock:
        llm = BusyLLM(clock)
        brain = Brain(single(AnswerState(llm, output_type=Number)), limits=Limits(timeout=0.05))
        assert (await brain.run("go")).stop_reason is StopReason.TIMEOUT
    assert 0 < llm.made < PIECES / 2


async def test_nor_do_they_in_branches() -> None:
    with fake_clock() as clock:
        llm = BusyLLM(clock)
        asks = single(AnswerState(llm, output_type=Number))
        brain = Brain(single(ParallelState([asks, asks])), limits=Limits(timeout=0.05))
        assert (await brain.run("go")).stop_reason is StopReason.TIMEOUT
    assert 0 < llm.made < PIECES


async def test_nor_do_several_models_at_once() -> None:
    with fake_clock() as clock:
        llm = BusyLLM(clock)
        brain = Brain(self_consistency(llm, paths=3), limits=Limits(timeout=0.05))
        assert (await brain.run("go")).stop_reason is StopReason.TIMEOUT
    assert 0 < llm.made < PIECES


async def test_the_time_of_a_slow_reader_counts() -> None:
    brain = Brain(single(Say(*["word "] * PIECES)), limits=Limits(timeout=0.05))
    pieces = 0
    with fake_clock() as clock:
        async with brain.stream("go") as run:
            async for event in run:
                if isinstance(event, TextDelta):
                    pieces += 1
                    clock.advance(0.02)
                    await anyio.lowlevel.checkpoint()
    assert run.result.stop_reason is StopReason.TIMEOUT
    assert 0 < pieces < 10


async def test_a_run_in_time_is_not_disturbed() -> None:
    brain = Brain(single(Say("one ", "two")), limits=Limits(timeout=60))
    async with brain.stream("go") as run:
        events = [event async for event in run]
    assert (run.result.stop_reason, run.result.answer) == (StopReason.DONE, "one two")
    assert [event.kind for event in events].count("run_finished") == 1


async def test_branches_end_with_the_time() -> None:
    with fake_clock() as clock:
        busy = [Busy(clock), Busy(clock)]
        brain = Brain(single(ParallelState([*map(single, busy)])), limits=Limits(timeout=0.05))
        assert (await brain.run("go")).stop_reason is StopReason.TIMEOUT
        made = [len(each.made) for each in busy]
        assert all(0 < each < PIECES / 2 for each in made)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert [len(each.made) for each in busy] == made


async def test_a_run_that_nobody_reads_is_resumed_with_the_time_that_is_left() -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        await anyio.sleep_forever()
        return ""

    llm = ScriptedLLM([[Action(name="wait")], [Action(name="wait")], "late"])
    brain = Brain(react(llm), tools=[wait], limits=Limits(timeout=0.5))
    with fake_clock():
        first = await brain.run("go")
        again = await brain.resume()
    assert first.stop_reason == "timeout"
    assert "was interrupted" in first.messages[-1].content
    assert (again.stop_reason, again.steps) == ("timeout", first.steps)
    assert brain.memory.control.spent.seconds >= 0.5


async def test_a_scope_around_a_run_that_nobody_reads_ends_it_as_cancelled() -> None:
    @tool
    async def wait() -> str:
        """Wait."""
        scope.cancel()
        await anyio.sleep_forever()
        return ""

    llm = ScriptedLLM([[Action(name="wait")], "late"])
    brain = Brain(react(llm), tools=[wait], limits=Limits(timeout=3600))
    with anyio.CancelScope() as scope:
        await brain.run("go")
    assert scope.cancelled_caught
    assert brain.last_result is not None
    assert brain.last_result.stop_reason == "cancelled"


@pytest.mark.parametrize("mode", ["run", "stream"])
async def test_a_store_that_fails_when_the_time_is_up_ends_the_run_by_the_limit(mode: str) -> None:
    class Locked(RamJournal):
        """Waits for another process, whatever the caller does, and fails."""

        async def append(self, *given: Any, **options: Any) -> int:
            with anyio.CancelScope(shield=True):
                await anyio.sleep(30)
            raise JournalError("The journal stayed locked")

    memory = MessagesMemory(journal=Locked())
    brain = Brain(react(ScriptedLLM(["never said"])), memory, limits=Limits(timeout=1))
    with fake_clock():
        if mode == "run":
            result = await brain.run("go")
        else:
            async with brain.stream("go") as run:
                events = [event.kind async for event in run]
            assert events == ["run_finished"]
            result = run.result
    assert result.stop_reason is StopReason.TIMEOUT
    assert (await Brain(single(Say("x")), limits=Limits(timeout=1)).run("go")).answer == "x"


@pytest.mark.parametrize("earlier", [0, 3])
async def test_a_run_keeps_what_it_has_while_its_memory_waits_for_an_embedder(earlier: int) -> None:
    waits = False

    async def embed(texts: Sequence[str]) -> list[list[float]]:
        if waits:
            await anyio.sleep_forever()
        return [[1.0, 2.0] for _ in texts]

    memory = VectorMemory(embedder=embed, recent=1)
    await memory.update([Message.user(f"Earlier {n}") for n in range(earlier)])
    waits, ledger = True, UsageLedger()
    llm = ScriptedLLM(["Here."])
    brain = Brain(react(llm), memory, hooks=[ledger], limits=Limits(timeout=600))
    with fake_clock() as clock:  # it goes on while threads work
        result = await brain.run("Where?")
        assert clock.elapsed < 2 * 600
    assert result.stop_reason is StopReason.TIMEOUT
    assert (await memory.goal())[0].content == result.messages[0].content == "Where?"
    assert result.usage.requests == ledger.usage().requests > 0
    assert memory.control.status == "ended"


class SlowToLoad(ScriptedLLM):
    """Takes a minute to load, as a large import does on a busy machine."""

    loaded = False

    async def open(self) -> None:
        if not self.loaded:
            await anyio.sleep(60)
        self.loaded = True


@pytest.mark.parametrize("way", ["run", "stream", "answer"])
async def test_the_clock_starts_when_the_model_is_loaded(way: str) -> None:
    with fake_clock():
        brain = Brain(react(SlowToLoad([["It is ", "4."]])), limits=Limits(timeout=10))
        if way == "run":
            await brain.run("2 + 2?")
        elif way == "answer":
            assert "".join([text async for text in brain.answer("2 + 2?")]) == "It is 4."
        else:
            async with brain.stream("2 + 2?") as run:
                async for _ in run:
                    pass

        assert brain.last_result is not None
        assert (brain.last_result.stop_reason, brain.last_result.answer) == (
            StopReason.DONE,
            "It is 4.",
        )


@pytest.mark.parametrize("where", ["for one run", "of a hook", "of a brain that is a tool"])
async def test_the_clock_starts_when_models_beside_the_net_are_loaded(where: str) -> None:
    slow = SlowToLoad(["It is 4."] if where == "for one run" else ['{"allowed": true}'] * 9)
    brain = Brain(react(ScriptedLLM(["It is 4."])), limits=Limits(timeout=10))
    if where == "of a hook":
        brain = Brain(
            brain.net, hooks=[Moderation(slow, rules="No politics.")], limits=brain.limits
        )
    elif where == "of a brain that is a tool":
        adds = [Action(name="adder", args={"task": "2 + 2?"})]
        adder = Brain(react(slow)).as_tool("adder", "Adds.")
        llm = ScriptedLLM([adds, "It is 4."])
        brain = Brain(react(llm), tools=[adder], limits=Limits(timeout=10))
    with fake_clock():
        result = await brain.run("2 + 2?", llm=slow if where == "for one run" else None)
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "It is 4.")
    assert slow.loaded


async def test_a_run_can_be_cancelled_while_its_model_is_loaded() -> None:
    with fake_clock():
        began = anyio.current_time()
        brain = Brain(react(SlowToLoad(["4"])), limits=Limits(timeout=600))
        async with brain.stream("2 + 2?") as run, anyio.create_task_group() as group:

            async def read() -> None:
                async for _ in run:
                    pass

            group.start_soon(read)
            await anyio.sleep(1)
            run.cancel()
        assert run.result.stop_reason is StopReason.CANCELLED
        assert anyio.current_time() - began < 10
