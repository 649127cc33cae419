"""A stream can be left at any piece, from any task, and the memory is free again."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, MessagesMemory, Net, ParallelState, StopReason, react, tool
from agent_brain.errors import MemoryBusyError
from agent_brain.memories import SQLiteJournal, session_key
from agent_brain.memories.journal.lease import Lease, Owner
from agent_brain.states import Event, TextDelta
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Say, Steps, add, single

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Waits(Say):
    """Says a word, lets the loop turn, says another."""

    async def run(self, memory: Any) -> AsyncIterator[str]:
        for chunk in self.chunks:
            await anyio.lowlevel.checkpoint()
            yield chunk


def talkative_branches() -> Net:
    """Parallel branches, then a state that says three words."""
    branch = single(Waits("inside ", "of it"))
    return Net(
        {
            Steps.ONE: ParallelState([branch, branch, branch], join=lambda m, b: None,
                                     on_done=Steps.TWO),
            Steps.TWO: Waits("a ", "b ", "c"),
        }
    )  # fmt: skip


def asks_an_expert() -> tuple[Net, list[Any]]:
    expert = Brain(single(Waits("I know")))
    ask = Action(name="expert", args={"task": "Tell me."})
    llm = ScriptedLLM([["Let me ask.", ask], ["It ", "is ", "so."]])
    return react(llm), [expert.as_tool("expert", "Knows.")]


def brains() -> list[Brain]:
    net, tools = asks_an_expert()
    return [Brain(talkative_branches()), Brain(net, tools=tools)]


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("pieces", [1, 2, 3])
async def test_leaving_an_answer_at_a_piece_leaves_the_caller_alone(
    which: int, pieces: int
) -> None:
    brain = brains()[which]
    seen = 0
    async for _ in brain.answer("go"):
        seen += 1
        if seen == pieces:
            break
    await anyio.lowlevel.checkpoint()
    await anyio.wait_all_tasks_blocked()
    assert not brain.memory.busy
    with anyio.fail_after(60):  # the caller's own scopes work
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("which", [0, 1])
async def test_each_piece_may_have_a_limit_of_time(which: int) -> None:
    brain = brains()[which]
    pieces: list[str] = []
    async with aclosing(brain.answer("go")) as answer:
        while True:
            with anyio.fail_after(60):
                try:
                    pieces.append(await anext(answer))
                except StopAsyncIteration:
                    break
    assert "".join(pieces).endswith(["a b c", "It is so."][which])


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_each_piece_may_be_asked_for_in_a_task_of_its_own(which: int) -> None:
    brain = brains()[which]
    answer = brain.answer("go")
    pieces: list[str] = []
    while (piece := await asyncio.wait_for(anext(answer, None), 60)) is not None:
        pieces.append(piece)
    assert "".join(pieces).endswith(["a b c", "It is so."][which])


class Slow(Say):
    """Never reaches its second word."""

    async def run(self, memory: Any) -> AsyncIterator[str]:
        yield "one"
        await anyio.sleep_forever()


async def test_a_piece_that_takes_too_long_ends_the_run_and_nothing_else() -> None:
    net = Net(
        {
            Steps.ONE: ParallelState([single(Say("x"))], on_done=Steps.TWO),
            Steps.TWO: Slow(),
        }
    )
    brain = Brain(net)
    answer = brain.answer("go")
    assert await anext(answer) == "0: x"
    assert await anext(answer) == "one"
    with anyio.move_on_after(0.01) as scope:
        await anext(answer)
    assert scope.cancelled_caught
    assert brain.last_result is not None
    assert brain.last_result.stop_reason is StopReason.CANCELLED
    with pytest.raises(StopAsyncIteration):
        await anext(answer)


async def test_an_answer_is_closed_from_another_task() -> None:
    brain = brains()[0]
    answer = brain.answer("go")
    await anext(answer)
    async with anyio.create_task_group() as group:
        group.start_soon(answer.aclose)
    assert not brain.memory.busy


async def test_after_a_break_the_next_question_can_be_asked_at_once() -> None:
    brain = Brain(react(ScriptedLLM([["It ", "is."], ["Yes, ", "it is."]])))
    async for _ in brain.answer("Is it?"):
        break
    result = await brain.run("Really?")
    assert result.answer == "Yes, it is."
    asked = [m.content for m in await brain.memory.context() if m.role == "user"]
    assert asked == ["Is it?", "Really?"]


async def test_an_answer_that_is_left_and_still_referred_to_says_how_to_end_it() -> None:
    brain = Brain(react(ScriptedLLM([["It ", "is."], ["Yes."]])))
    answer = brain.answer("Is it?")
    await anext(answer)
    with pytest.raises(MemoryBusyError, match="aclosing"):
        await brain.run("Really?")
    await answer.aclose()
    assert (await brain.run("Really?")).answer == "Yes."


async def users_own_generator(brain: Brain) -> AsyncIterator[Event]:
    async with brain.stream("go") as run:
        async for event in run:
            yield event


@pytest.mark.parametrize("which", [0, 1])
async def test_a_stream_inside_a_generator_is_left_with_it(which: int) -> None:
    brain = brains()[which]
    async with aclosing(users_own_generator(brain)) as events:  # type: ignore[type-var]
        async for event in events:
            if isinstance(event, TextDelta):
                break
    assert not brain.memory.busy
    with anyio.fail_after(60):
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("which", [0, 1])
async def test_a_generator_that_is_dropped_does_not_cancel_its_caller(which: int) -> None:
    brain = brains()[which]
    async for event in users_own_generator(brain):
        if isinstance(event, TextDelta):
            break
    gc.collect()
    await anyio.wait_all_tasks_blocked()
    assert not brain.memory.busy
    with anyio.fail_after(60):
        await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_program_may_end_right_after_it_left_an_answer() -> None:
    memory = MessagesMemory()

    async def program() -> None:
        async for _ in Brain(talkative_branches(), memory).answer("go"):
            return

    await anyio.to_thread.run_sync(asyncio.run, program())
    assert not memory.busy


async def test_the_end_of_an_answer_can_be_seen() -> None:
    @tool(requires_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    brain = Brain(react(ScriptedLLM([["I must pay.", Action(name="pay")]])), tools=[pay])
    assert brain.last_result is None
    assert [piece async for piece in brain.answer("go")] == ["I must pay."]
    assert brain.last_result is not None
    assert brain.last_result.stop_reason is StopReason.APPROVAL

    limited = Brain(react(ScriptedLLM([[Action(name="add", args={"a": 1, "b": 1})]] * 3)),
                    tools=[add], limits=Limits(max_steps=2))  # fmt: skip
    assert [piece async for piece in limited.answer("go")] == []
    assert limited.last_result is not None
    assert limited.last_result.stop_reason is StopReason.MAX_STEPS


@pytest.mark.parametrize("where", ["text_delta", "state_exited"])
async def test_a_run_left_after_its_answer_was_said_gives_it_on_resume(where: str) -> None:
    brain = Brain(single(Say("Hello.")))
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == where:
                break
    assert (await brain.resume()).answer == "Hello."
    assert (await brain.resume()).answer == "Hello."


async def test_a_run_that_is_cancelled_gives_its_session_back_to_other_processes(
    tmp_path: Path,
) -> None:
    runs = anyio.Event()

    class Sleeps(Say):
        async def run(self, memory: Any) -> AsyncIterator[str]:
            runs.set()
            await anyio.sleep_forever()
            yield "never"

    key, other = session_key("s"), Owner("elsewhere", 1, Owner.here().machine + "x", "1")
    async with SQLiteJournal(tmp_path / "a.db") as journal:
        brain = Brain(single(Sleeps("x")), MessagesMemory(journal=journal, session="s"))
        lease = Lease(key, other, 30, "token of another")
        async with anyio.create_task_group() as group:
            group.start_soon(brain.run, "x")
            await runs.wait()
            assert await journal._take_lease(lease) is not None
            group.cancel_scope.cancel()
        assert await journal._take_lease(lease) is None
