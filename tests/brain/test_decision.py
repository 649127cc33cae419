"""The decisions before and after a step."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

import pytest

from agent_brain import Brain, Limits, Memory, Net, State
from agent_brain.errors import TransitionError
from agent_brain.states import StateEntered, Usage, UsageReported


class N(Enum):
    A = 1
    B = 2


class Nothing(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        return
        yield ""

    async def next_state(self, memory: Memory) -> Enum | None:
        return None


class Free(Nothing):
    async def costs_nothing(self, memory: Memory) -> bool:
        return True


class Costly(Nothing):
    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield UsageReported(Usage(5, 5, cost=1.0))

    async def next_state(self, memory: Memory) -> Enum | None:
        return N.B


async def entered(last: State, limits: Limits) -> list[str | None]:
    net = Net({N.A: Costly(), N.B: last}, transitions={N.A: N.B, N.B: None})
    async with Brain(net, limits=limits).stream("go") as run:
        return [event.state async for event in run if isinstance(event, StateEntered)]


@pytest.mark.anyio
@pytest.mark.parametrize("limits", [Limits(max_tokens=10), Limits(max_cost=1)])
async def test_a_state_that_costs_nothing_runs_although_the_money_is_spent(limits: Limits) -> None:
    assert await entered(Nothing(), limits) == ["A"]
    assert await entered(Free(), limits) == ["A", "B"]


@pytest.mark.anyio
async def test_the_limit_of_steps_stops_every_state() -> None:
    assert await entered(Free(), Limits(max_steps=1)) == ["A"]


class Proposes(Nothing):
    def __init__(self, target: Any, *, done: bool = False, fails: bool = False) -> None:
        self.target = target
        self.done = done
        self.fails = fails

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "text"
        memory.done = self.done
        if self.fails:
            raise KeyError

    async def next_state(self, memory: Memory) -> Enum | None:
        target: Enum | None = self.target
        return target


async def states_after(first: State) -> list[str | None]:
    net = Net({N.A: first, N.B: Nothing()}, transitions={N.A: N.B, N.B: None}, on_error={N.A: N.B})
    async with Brain(net).stream("go") as run:
        return [event.state async for event in run if isinstance(event, StateEntered)]


@pytest.mark.anyio
async def test_a_proposal_leads_along_an_edge() -> None:
    assert await states_after(Proposes(N.B)) == ["A", "B"]


@pytest.mark.anyio
@pytest.mark.parametrize("target", [N.A, None, "B", 3])
async def test_a_proposal_outside_the_edges_is_an_error(target: object) -> None:
    with pytest.raises(TransitionError):
        await states_after(Proposes(target))


@pytest.mark.anyio
async def test_a_reached_goal_ends_the_net_wherever_the_state_proposes_to_go() -> None:
    assert await states_after(Proposes(None, done=True)) == ["A"]
    assert await states_after(Proposes(N.B, done=True)) == ["A"]


@pytest.mark.anyio
async def test_an_error_leads_along_its_own_edge() -> None:
    assert await states_after(Proposes(N.A, fails=True)) == ["A", "B"]
