"""Every fault of a net is found before it runs, all in one error, each with a hint."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.memories import Memory
from agent_brain.nets import Net, NetDefinitionError
from tests.nets.states import Go, N, Other, To


class Coroutine(To):
    async def run(self, memory: Memory) -> Any:  # type: ignore[override]
        return None


class SyncGenerator(To):
    def run(self, memory: Memory) -> Any:
        yield ""


class Plain(To):
    def run(self, memory: Memory) -> AsyncIterator[str]:
        return To().run(memory)


def problems(states: Any, **options: Any) -> list[tuple[str, tuple[str, ...]]]:
    with pytest.raises(NetDefinitionError) as caught:
        Net(states, **options)
    assert all(problem.hint for problem in caught.value.problems)
    assert all(str(problem) in str(caught.value) for problem in caught.value.problems)
    return [(problem.code, problem.states) for problem in caught.value.problems]


SOUND = To(None)


@pytest.mark.parametrize(
    ("states", "options", "code", "names"),
    [
        ({}, {}, "empty", ()),
        ({"a": SOUND}, {}, "not_an_enum", ()),
        ({N.A: To(N.B), N.B: "state"}, {}, "not_a_state", ("B",)),
        ({N.A: To}, {}, "not_a_state", ("A",)),
        ({N.A: To(Other.X), Other.X: SOUND}, {}, "several_enums", ()),
        ({N.A: SOUND}, {"initial": N.B}, "unknown_initial", ()),
        ({N.A: SOUND}, {"fallback": N.B}, "unknown_fallback", ()),
        ({N.A: SOUND}, {"transitions": {N.B: N.A}}, "unknown_source", ()),
        ({N.A: To(N.B, None)}, {}, "unknown_target", ("A",)),
        ({N.A: SOUND, N.B: SOUND}, {}, "unreachable", ("B",)),
        ({N.A: To(N.B), N.B: To(N.A)}, {}, "no_end", ("A",)),
        ({N.A: To()}, {}, "dead_end", ("A",)),
        ({N.A: To(N.B, None), N.B: To(N.B)}, {}, "no_exit", ("B",)),
        ({N.A: SOUND}, {"transitions": {N.A: [None, N.A]}}, "never_proposed", ("A",)),
        ({N.A: SOUND}, {"allow": ["unreachabel"]}, "unknown_allowance", ()),
        ({N.A: Coroutine(None)}, {}, "not_a_generator", ("A",)),
        ({N.A: SyncGenerator(None)}, {}, "not_a_generator", ("A",)),
        ({N.A: Go()}, {"transitions": {N.A: [None, "B"]}}, "unknown_target", ("A",)),
        ({N.A: Go()}, {"transitions": {N.A: ["B", "C", None]}}, "unknown_target", ("A",)),
    ],
)
def test_each_problem_is_found(states, options, code, names):
    found = problems(states, **options)

    assert (code, names) in found
    assert {code for code, _ in found} == {code}


@pytest.mark.parametrize("target", ["ACT", 5, Other.X])
def test_a_target_that_is_not_a_member_is_one_problem(target):
    found = problems({N.A: Go()}, transitions={N.A: target})

    assert found == [("unknown_target", ("A",)), ("no_end", ("A",))]


def test_all_problems_are_in_one_error():
    found = problems(
        {
            N.A: To(N.B, N.D),  # N.D: unknown target
            N.B: To(N.B),  # no exit
            N.C: Coroutine(None),  # unreachable, no generator
            "key": SOUND,  # not an Enum
            Other.X: "state",  # not a state, another Enum
        },
        fallback=N.D,
        transitions={N.D: None},
    )

    assert {code for code, _ in found} == {
        "unknown_target",
        "no_exit",
        "unreachable",
        "not_a_generator",
        "not_an_enum",
        "not_a_state",
        "several_enums",
        "unknown_fallback",
        "unknown_source",
    }


def test_problems_of_the_graph_are_reported_even_if_the_initial_state_is_unknown():
    found = problems({N.A: To(N.C), N.B: SOUND}, initial=N.D)

    assert [code for code, _ in found] == ["unknown_initial", "unknown_target", "no_exit"]


def test_the_error_counts_and_names_the_net():
    with pytest.raises(NetDefinitionError, match=r"The net 'mine' has 2 problems:\n  - \[") as two:
        Net({N.A: To(N.A), N.B: SOUND}, name="mine")
    with pytest.raises(NetDefinitionError, match="has 1 problem:"):
        Net({N.A: SOUND, N.B: SOUND})
    assert len(two.value.problems) == 2


def test_run_may_be_a_plain_function_that_returns_an_async_iterator():
    assert Net({N.A: Plain(None)}).validate() == []


def test_a_fallback_need_not_be_reached_by_an_edge():
    assert Net({N.A: SOUND, N.B: SOUND}, fallback=N.B).validate() == []


def test_problems_of_the_graph_may_be_allowed_by_their_code():
    net = Net({N.A: SOUND, N.B: SOUND}, allow=["unreachable"])

    assert net.validate() == []
    assert [(p.code, p.states) for p in net.allowed()] == [("unreachable", ("B",))]


def test_a_problem_may_be_allowed_for_one_state_only():
    found = problems({N.A: SOUND, N.B: SOUND, N.C: SOUND}, allow=[("unreachable", N.B)])

    assert found == [("unreachable", ("C",))]


GRAPHS = st.dictionaries(
    st.sampled_from(N),
    st.lists(st.one_of(st.none(), st.sampled_from(N)), max_size=4),
    min_size=1,
)


@given(GRAPHS, st.sampled_from(N), st.none() | st.sampled_from(N))
def test_problems_of_random_graphs_are_those_that_a_fixpoint_finds(graph, initial, fallback):
    if initial not in graph or (fallback is not None and fallback not in graph):
        return
    edges = {(source, target) for source, targets in graph.items() for target in targets}
    reached, ending = {initial, fallback} - {None}, set()
    for _ in graph:
        reached |= {t for s, t in edges if s in reached and t in graph}
        ending |= {s for s, t in edges if t is None or t in ending}
    expected = {("unknown_target", s.name) for s, t in edges if t is not None and t not in graph}
    expected |= {("unreachable", key.name) for key in graph if key not in reached}
    for key in reached - ending:
        stuck = "no_exit" if ending else "no_end"
        expected.add((stuck if graph[key] else "dead_end", key.name))

    if expected:
        with pytest.raises(NetDefinitionError) as caught:
            Net({key: Go() for key in graph}, initial=initial, fallback=fallback, transitions=graph)
        assert {(p.code, p.states[0]) for p in caught.value.problems} == expected
    else:
        net = Net({k: Go() for k in graph}, initial=initial, fallback=fallback, transitions=graph)
        assert {key: set(net.edges[key]) for key in graph} == {k: set(graph[k]) for k in graph}
