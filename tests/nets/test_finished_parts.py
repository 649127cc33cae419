"""A resumed run does not run the items and branches again that had finished."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from enum import Enum
from typing import Any

import anyio
import pytest
from pydantic import BaseModel, Field, SecretStr

from agent_brain import Brain, Limits, Memory, Message, MessagesMemory, Net, State, StopReason
from agent_brain.memories import RamJournal
from agent_brain.nets import Branch, MapResult, MapState, ParallelState, debate
from agent_brain.states import AnswerState, FunctionState, StreamItem
from agent_brain.testing import ScriptedLLM, run_state
from tests.brain.nets import single
from tests.nets.models import FunctionLLM, last_user, text_of
from tests.support.journals import Killed, MortalJournal

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Broken(Exception):
    """A connection that is down once."""


class Work:
    """Processes items; one of them fails once."""

    def __init__(self, fails_at: str | None = None, error: type[BaseException] = Broken) -> None:
        self.fails_at = fails_at
        self.error = error
        self.began: Counter[str] = Counter()

    async def __call__(self, item: str) -> Any:
        self.began[item] += 1
        if item == self.fails_at:
            self.fails_at = None
            raise self.error
        return item.upper()

    async def in_a_state(self, memory: Memory) -> Any:
        goal = (await memory.goal())[-1].content
        answer = await self(goal)
        await memory.update([Message.assistant(f"thought about {goal}")])
        return answer


def given(*items: str) -> Callable[[Memory], Sequence[str]]:
    return lambda memory: items


def as_function(work: Work) -> Any:
    return work.__call__


def as_state(work: Work) -> Any:
    return FunctionState(work.in_a_state)


@pytest.mark.parametrize("body", [as_function, as_state])
async def test_after_a_failure_only_the_other_items_run(body: Any) -> None:
    work = Work(fails_at="c")
    brain = Brain(single(MapState(given("a", "b", "c"), body(work), max_concurrency=1)))
    with pytest.raises(Broken):
        await brain.run("go")
    assert (await brain.resume()).answer == "A\n\nB\n\nC"
    assert work.began == {"a": 1, "b": 1, "c": 2}
    assert brain.memory.control.ended == {}


async def test_after_a_limit_only_the_other_items_run() -> None:
    work = Work()
    state = MapState(given("a", "b", "c"), as_state(work), max_concurrency=1)
    brain = Brain(single(state), limits=Limits(max_steps=2))
    result = await brain.run("go")
    assert (result.stop_reason, [m.content for m in result.messages]) == ("max_steps", ["go"])
    brain.limits = Limits()
    assert (await brain.resume()).answer == "A\n\nB\n\nC"
    assert work.began == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("body", [as_function, as_state])
async def test_after_a_cancellation_only_the_other_items_run(body: Any) -> None:
    waiting = anyio.Event()

    class Hangs(Work):
        async def __call__(self, item: str) -> Any:
            answer = await super().__call__(item)
            if item == "b" and self.began["b"] == 1:
                waiting.set()
                await anyio.sleep_forever()
            return answer

    work = Hangs()
    brain = Brain(single(MapState(given("a", "b"), body(work), max_concurrency=1)))
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "go")
        await waiting.wait()
        group.cancel_scope.cancel()
    assert (await brain.resume()).answer == "A\n\nB"
    assert work.began == {"a": 1, "b": 2}


@pytest.mark.parametrize("body", [as_function, as_state])
async def test_after_a_crash_another_process_runs_only_the_other_items(body: Any) -> None:
    work, store = Work(fails_at="c", error=Killed), RamJournal()
    net = single(MapState(given("a", "b", "c"), body(work), max_concurrency=1))
    journal = MortalJournal(store)

    class Crash(Work):
        async def __call__(self, item: str) -> Any:
            if item == "c":
                journal.die()
            return await work(item)

    dying = single(MapState(given("a", "b", "c"), body(Crash()), max_concurrency=1))
    with pytest.raises((Killed, BaseExceptionGroup)):
        await Brain(dying, MessagesMemory(journal=journal)).run("go")
    later = Brain(net, MessagesMemory(journal=store))
    assert (await later.resume()).answer == "A\n\nB\n\nC"
    assert work.began == {"a": 1, "b": 1, "c": 2}


async def test_an_item_that_is_another_one_now_runs() -> None:
    work, items = Work(fails_at="c"), ["a", "b", "c"]
    brain = Brain(single(MapState(lambda memory: items, as_function(work), max_concurrency=1)))
    with pytest.raises(Broken):
        await brain.run("go")
    items[0] = "new"
    assert (await brain.resume()).answer == "NEW\n\nB\n\nC"


async def test_a_result_that_json_does_not_hold_is_made_again() -> None:
    class Tuples(Work):
        async def __call__(self, item: str) -> Any:
            return (await super().__call__(item),)

    def join(memory: Memory, results: Sequence[MapResult]) -> str:
        return ", ".join(str(result.value) for result in results)

    work = Tuples(fails_at="b")
    state = MapState(given("a", "b"), as_function(work), max_concurrency=1, join=join)
    brain = Brain(single(state))
    with pytest.raises(Broken):
        await brain.run("go")
    assert (await brain.resume()).answer == "('A',), ('B',)"
    assert work.began == {"a": 2, "b": 2}


class Login(BaseModel):
    name: str = Field(alias="userName")
    password: SecretStr = Field(alias="pass")


@pytest.mark.parametrize("asked", [Login, Login | None, list[Login]], ids=str)
async def test_a_call_for_data_is_not_paid_again_in_another_process(asked: Any) -> None:
    data: list[Any] = []
    text = '{"userName": "ann", "pass": "hunter22"}'
    text = f'{{"value": [{text}]}}' if asked == list[Login] else text
    text = f'{{"value": {text}}}' if asked == Login | None else text
    llm = ScriptedLLM([text, text, Broken(), text])
    journal = RamJournal()

    def brain() -> Brain[Any]:
        def extract(item: str) -> Any:
            return llm.call([Message.user(item)], output_type=asked)

        def join(memory: Memory, results: Sequence[MapResult]) -> str:
            data.extend(result.value for result in results)
            return "read"

        state = MapState(given("a", "b", "c"), extract, max_concurrency=1, join=join)
        return Brain(single(state), MessagesMemory(journal=journal, session="s"))

    with pytest.raises(Broken):
        await brain().run("go")
    result = await brain().resume()
    login = Login(userName="ann", **{"pass": SecretStr("hunter22")})
    assert data == [[login] if asked == list[Login] else login] * 3
    assert (result.answer, len(llm.calls)) == ("read", 4)


async def test_a_secret_in_the_data_of_a_finished_branch_is_not_lost() -> None:
    text = '{"userName": "ann", "pass": "hunter22"}'
    data: list[Login] = []

    def join(memory: Memory, results: Sequence[MapResult]) -> str:
        data.extend(result.output for result in results)
        return "read"

    llm = ScriptedLLM([text, Broken(), text])
    body = {Loop.MAP: AnswerState(llm, output_type=Login, ask=True)}
    brain = Brain(single(MapState(given("a", "b"), body, max_concurrency=1, join=join)))
    with pytest.raises(Broken):
        await brain.run("go")
    await brain.resume()
    assert [each.password.get_secret_value() for each in data] == ["hunter22", "hunter22"]


class Loop(Enum):
    MAP = 1
    AGAIN = 2


async def test_when_the_state_is_entered_again_all_items_run_again() -> None:
    work = Work(fails_at="b")

    async def again(memory: Memory) -> None:
        memory.control.scratch["round"] = memory.control.scratch.get("round", 0) + 1

    class Again(FunctionState):
        async def next_state(self, memory: Memory) -> Loop | None:
            return Loop.MAP if memory.control.scratch["round"] < 2 else None

        def targets(self) -> tuple[Loop | None, ...]:
            return (Loop.MAP, None)

    state = MapState(given("a", "b"), as_function(work), max_concurrency=1, on_done=Loop.AGAIN)
    net = Net({Loop.MAP: state, Loop.AGAIN: Again(again)}, on_error={Loop.MAP: Loop.AGAIN})
    await Brain(net).run("go")
    assert work.began == {"a": 2, "b": 2}


async def test_a_state_that_is_run_by_itself_keeps_what_has_finished_too() -> None:
    work, memory = Work(fails_at="b"), MessagesMemory()
    state = MapState(given("a", "b"), as_function(work), max_concurrency=1)
    with pytest.raises(Broken):
        await run_state(state, memory)
    assert (await run_state(state, memory)).text == "A\n\nB"
    assert (await run_state(state, memory)).text == "A\n\nB"
    assert work.began == {"a": 2, "b": 3}


async def test_a_state_that_maps_twice_in_a_step_runs_all_items_twice() -> None:
    work = Work()
    state = MapState(given("a", "b"), as_function(work))

    async def twice(memory: Memory) -> AsyncIterator[StreamItem]:
        for _ in range(2):
            async for item in state.run(memory):
                yield item

    await Brain(single(FunctionState(twice))).run("go")
    assert work.began == {"a": 2, "b": 2}


async def one_has_finished(memory: Memory) -> None:
    while not memory.control.ended:
        await anyio.lowlevel.checkpoint()


def branches_of(work: Work, main: Memory) -> dict[str, Any]:
    async def one(memory: Memory) -> Any:
        answer = await work("one")
        await memory.update([Message.assistant("found one")])
        return answer

    class Two(State):
        async def run(self, memory: Memory) -> AsyncIterator[str]:
            await one_has_finished(main)
            yield await work("two")

        async def next_state(self, memory: Memory) -> None:
            return None

        def targets(self) -> tuple[None]:
            return (None,)

    return {"one": single(FunctionState(one)), "two": single(Two())}


async def test_only_the_other_branches_run_and_the_join_sees_all() -> None:
    seen: list[str] = []

    async def join(memory: Memory, branches: Sequence[Branch]) -> str:
        for branch in branches:
            seen.extend(m.content for m in await branch.memory.dump())
        return ", ".join(branch.answer for branch in branches)

    work, memory = Work(fails_at="two"), MessagesMemory()
    brain = Brain(single(ParallelState(branches_of(work, memory), join=join)), memory)
    with pytest.raises(Broken):
        await brain.run("go")
    assert (await brain.resume()).answer == "ONE, TWO"
    assert work.began == {"one": 1, "two": 2}
    assert seen == ["found one", "ONE"]


async def test_personas_that_have_spoken_do_not_speak_again() -> None:
    spoke: Counter[str] = Counter()
    memory = MessagesMemory()

    def speak(call: Any) -> Any:
        who = "A" if "as A" in text_of(call.messages) else "B"
        if "Round" in last_user(call.messages):
            spoke[who] += 1
            return Broken() if who == "B" and spoke["B"] == 1 else f"{who} has spoken."
        return "Decided."

    class Late(FunctionLLM):
        async def stream(self, messages: Any, **options: Any) -> Any:
            if "as B" in text_of(messages) and not spoke["B"]:
                await one_has_finished(memory)
            async for piece in super().stream(messages, **options):
                yield piece

    net = debate(
        Late(speak), personas={"A": "a", "B": "b"}, rounds=1, persona_prompt="Speak as {name}."
    )
    brain = Brain(net, memory)
    with pytest.raises(Broken):
        await brain.run("Bridge or tunnel?")
    result = await brain.resume()
    assert (result.answer, result.stop_reason) == ("Decided.", StopReason.DONE)
    assert spoke == {"A": 1, "B": 2}
