"""The decisions before and after a step, as pure functions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

import pytest

from agent_brain import Memory, Net, State, StopReason
from agent_brain.decision import next_node, stops_before
from agent_brain.errors import TransitionError
from agent_brain.recorder import StepReport


class N(Enum):
    A = 1
    B = 2


class Nothing(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        return
        yield ""

    async def next_state(self, memory: Memory) -> Enum | None:
        return None


NET = Net(
    {N.A: Nothing(), N.B: Nothing()}, transitions={N.A: N.B, N.B: (N.A, None)}, on_error={N.A: N.B}
)
A, B = NET.node(N.A), NET.node(N.B)


@pytest.mark.parametrize("reason", [StopReason.MAX_TOKENS, StopReason.MAX_COST])
def test_a_state_that_costs_nothing_runs_although_the_money_is_spent(reason: StopReason) -> None:
    assert stops_before(reason, costs_nothing=False)
    assert not stops_before(reason, costs_nothing=True)


def test_the_limit_of_steps_stops_every_state() -> None:
    assert stops_before(StopReason.MAX_STEPS, costs_nothing=True)


def test_a_proposal_leads_along_an_edge() -> None:
    assert next_node(A, N.B, StepReport(), done=False) is B
    assert next_node(B, None, StepReport(), done=False) is None


@pytest.mark.parametrize("target", [N.A, None, "B", 3])
def test_a_proposal_outside_the_edges_is_an_error(target: object) -> None:
    with pytest.raises(TransitionError):
        next_node(A, target, StepReport(), done=False)  # type: ignore[arg-type]


def test_a_reached_goal_ends_the_net_wherever_the_state_proposes_to_go() -> None:
    assert next_node(A, None, StepReport(), done=True) is None
    assert next_node(A, N.B, StepReport(), done=True) is None


def test_an_error_leads_along_its_own_edge() -> None:
    report = StepReport()
    report.error = KeyError()
    assert next_node(A, None, report, done=False) is B
