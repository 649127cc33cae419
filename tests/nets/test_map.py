"""MapState: one piece of work for each item of a list known only when the state runs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Any, Literal

import anyio
import pytest

from agent_brain import Brain, Limits, Memory, Message, MessagesMemory, Net, State, react
from agent_brain.nets import MapResult, MapState
from agent_brain.states import StateDefinitionError, TextDelta
from agent_brain.testing import ScriptedLLM, run_net, run_state

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class N(Enum):
    MAP = 1


class Shout(State):
    """Says its goal in capitals."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        text = (await memory.goal())[-1].content
        if text == "bad":
            raise KeyError("bad item")
        yield text.upper()

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


def given(*items: Any) -> Any:
    return lambda memory: items


async def test_a_state_runs_for_each_item_and_the_results_come_in_order() -> None:
    done = await run_net(Net({N.MAP: MapState(given("a", "b", "c"), Shout())}), "?")
    assert done.answer == "A\n\nB\n\nC"
    assert [m.content for m in (await done.memory.dump())] == ["A\n\nB\n\nC"]
    paths = {event.path for event in done.of(TextDelta) if event.thought}
    assert paths == {("MAP", "0"), ("MAP", "1"), ("MAP", "2")}


@pytest.mark.parametrize("items", [(), ("a",)], ids=["none", "one"])
async def test_no_item_and_one_item(items: tuple[str, ...]) -> None:
    seen: list[Sequence[MapResult]] = []

    def join(memory: Memory, results: Sequence[MapResult]) -> str:
        seen.append(results)
        return f"{len(results)}"

    done = await run_net(Net({N.MAP: MapState(given(*items), Shout(), join=join)}), "?")
    assert done.answer == str(len(items))
    assert [(r.item, r.value, r.error) for r in seen[0]] == [(i, i.upper(), None) for i in items]


async def test_a_function_runs_for_each_item() -> None:
    async def double(item: int) -> int:
        return 2 * item

    done = await run_state(MapState(given(1, 2, 3), double), MessagesMemory())
    assert done.text == "2\n\n4\n\n6"


@pytest.mark.parametrize("as_net", [True, False])
async def test_never_more_than_max_concurrency_at_once(as_net: bool) -> None:
    now = most = 0
    three = anyio.Event()

    async def count(item: int) -> int:
        nonlocal now, most
        now += 1
        most = max(most, now)
        if now == 3:
            three.set()
        with anyio.fail_after(60):
            await three.wait()
        await anyio.lowlevel.checkpoint()
        now -= 1
        return item

    class Count(State):
        async def run(self, memory: Memory) -> AsyncIterator[str]:
            yield str(await count(int((await memory.goal())[-1].content)))

        async def next_state(self, memory: Memory) -> Literal[None]:
            return None

    def join(memory: Memory, results: Sequence[MapResult]) -> str:
        return str(sum(int(result.value) for result in results))

    body: Any = Count() if as_net else count
    state = MapState(given(*range(30)), body, max_concurrency=3, join=join)
    result = await Brain(Net({N.MAP: state}), limits=Limits(max_steps=None)).run("?")
    assert (result.answer, most) == (str(sum(range(30))), 3)


async def test_the_goal_of_an_item_may_be_a_function_of_it() -> None:
    llm = ScriptedLLM(["x", "y"])
    state = MapState(
        given(1, 2), react(llm), goal=lambda n: Message.user(f"Item {n}"), max_concurrency=1
    )
    await run_net(Net({N.MAP: state}), "?")
    assert [call.messages[-1].content for call in llm.calls] == ["Item 1", "Item 2"]


async def test_the_first_failure_cancels_the_rest_and_leaves_nothing_behind() -> None:
    memory = MessagesMemory()
    with pytest.raises(KeyError, match="bad item"):
        await Brain(Net({N.MAP: MapState(given("a", "bad"), Shout())}), memory).run("?")
    assert await memory.dump() == []


async def test_failures_may_be_collected() -> None:
    done = await run_net(
        Net({N.MAP: MapState(given("a", "bad", "c"), Shout(), on_item_error="collect")}), "?"
    )
    assert done.answer == "A\n\nfailed: 'bad item'\n\nC"


async def test_failures_of_a_function_may_be_collected() -> None:
    def odd(item: int) -> int:
        if item % 2 == 0:
            raise ValueError(f"{item} is even")
        return item

    done = await run_state(MapState(given(1, 2), odd, on_item_error="collect"), MessagesMemory())
    assert done.text == "1\n\nfailed: 2 is even"


async def test_the_limits_of_the_run_are_shared() -> None:
    state = MapState(given(*range(10)), Shout(), max_concurrency=1)
    result = await Brain(Net({N.MAP: state}), limits=Limits(max_steps=4)).run("?")
    assert (result.stop_reason, result.steps) == ("max_steps", 4)


async def test_cancelling_ends_every_item_at_once() -> None:
    left: list[int] = []
    started = anyio.Event()

    async def hang(item: int) -> None:
        try:
            if item == 2:
                started.set()
            await anyio.sleep_forever()
        finally:
            left.append(item)

    brain = Brain(Net({N.MAP: MapState(given(0, 1, 2), hang)}))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(brain.run, "?")
            await started.wait()
            group.cancel_scope.cancel()
    assert sorted(left) == [0, 1, 2]


@pytest.mark.parametrize(
    "options",
    [
        {"max_concurrency": 0},
        {"on_item_error": "ignore"},
        {"join": "x"},
        {"body": 3},
        {"body": len, "goal": str},
    ],
)
def test_wrong_arguments_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(StateDefinitionError):
        MapState(given(), **{"body": Shout(), **options})
