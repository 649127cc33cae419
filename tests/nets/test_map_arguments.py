"""What the functions of a MapState may return, and where they run."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import AnswerState, Brain, Limits, Message, ParallelState, StopReason, react
from agent_brain.nets import MapState
from agent_brain.states import StateDefinitionError, TextDelta
from agent_brain.testing import ScriptedLLM, run_net
from tests.brain.nets import Say, single

pytestmark = pytest.mark.anyio


def given(*items: Any) -> Any:
    return lambda memory: items


class Fact(BaseModel):
    text: str


@pytest.mark.parametrize(
    ("state", "recorded"),
    [
        (lambda: MapState(given(1, 2), lambda item: item * 2), "2\n\n4"),
        (lambda: ParallelState([single(Say("a")), single(Say("b"))]), "0: a\n\n1: b"),
        (lambda: AnswerState(ScriptedLLM(['{"text": "x"}'] * 2), output_type=Fact, ask=True), None),
    ],
    ids=["map", "parallel", "answer"],
)
async def test_a_state_left_at_its_text_records_it_once_on_resume(
    state: Any, recorded: str | None
) -> None:
    brain = Brain(single(state()))
    async with brain.stream("go") as run:
        async for event in run:
            if event.kind == "text_delta" and not event.path:
                break
    result = await brain.resume()
    said = [m.content for m in result.messages if m.role == "assistant"]
    assert said == [recorded or result.answer]


async def test_a_sync_function_runs_in_a_thread_and_leaves_the_loop_free() -> None:
    release = threading.Event()
    both = threading.Barrier(2, timeout=60)

    def work(item: int) -> int:
        both.wait()
        release.wait(60)
        return item

    brain = Brain(single(MapState(given(1, 2), work)))
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:

            async def run() -> None:
                assert (await brain.run("go")).answer == "1\n\n2"

            group.start_soon(run)
            await anyio.wait_all_tasks_blocked()  # the loop turns while both wait
            release.set()


async def test_a_time_limit_stops_a_sync_function() -> None:
    release = threading.Event()
    state = MapState(given(1), lambda item: release.wait(60))
    try:
        with anyio.fail_after(60):
            result = await Brain(single(state), limits=Limits(timeout=0.05)).run("go")
        assert result.stop_reason is StopReason.TIMEOUT
    finally:
        release.set()


async def test_the_goal_may_be_an_async_function() -> None:
    async def goal(item: int) -> str:
        return f"What is {item}?"

    llm = ScriptedLLM(["one"])
    await run_net(single(MapState(given(1), react(llm), goal=goal)), "go")
    assert llm.calls[0].messages[-1].content == "What is 1?"


async def test_a_function_may_return_work_whose_text_is_a_thought() -> None:
    llm = ScriptedLLM(["red", "blue"])

    def ask(item: str) -> Any:
        return llm.call([Message.user(item)])

    done = await run_net(single(MapState(given("a", "b"), ask, max_concurrency=1)), "go")
    assert done.answer == "red\n\nblue"
    thoughts = [event.text for event in done.of(TextDelta) if event.thought]
    assert thoughts == ["red", "blue"]


async def _yielding(item: Any) -> AsyncIterator[str]:
    yield "x"


async def _iterated(memory: Any) -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"items": lambda memory: None}, r"items=.*NoneType.*return a list"),
        ({"items": lambda memory: "abc"}, r"items=.*str.*return a list"),
        ({"items": lambda memory: {"a": 1}}, r"items=.*dict.*items\(\)"),
        ({"items": _iterated}, r"items=.*async_generator.*async for"),
        ({"items": lambda memory: 3}, r"items=.*int"),
        ({"join": lambda memory, results: 3}, r"join=.*int.*text"),
        ({"body": _yielding}, r"body=_yielding.*async_generator.*FunctionState"),
        ({"body": lambda item: (n for n in [item])}, r"body=.*generator"),
    ],
)
async def test_wrong_results_of_functions_name_the_option(
    options: dict[str, Any], message: str
) -> None:
    arguments = {"items": given(1), "body": str, **options}
    with pytest.raises(StateDefinitionError, match=message):
        await run_net(single(MapState(**arguments)), "go")


async def test_a_join_of_a_parallel_state_returns_text() -> None:
    state = ParallelState([single(Say("a"))], join=lambda memory, branches: 3)  # type: ignore[return-value, arg-type]
    with pytest.raises(StateDefinitionError, match=r"ParallelState\(join=.*int"):
        await run_net(single(state), "go")


def test_a_class_is_not_a_body() -> None:
    with pytest.raises(StateDefinitionError, match=r"pass an instance, Say\(…\)"):
        MapState(given(1), Say)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError(), "failed: ValueError"),
        (ValueError("bad key sk-abcdefghijklmnopqrstuvwxyz123456"), "failed: bad key [hidden]"),
    ],
)
async def test_a_collected_error_has_a_text_without_secrets(error: Exception, text: str) -> None:
    def fail(item: int) -> None:
        raise error

    done = await run_net(single(MapState(given(1), fail, on_item_error="collect")), "go")
    assert done.answer == text
