"""Hooks that observe runs and states, and put context managers around work."""

from __future__ import annotations

import gc
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import Enum
from typing import Any, Literal

import anyio
import pytest

from agent_brain import Brain, Limits, Message, MessagesMemory, Net, State, TodoMemory, tool
from agent_brain.errors import Refused, ResumeError
from agent_brain.nets import ParallelState, SubnetState
from agent_brain.states import (
    Hook,
    HookRequest,
    RunRequest,
    StateRequest,
    Together,
    ToolRequest,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.clock import fake_clock

pytestmark = pytest.mark.anyio


class Step(Enum):
    A = "a"
    B = "b"


class Say(State):
    def __init__(self, text: str = "said", *, error: Exception | None = None) -> None:
        self.text, self.error = text, error

    async def run(self, memory: Any) -> AsyncIterator[str]:
        yield self.text
        if self.error is not None:
            raise self.error

    async def next_state(self, memory: Any) -> None:
        return None


class First(Say):
    async def next_state(self, memory: Any) -> Literal[Step.B]:  # type: ignore[override]
        return Step.B


class Stay(State):
    def __init__(self) -> None:
        self.here = anyio.Event()

    async def run(self, memory: Any) -> AsyncIterator[str]:
        yield "waits"
        self.here.set()
        await anyio.sleep_forever()

    async def next_state(self, memory: Any) -> None:
        return None


class Log(Hook):
    """Logs what it is told, with awaits, which must be possible at every end."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.requests: list[HookRequest] = []
        self.deps: list[Any] = []

    async def note(self, request: HookRequest, *said: Any) -> None:
        await anyio.lowlevel.checkpoint()
        self.requests.append(request)
        self.deps.append(request.deps)
        self.log.append(said)

    async def before_run(self, request: RunRequest) -> None:
        await self.note(request, "run")

    async def after_run(self, request: RunRequest, result: Any) -> None:
        await self.note(request, "run ended", result.stop_reason.value)

    async def on_run_error(self, request: RunRequest, error: Exception) -> None:
        await self.note(request, "run failed", type(error).__name__)

    async def before_state(self, request: StateRequest) -> None:
        await self.note(request, *request.path, request.state)

    async def after_state(self, request: StateRequest, next_state: str | None) -> None:
        await self.note(request, *request.path, request.state, "to", next_state)

    async def on_state_error(self, request: StateRequest, error: BaseException) -> None:
        kind = type(error).__name__ if isinstance(error, Exception) else "left"
        await self.note(request, *request.path, request.state, kind)


async def cancelled(*hooks: Hook) -> None:
    """Cancel the task of a run while its state works."""
    state = Stay()
    brain = Brain(Net({Step.A: state}), hooks=hooks)
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "Go")
        await state.here.wait()
        group.cancel_scope.cancel()


async def test_a_run_and_its_states_are_observed_in_order() -> None:
    log = Log()
    await Brain(Net({Step.A: First(), Step.B: Say()}), hooks=[log]).run("Go")
    assert log.log == [
        ("run",),
        ("A",),
        ("A", "to", "B"),
        ("B",),
        ("B", "to", None),
        ("run ended", "done"),
    ]


async def test_requests_say_where_they_are_and_what_is_around() -> None:
    log = Log()
    inner = Net({Step.A: Say()})
    memory = MessagesMemory(session="alice/42", tenant="acme")
    brain = Brain(Net({Step.A: SubnetState(inner)}), memory, hooks=[log])
    result = await brain.run("Go", deps="mine")
    run, outer, within, *_ = log.requests
    assert isinstance(run, RunRequest)
    assert isinstance(outer, StateRequest)
    assert isinstance(within, StateRequest)
    assert run.goal is not None
    assert (run.goal.content, run.resumed, run.run_id) == ("Go", False, result.run_id)
    assert (outer.kind, within.kind) == ("SubnetState", "Say")
    assert outer.outer is run.at
    assert within.outer is outer.at
    assert {(r.session, r.tenant) for r in log.requests} == {("alice/42", "acme")}
    assert log.deps == ["mine"] * 6


async def test_branches_on_forks_are_observed_with_the_session_of_the_run() -> None:
    log = Log()
    branches = {"x": Net({Step.A: Say()}), "y": Net({Step.A: Say()})}
    memory = MessagesMemory(session="s")
    await Brain(Net({Step.A: ParallelState(branches)}), memory, hooks=[log]).run("Go")
    assert {("A", "x", "A"), ("A", "y", "A", "to", None)} <= set(log.log)
    assert {request.session for request in log.requests} == {"s"}


async def test_a_failed_state_and_run_are_reported_once() -> None:
    log = Log()
    with pytest.raises(KeyError):
        await Brain(Net({Step.A: Say(error=KeyError("x"))}), hooks=[log]).run("Go")
    assert log.log == [("run",), ("A",), ("A", "KeyError"), ("run failed", "KeyError")]


async def test_an_error_that_leads_to_another_state_is_reported() -> None:
    log = Log()
    net = Net({Step.A: First(error=KeyError("x")), Step.B: Say()}, on_error={Step.A: Step.B})
    await Brain(net, hooks=[log]).run("Go")
    assert log.log[2:4] == [("A", "KeyError"), ("B",)]
    assert log.log[-1] == ("run ended", "done")


async def test_an_error_of_next_state_is_reported() -> None:
    class Lost(Say):
        async def next_state(self, memory: Any) -> None:
            raise ValueError("lost")

    log = Log()
    with pytest.raises(ValueError, match="lost"):
        await Brain(Net({Step.A: Lost()}), hooks=[log]).run("Go")
    assert log.log[2:] == [("A", "ValueError"), ("run failed", "ValueError")]


async def test_a_run_that_is_left_ends_inner_states_first() -> None:
    log = Log()
    brain = Brain(Net({Step.A: SubnetState(Net({Step.B: Stay()}))}), hooks=[log])
    async with brain.stream("Go") as run:
        async for event in run:
            if event.kind == "text_delta":
                break
    assert log.log[-3:] == [("A", "B", "left"), ("A", "left"), ("run ended", "cancelled")]


async def test_a_run_that_is_cancelled_or_late_is_told() -> None:
    log = Log()
    brain = Brain(Net({Step.A: Stay()}), hooks=[log], limits=Limits(timeout=0.2))
    with fake_clock():
        async with brain.stream("Go") as run:
            async for _ in run:
                pass
    assert log.log[-2:] == [("A", "left"), ("run ended", "timeout")]
    log.log.clear()
    async with Brain(Net({Step.A: Stay()}), hooks=[log]).stream("Go") as run:
        async for event in run:
            if event.kind == "text_delta":
                run.cancel()
    assert log.log[-2:] == [("A", "left"), ("run ended", "cancelled")]
    log.log.clear()
    await cancelled(log)
    assert log.log[-2:] == [("A", "left"), ("run ended", "cancelled")]


async def test_a_run_that_is_left_at_its_first_event_is_told() -> None:
    log = Log()
    async with Brain(Net({Step.A: Say()}), hooks=[log]).stream("Go") as run:
        async for _ in run:
            break
    assert log.log == [("run",), ("run ended", "cancelled")]


async def test_a_run_that_was_not_begun_is_not_told() -> None:
    log = Log()
    async with Brain(Net({Step.A: Say()}), hooks=[log]).stream("Go"):
        pass
    assert log.log == []


async def test_a_run_that_waits_is_told_and_its_resume_has_its_id() -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    log = Log()
    llm = ScriptedLLM([[Action(name="pay")], "Done."])
    brain = Brain("react", tools=[pay], llm=llm, hooks=[log])
    waiting = await brain.run("Pay")
    assert log.log[-2:] == [("ACTION", "to", None), ("run ended", "approval")]
    log.requests.clear()
    result = await brain.resume(approve=True)
    resumed = log.requests[0]
    assert isinstance(resumed, RunRequest)
    assert (resumed.resumed, resumed.run_id) == (True, waiting.run_id)
    assert result.answer == "Done."


async def test_a_run_that_cannot_be_resumed_is_reported() -> None:
    log = Log()
    with pytest.raises(ResumeError):
        await Brain(Net({Step.A: Say()}), hooks=[log]).resume()
    assert log.log == [("run",), ("run failed", "ResumeError")]


async def test_a_hook_may_refuse_a_run_before_anything_is_recorded() -> None:
    class No(Hook):
        def before_run(self, request: RunRequest) -> None:
            raise Refused("Not today")

    log = Log()
    brain = Brain(Net({Step.A: Say()}), hooks=[log, No()])
    with pytest.raises(Refused, match="Not today") as caught:
        await brain.run("Go")
    assert caught.value.__notes__ == ["Raised by No.before_run"]
    assert log.log == [("run",), ("run failed", "Refused")]
    assert await brain.memory.goal() == []


async def test_an_error_of_a_hook_before_a_state_is_an_error_of_the_state() -> None:
    class Break(Hook):
        def before_state(self, request: StateRequest) -> None:
            raise KeyError("hook")

    log = Log()
    with pytest.raises(KeyError, match="hook"):
        await Brain(Net({Step.A: Say()}), hooks=[log, Break()]).run("Go")
    assert log.log[1:] == [("A",), ("A", "KeyError"), ("run failed", "KeyError")]


async def test_an_error_of_a_hook_after_an_end_is_logged(caplog: Any) -> None:
    class Break(Hook):
        def after_state(self, request: StateRequest, next_state: str | None) -> None:
            raise KeyError("late")

        def after_run(self, request: RunRequest, result: Any) -> str:
            return "something"

    log = Log()
    with caplog.at_level(logging.ERROR):
        result = await Brain(Net({Step.A: Say()}), hooks=[log, Break()]).run("Go")
    assert result.stop_reason == "done"
    assert log.log[-1] == ("run ended", "done")
    assert [r.getMessage() for r in caplog.records] == [
        "Break.after_state failed",
        "Break.after_run failed",
    ]
    assert "it may only observe" in caplog.text


async def test_a_hook_that_hangs_at_a_cancelled_end_does_not_keep_others_from_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("agent_brain.states.pipeline.CLEANUP_SECONDS", 0.01)

    class Hang(Hook):
        async def after_run(self, request: RunRequest, result: Any) -> None:
            await anyio.sleep_forever()

    log = Log()
    await cancelled(log, Hang())
    assert log.log[-1] == ("run ended", "cancelled")


async def test_a_hook_that_is_cancelled_at_the_end_of_a_state_does_not_keep_others_from_it() -> (
    None
):
    class Hang(Hook):
        def __init__(self) -> None:
            self.here = anyio.Event()

        async def after_state(self, request: StateRequest, next_state: str | None) -> None:
            self.here.set()
            await anyio.sleep_forever()

    log, hang = Log(), Hang()
    brain = Brain(Net({Step.A: Say()}), hooks=[log, hang])
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "Go")
        await hang.here.wait()
        group.cancel_scope.cancel()
    assert log.log == [("run",), ("A",), ("A", "to", None), ("run ended", "cancelled")]


# Context managers around work

place: ContextVar[str] = ContextVar("place", default="outside")


class Around(Hook):
    def around(self, request: Any) -> Any:
        kind = type(request).__name__.removesuffix("Request")
        name = request.action.name if isinstance(request, ToolRequest) else request.state
        return self.inside(f"{kind} {'/'.join([*request.path, name])}")

    @contextmanager
    def inside(self, name: str) -> Iterator[None]:
        token = place.set(name)
        try:
            yield
        finally:
            place.reset(token)


@tool
async def look() -> str:
    """Look."""
    return place.get()


@tool
def look_in_a_thread() -> str:
    """Look."""
    return place.get()


async def test_tools_work_inside_and_the_consumer_does_not() -> None:
    calls = [[Action(name="look"), Action(name="look_in_a_thread")], [Action(name="look")], "x"]
    brain = Brain("react", tools=[look, look_in_a_thread], llm=ScriptedLLM(calls), hooks=[Around()])
    async with brain.stream("Go") as run:
        async for _ in run:
            assert place.get() == "outside"
    results = [m.content for m in run.result.messages if m.role.value == "tool"]
    assert results == ["Tool look", "Tool look_in_a_thread", "Tool look"]
    brain = Brain(
        "react", tools=[look], llm=ScriptedLLM([[Action(name="look")], "x"]), hooks=[Around()]
    )
    result = await brain.run("Go")  # nobody reads its events
    assert result.messages[2].content == "Tool look"


class Watch(State):
    async def on_enter(self, memory: Any) -> None:
        memory.control.scratch["enter"] = place.get()

    async def run(self, memory: Any) -> AsyncIterator[Any]:
        yield place.get()

        async def piece(report: Any) -> str:
            await anyio.lowlevel.checkpoint()
            return place.get()

        together = Together([piece, piece])
        yield together
        yield ", ".join(["", *together.results])
        await memory.update([Message.assistant(place.get())])

    async def next_state(self, memory: Any) -> None:
        memory.control.scratch["next"] = place.get()


@pytest.mark.parametrize("streamed", [True, False])
async def test_all_code_of_a_state_works_inside(streamed: bool) -> None:
    net = Net({Step.A: SubnetState(Net({Step.B: Watch()}))})
    brain = Brain(net, hooks=[Around()])
    if streamed:
        async with brain.stream("Go") as run:
            async for _ in run:
                assert place.get() == "outside"
        result = run.result
    else:
        result = await brain.run("Go")
    there = "State A/B"
    assert result.answer == ", ".join([there] * 3)
    assert result.messages[-1].content == there
    assert brain.memory.control.scratch == {"enter": there, "next": there}
    assert place.get() == "outside"


async def test_a_model_works_inside() -> None:
    class Nosy(ScriptedLLM):
        async def stream(self, messages: Any, **options: Any) -> AsyncIterator[Any]:
            yield place.get()
            yield f", {place.get()}"

    brain = Brain("react", llm=Nosy([]), hooks=[Around()])
    assert (await brain.run("Go")).answer == "Model REASONING, Model REASONING"


async def test_an_error_of_work_reaches_a_state_that_is_surrounded() -> None:
    class Catch(Say):
        async def run(self, memory: Any) -> AsyncIterator[Any]:
            async def fail(report: Any) -> None:
                raise KeyError("work")

            try:
                yield Together([fail])
            except KeyError:
                yield f"caught in {place.get()}"

    assert (await Brain(Net({Step.A: Catch()}), hooks=[Around()]).run("Go")).answer == (
        "caught in State A"
    )


# The session of a memory


async def test_a_memory_without_a_name_has_no_session() -> None:
    memory = MessagesMemory()
    assert (memory.session, memory.tenant) == (None, None)


async def test_a_wrapped_memory_and_a_fork_have_the_session(tmp_path: Any) -> None:
    memory = TodoMemory(MessagesMemory(journal=tmp_path / "j.db", session="a", tenant="t"))
    async with memory, await memory.fork() as fork:
        assert (memory.session, memory.tenant) == ("a", "t")
        assert (fork.session, fork.tenant) == ("a", "t")


async def test_a_fork_with_a_journal_has_the_session_that_it_became(tmp_path: Any) -> None:
    memory = MessagesMemory(session="a")
    async with await memory.fork(journal=tmp_path / "j.db", session="b") as fork:
        assert fork.session == "b"


async def test_an_error_of_what_is_put_around_a_state_fails_the_run_and_leaves_nothing() -> None:
    class Fails(Hook):
        @contextmanager
        def around(self, request: HookRequest) -> Iterator[None]:
            raise ValueError("not today")
            yield

    brain = Brain(Net({Step.A: Say()}), MessagesMemory(), hooks=[Fails()])
    with pytest.raises(ValueError, match="not today"):
        await brain.run("Go.")
    gc.collect()  # a coroutine that was never awaited would be a warning
