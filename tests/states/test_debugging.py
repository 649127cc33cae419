"""DebugStates: what states must not do is noticed, and named."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, ClassVar, Literal

import anyio
import pytest

from agent_brain import Brain, Memory, Net, State, StopReason, react
from agent_brain.errors import StateDefinitionError, StateMutationError
from agent_brain.nets import MapState, SubnetState
from agent_brain.states import DebugStates, FunctionState, debugging
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Steps, single

pytestmark = pytest.mark.anyio


class Counting(State):
    """Changes itself in ways that assigning to an attribute is not."""

    count: ClassVar[int] = 0
    kept: ClassVar[dict[str, list[str]]] = {}

    def __init__(self, change: str) -> None:
        self.change = change
        self.items: list[str] = []
        self.options = {"names": ["a"]}

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        if self.change == "count":
            type(self).count += 1
        elif self.change == "items":
            self.items.append("x")
        elif self.change == "options":
            self.options["names"].append("b")
        elif self.change == "kept":
            self.kept["x"] = ["y"]
        yield "done"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


@pytest.mark.parametrize("inside", [False, True], ids=["net", "subnet"])
@pytest.mark.parametrize("change", ["count", "items", "options", "kept"])
async def test_a_state_that_changes_itself_ends_the_run(
    change: str, inside: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Counting, "count", 0)
    monkeypatch.setattr(Counting, "kept", {})
    net = single(Counting(change))
    brain = Brain(single(SubnetState(net)) if inside else net, hooks=[DebugStates()])
    with pytest.raises(StateMutationError, match=rf"Counting\.{change} cannot be changed"):
        await brain.run("go")


async def test_a_state_that_keeps_to_the_rules_is_left_alone() -> None:
    brain = Brain(single(Counting("nothing")), hooks=[DebugStates()])
    assert (await brain.run("go")).answer == "done"


class Clock:
    """Stands still until something takes time."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(debugging, "perf_counter", clock)
    return clock


class Blocking(State):
    """Takes half a second between two awaits."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        await anyio.lowlevel.checkpoint()
        self.clock.now += 0.5
        yield "done"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


@pytest.mark.parametrize("kind", ["net", "guarded", "map", "nested"])
async def test_a_state_that_blocks_the_event_loop_is_named(
    kind: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    hook = DebugStates()
    if kind == "nested":
        inner = Brain(single(Blocking(clock)))
        llm = ScriptedLLM([Action(name="inner", args={"task": "?"}), "ok"])
        brain: Brain[Any] = Brain(react(llm), tools=[inner.as_tool("inner", "Helps.")])
        brain.hooks = (hook,)
    else:
        body = single(MapState(lambda memory: [1], Blocking(clock))) if kind == "map" else None
        guarded = Net({Steps.ONE: Blocking(clock)}, before=lambda memory: None)
        net = body or (guarded if kind == "guarded" else single(Blocking(clock)))
        brain = Brain(net, hooks=[hook])
    assert (await brain.run("go")).stop_reason is StopReason.DONE
    [record] = [r for r in caplog.records if "Blocking" in r.getMessage()]
    assert "blocked the event loop for 0.50 s" in record.getMessage()
    assert record.name == "agent_brain.states.debugging"


class Elsewhere(State):
    """Does what it must not do beside ``run``."""

    def __init__(self, method: str, clock: Clock | None = None) -> None:
        self.method = method
        self.clock = clock
        self.items: list[str] = []

    def _do(self, method: str) -> None:
        if method != self.method:
            return
        if self.clock is None:
            self.items.append("x")
        else:
            self.clock.now += 0.5

    async def on_enter(self, memory: Memory) -> None:
        self._do("on_enter")

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "done"

    async def on_exit(self, memory: Memory) -> None:
        self._do("on_exit")

    async def next_state(self, memory: Memory) -> Literal[None]:
        self._do("next_state")


METHODS = ["on_enter", "on_exit", "next_state"]


@pytest.mark.parametrize("guarded", [False, True], ids=["alone", "guarded"])
@pytest.mark.parametrize("method", METHODS)
async def test_changes_in_other_methods_are_noticed(method: str, guarded: bool) -> None:
    net = Net({Steps.ONE: Elsewhere(method)}, before=(lambda memory: None) if guarded else None)
    with pytest.raises(StateMutationError, match=r"Elsewhere\.items cannot be changed"):
        await Brain(net, hooks=[DebugStates()]).run("go")


@pytest.mark.parametrize("method", METHODS)
async def test_blocking_in_other_methods_is_named(
    method: str, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    brain = Brain(single(Elsewhere(method, clock)), hooks=[DebugStates()])
    assert (await brain.run("go")).answer == "done"
    [record] = caplog.records
    assert "(Elsewhere) blocked the event loop for 0.50 s" in record.getMessage()


async def test_waiting_does_not_block(clock: Clock, caplog: pytest.LogCaptureFixture) -> None:
    async def other() -> None:
        clock.now += 0.5

    async def wait(memory: Memory) -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(other)
        return "done"

    await Brain(single(FunctionState(wait)), hooks=[DebugStates()]).run("go")
    assert clock.now == 0.5
    assert caplog.records == []


def test_a_wrong_time_is_refused() -> None:
    with pytest.raises(StateDefinitionError, match="blocked=0"):
        DebugStates(blocked=0)
