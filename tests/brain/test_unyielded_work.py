"""A model call that a state forgets to yield is named, and reading it before is an error."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from enum import Enum
from typing import Any, Literal

import anyio
import pytest

from agent_brain import LLM, Brain, Limits, Memory, Message, Net, State, tool
from agent_brain.errors import StateDefinitionError
from agent_brain.nets import MapState, SubnetState
from agent_brain.states import (
    AskState,
    FunctionState,
    ModelCall,
    StructuredRequest,
    Together,
    Usage,
)
from agent_brain.testing import ScriptedLLM, run_state
from agent_brain.tools import Action
from tests.brain.nets import single

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Calls(State):
    """Makes a piece of work, and does with it what ``use`` says."""

    def __init__(self, llm: LLM, *, yields: bool, reads: str | None = None) -> None:
        self.llm = llm
        self.yields = yields
        self.reads = reads

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        call = self.llm.call(await memory.context())
        if self.yields:
            yield call
        if self.reads is not None:
            getattr(call, self.reads)
        await memory.update([Message.assistant("Done.")])

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


READ = ["text", "actions", "usage", "output", "finish", "finish_reason", "result"]


@pytest.mark.parametrize("what", READ)
async def test_reading_a_call_before_it_was_yielded_says_what_to_do(what: str) -> None:
    state = Calls(ScriptedLLM(["Hello."]), yields=False, reads=what)
    with pytest.raises(StateDefinitionError, match="yield it first") as caught:
        await Brain(single(state)).run("go")
    assert "'ONE'" in caught.value.__notes__[0]
    with pytest.raises(StateDefinitionError, match="yield it first"):
        await run_state(Calls(ScriptedLLM(["Hello."]), yields=False, reads=what), Brain().memory)


@pytest.mark.parametrize("what", READ)
async def test_a_call_that_was_yielded_can_be_read(what: str) -> None:
    await Brain(single(Calls(ScriptedLLM(["Hello."]), yields=True, reads=what))).run("go")


WORK: dict[str, tuple[Callable[[LLM], Any], str]] = {
    "data": (lambda llm: llm.call([Message.user("go")], output_type=int), "output"),
    "a request for data": (lambda llm: StructuredRequest(llm, [Message.user("go")], int), "result"),
    "a call": (lambda llm: ModelCall(llm, [Message.user("go")]), "text"),
    "several calls": (lambda llm: Together([llm.call([Message.user("go")])]), "results"),
    "the result of several": (lambda llm: Together([llm.call([Message.user("go")])]), "result"),
}


@pytest.mark.parametrize("kind", WORK)
def test_no_work_has_a_result_before_it_was_done(kind: str) -> None:
    make, what = WORK[kind]
    work = make(ScriptedLLM([]))
    with pytest.raises(StateDefinitionError, match="yield it first"):
        getattr(work, what)
    with pytest.raises(AttributeError, match="no attribute 'txet'"):
        getattr(work, "txet")  # noqa: B009 - a type checker would find it


@pytest.mark.parametrize("yields", [False, True])
async def test_a_call_that_a_state_forgot_to_yield_is_named_when_it_ends(
    yields: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        await Brain(single(Calls(ScriptedLLM(["Hello."]), yields=yields))).run("go")
    named = [record.getMessage() for record in caplog.records]
    assert named == [] if yields else len(named) == 1
    assert yields or "State 'ONE' (Calls) has made a ModelCall and not yielded it" in named[0]


@pytest.mark.parametrize("kind", ["function", "item", "item in a thread", "into"])
async def test_a_call_that_a_function_of_a_net_forgot_is_named(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    llm = ScriptedLLM(["7"])

    def forgets_in_thread(*_: object) -> None:
        llm.call([Message.user("go")])

    async def forgets(*_: object) -> None:
        forgets_in_thread()

    states = {
        "function": FunctionState(forgets),
        "item": MapState(lambda _: ["one"], forgets),
        "item in a thread": MapState(lambda _: ["one"], forgets_in_thread),
        "into": AskState(llm, "A number.", output_type=int, into=forgets),
    }
    with caplog.at_level(logging.WARNING):
        await Brain(single(states[kind])).run("go")
    [named] = [record.getMessage() for record in caplog.records]
    assert "has made a ModelCall and not yielded it" in named


async def test_a_state_is_not_blamed_for_a_call_that_a_tool_has_made(
    caplog: pytest.LogCaptureFixture,
) -> None:
    llm = ScriptedLLM([[Action(name="forget", args={})], "Done."])

    @tool
    async def forget() -> str:
        """Forget a call."""
        llm.call([Message.user("go")])
        return "Forgotten."

    with caplog.at_level(logging.WARNING):
        result = await Brain("react", tools=[forget], llm=llm).run("go")
    assert (result.answer, caplog.records) == ("Done.", [])


async def test_a_call_may_be_yielded_in_a_later_step_than_it_was_made_in() -> None:
    class Step(Enum):
        MAKE = "make"
        DO = "do"

    class Make(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            memory.deps.append(ScriptedLLM(["Hello."]).call(await memory.context()))
            yield ""

        async def next_state(self, memory: Memory) -> Literal[Step.DO]:
            return Step.DO

    class Do(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            yield memory.deps.pop()

        async def next_state(self, memory: Memory) -> Literal[None]:
            return None

    net = Net({Step.MAKE: Make(), Step.DO: Do()})
    assert (await Brain(net).run("go", deps=[])).answer == "Hello."


class Helped(State):
    """Has its call made by a helper: an async generator, a coroutine or a plain function."""

    def __init__(self, llm: LLM, helper: str) -> None:
        self.llm = llm
        self.helper = helper

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        if self.helper == "generator":
            async for piece in self.pieces():
                yield piece
        elif self.helper == "coroutine":
            yield await self.words()
        else:
            yield self.forget()

    async def pieces(self) -> AsyncIterator[str]:
        yield await self.words()

    async def words(self) -> str:
        return self.forget()

    def forget(self) -> str:
        self.llm.call([Message.user("go")])
        return "Done."

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


@pytest.mark.parametrize("helper", ["generator", "coroutine", "function"])
async def test_a_call_that_a_helper_of_a_state_forgot_is_named(
    helper: str, caplog: pytest.LogCaptureFixture
) -> None:
    inside = SubnetState(single(Helped(ScriptedLLM([]), helper)))
    with caplog.at_level(logging.WARNING):
        await Brain(single(inside)).run("go")
    [named] = [record.getMessage() for record in caplog.records]
    assert "State 'ONE' (Helped) has made a ModelCall and not yielded it" in named


async def test_a_call_that_is_dropped_on_an_error_or_outside_of_a_run_is_not_named(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Fails(Calls):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            self.llm.call(await memory.context())
            later = self.llm.call(await memory.context())
            yield "begun"
            raise LookupError(later)

    llm = ScriptedLLM([])
    with caplog.at_level(logging.WARNING):
        with pytest.raises(LookupError):
            await Brain(single(Fails(llm, yields=False))).run("go")
        llm.call([Message.user("go")])
        await Brain(single(Calls(ScriptedLLM(["Hello."]), yields=True))).run("go")
    assert caplog.records == []


async def test_a_state_is_not_blamed_for_calls_that_were_refused_or_are_of_other_runs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Fails(Calls):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            call = self.llm.call(await memory.context())
            await anyio.sleep(0)
            yield "" if memory.done else call.text

    class Innocent(Calls):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            for _ in range(5):
                await anyio.sleep(0)
            yield "Hello."

    async def fail() -> None:
        with pytest.raises(StateDefinitionError):
            await Brain(single(Fails(ScriptedLLM([]), yields=False))).run("go")

    inner = Brain("react", llm=ScriptedLLM([["Hm.", Usage(5, 5)]]), limits=Limits(max_tokens=1))
    tool = inner.as_tool("ask", "Ask.")
    call = Action(name="ask", args={"task": "?"})
    outer = Brain("react", tools=[tool], llm=ScriptedLLM([[call], [call.model_copy()], "Done."]))
    with caplog.at_level(logging.WARNING):
        async with anyio.create_task_group() as group:
            group.start_soon(fail)
            await Brain(single(Innocent(ScriptedLLM([]), yields=False))).run("go")
        await outer.run("go", deps=None)
    assert [r.getMessage() for r in caplog.records if "not yielded" in r.getMessage()] == []
