"""A validated net never reaches a state, or takes an edge, that it does not declare."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from itertools import pairwise

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain import Brain, Limits, Memory, Net, State
from agent_brain.errors import NetDefinitionError, TransitionError
from agent_brain.states import StateExited
from tests.support.thorough import examples


class Key(Enum):
    """Up to five states."""

    A = 1
    B = 2
    C = 3
    D = 4
    E = 5


KEYS = list(Key)
TARGETS = st.lists(st.sampled_from([*KEYS, None]), min_size=1, max_size=4, unique=True)
GRAPHS = st.dictionaries(st.sampled_from(KEYS), TARGETS, min_size=1)


class Wander(State):
    """Goes where a list of random numbers says, among ``proposals``."""

    def __init__(self, proposals: list[Key | None], steps: list[int]) -> None:
        self.proposals = proposals
        self.steps = steps

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield f"{memory.control.step} "

    async def next_state(self, memory: Memory) -> Enum | None:
        number = self.steps[memory.control.step % len(self.steps)]
        return self.proposals[number % len(self.proposals)]


def way(net: Net) -> list[tuple[str | None, str | None]]:
    """Every move of a run, as far as 30 steps."""

    async def run() -> list[tuple[str | None, str | None]]:
        async with Brain(net, limits=Limits(max_steps=30), stuck=None).stream("go") as run:
            return [(e.state, e.next) async for e in run if isinstance(e, StateExited)]

    return anyio.run(run)


@settings(max_examples=examples(150))
@given(GRAPHS, st.lists(st.integers(0, 7), min_size=1, max_size=30))
def test_a_valid_net_moves_only_along_its_edges(
    graph: dict[Key, list[Key | None]], steps: list[int]
) -> None:
    try:
        net = Net({k: Wander(ts, steps) for k, ts in graph.items()}, transitions=graph)
    except NetDefinitionError:
        return
    declared = {(k.name, None if t is None else t.name) for k, ts in graph.items() for t in ts}
    moves = way(net)
    assert {*moves} <= declared
    assert moves[0][0] == next(iter(graph)).name
    assert all(before[1] == after[0] for before, after in pairwise(moves))


@settings(max_examples=examples(60))
@given(GRAPHS, st.sampled_from(KEYS))
def test_a_state_that_leaves_the_edges_is_stopped(
    graph: dict[Key, list[Key | None]], astray: Key
) -> None:
    first = next(iter(graph))
    if astray in graph[first]:
        return
    states = {k: Wander([astray] if k is first else ts, [0]) for k, ts in graph.items()}
    try:
        net = Net(states, transitions=graph)
    except NetDefinitionError:
        return
    with pytest.raises(TransitionError, match=astray.name):
        way(net)
