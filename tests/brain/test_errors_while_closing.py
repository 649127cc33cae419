"""Errors raised while a model or a state is closed: the reader gets them, the memory is free."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from agent_brain import (
    LLM,
    Brain,
    Limits,
    Memory,
    Message,
    Net,
    ParallelState,
    StopReason,
    react,
)
from agent_brain.memories import is_partial
from agent_brain.nets import MapState
from agent_brain.states import Hook, StateRequest, Usage
from agent_brain.testing import ScriptedLLM
from tests.brain.nets import Say, Steps, single
from tests.support.clock import fake_clock

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Flaky(LLM):
    """Loses its connection when it is closed before its end."""

    model = "flaky"

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str | Usage]:
        try:
            yield "one "
            yield "two"
        except GeneratorExit:
            raise ConnectionError("lost while closing") from None


class Lost(Say):
    """Loses its connection at its end, however it ends."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        try:
            yield "one "
            yield "two"
        finally:
            raise ConnectionError("lost while closing")


class Yields(Say):
    """Yields while it is closed, which Python does not allow."""

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        try:
            yield "one "
            yield "two"
        finally:
            yield "bye"


class Recovers(Say):
    """Says more when its model fails."""

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        try:
            yield Flaky().call([Message.user("Hi")])
        except ConnectionError:
            yield "more"


async def leave_at_first_text(brain: Brain[Any]) -> None:
    async with brain.stream("Hi") as run:
        async for event in run:
            if event.kind == "text_delta":
                return


def mapped(state: Say) -> Net:
    return single(MapState(lambda memory: [1, 2], state))


@pytest.mark.parametrize(
    ("net", "error"),
    [
        (react(Flaky()), ConnectionError),
        (single(Lost()), ConnectionError),
        (single(Yields()), RuntimeError),
        (single(Recovers()), ConnectionError),
        (mapped(Lost()), ConnectionError),
        (single(ParallelState([single(Lost())])), ConnectionError),
    ],
    ids=["model", "state", "yields", "recovers", "map", "parallel"],
)
async def test_leaving_raises_the_error_and_frees_the_memory(net: Net, error: type) -> None:
    brain = Brain(net)
    with anyio.fail_after(60), pytest.raises(error):
        await leave_at_first_text(brain)
    assert not brain.memory.busy
    assert brain.last_result is not None
    assert brain.last_result.stop_reason is StopReason.CANCELLED
    healthy = Brain(react(ScriptedLLM(["Fine."])), brain.memory)
    assert (await healthy.run("And now?")).answer == "Fine."


@pytest.mark.parametrize("body", [react(Flaky()), single(Lost()), single(Yields())])
async def test_an_error_edge_is_not_followed_once_the_reader_has_left(body: Net) -> None:
    state = next(iter(body.states.values()))
    if body.initial.name == "REASONING":  # the state that calls the model
        state = ParallelState([body])
    net = Net(
        {Steps.ONE: state, Steps.TWO: Say("recovered")},
        on_error={Steps.ONE: Steps.TWO},
        transitions={Steps.ONE: None},
    )
    brain = Brain(net)
    with anyio.fail_after(60), pytest.raises((ConnectionError, RuntimeError)):
        await leave_at_first_text(brain)
    assert not brain.memory.busy


async def test_on_exit_runs_when_closing_fails() -> None:
    noted: list[str] = []

    class Noting(Lost):
        async def on_exit(self, memory: Memory) -> None:
            noted.append("exited")

    with pytest.raises(ConnectionError):
        await leave_at_first_text(Brain(single(Noting())))
    assert noted == ["exited"]


class LostAtExit(Say):
    """Loses its connection when it is left."""

    def __init__(self, *, also_before: bool = False) -> None:
        super().__init__("Hello.", then=Steps.TWO)
        self.also_before = also_before

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "Hello."
        if self.also_before:
            raise ConnectionError("lost in the middle")

    async def on_exit(self, memory: Memory) -> None:
        raise ConnectionError("lost at the exit")


@pytest.mark.parametrize("also_before", [False, True])
async def test_an_error_of_on_exit_is_one_of_the_state(also_before: bool) -> None:
    net = Net({Steps.ONE: LostAtExit(also_before=also_before), Steps.TWO: Say("Two.")})
    told: list[str] = []
    brain = Brain(net, hooks=[Watching(told)])
    with pytest.raises(ConnectionError, match="lost at the exit") as caught:
        await brain.run("Hi")
    assert caught.value.__notes__ == ["Raised in state 'ONE' (LostAtExit)"]
    assert told == ["ONE", "ONE failed: lost at the exit"]
    assert [m.content for m in await brain.memory.dump() if is_partial(m)] == ["Hello."]


async def test_on_exit_that_fails_is_not_called_again() -> None:
    called: list[str] = []

    class Failing(Say):
        async def on_exit(self, memory: Memory) -> None:
            called.append("on_exit")
            raise ConnectionError("lost at the exit")

    with pytest.raises(ConnectionError):
        await Brain(single(Failing("Hello."))).run("Hi")
    assert called == ["on_exit"]


@pytest.mark.parametrize("also_before", [False, True])
async def test_an_error_of_on_exit_leads_to_another_state(also_before: bool) -> None:
    states = {Steps.ONE: LostAtExit(also_before=also_before), Steps.TWO: Say("Two.")}
    brain = Brain(Net(states, on_error={Steps.ONE: Steps.TWO}))
    async with brain.stream("Hi") as run:
        exits = [str(e.error) async for e in run if e.kind == "state_exited"]
    assert (run.result.answer, exits) == ("Two.", ["lost at the exit", "None"])


class Watching(Hook):
    """Notes which states begin and end."""

    def __init__(self, told: list[str]) -> None:
        self.told = told

    def before_state(self, request: StateRequest) -> None:
        self.told.append(str(request.state))

    def after_state(self, request: StateRequest, next_state: str | None) -> None:
        self.told.append(f"{request.state} ended")

    def on_state_error(self, request: StateRequest, error: BaseException) -> None:
        self.told.append(f"{request.state} failed: {error}")


async def test_a_run_out_of_time_frees_the_memory_when_closing_fails() -> None:
    brain = Brain(single(Lost()), limits=Limits(timeout=0.01))

    async def read_slowly() -> None:
        async with brain.stream("Hi") as run:
            async for event in run:
                if event.kind == "text_delta":
                    await anyio.sleep(0.02)

    with fake_clock(), pytest.raises(ConnectionError):
        await read_slowly()
    assert not brain.memory.busy


@pytest.mark.parametrize(
    "net", [mapped(Lost()), single(ParallelState([single(Lost())] * 3))], ids=["map", "parallel"]
)
async def test_branches_that_fail_at_once_raise_the_error_of_the_first(net: Net) -> None:
    with pytest.raises(ConnectionError, match="lost while closing"):
        await Brain(net).run("Hi")
