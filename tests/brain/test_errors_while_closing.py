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
from agent_brain.nets import MapState
from agent_brain.states import Usage
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
