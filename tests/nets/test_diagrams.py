"""Diagrams: exactly the edges of a net, its inner nets, and the path of a run."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from enum import Enum

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain import Brain, Net, react
from agent_brain.nets import ParallelState, SubnetState, router
from agent_brain.states import FunctionState
from agent_brain.testing import ScriptedLLM


class Key(Enum):
    """Five states."""

    A = 1
    B = 2
    C = 3
    D = 4
    E = 5


async def nothing(memory: object) -> None:
    return None


KEYS = list(Key)
EDGES = st.dictionaries(
    st.sampled_from(KEYS), st.sets(st.sampled_from([*KEYS, None]), min_size=1), min_size=1
)
ANY = ["unreachable", "dead_end", "no_end", "no_exit", "never_proposed"]


def net_of(edges: dict[Key, set[Key | None]]) -> Net:
    used = {*edges, *(t for ts in edges.values() for t in ts if t is not None)}
    states = {k: FunctionState(nothing, choose=lambda m: None) for k in KEYS if k in used}
    return Net(states, transitions={k: list(edges.get(k, {None})) for k in states}, allow=ANY)


def pairs(net: Net) -> set[tuple[str, str]]:
    return {
        (source.name, "end" if target is None else target.name)
        for source, targets in net.edges.items()
        for target in targets
    }


@given(EDGES)
def test_mermaid_has_exactly_the_declared_edges(edges: dict[Key, set[Key | None]]) -> None:
    net = net_of(edges)
    found = re.findall(r"^    (\S+) --> (\S+)", net.to_mermaid(), re.M)
    drawn = {(s, "end" if t == "[*]" else t) for s, t in found if s != "[*]"}
    assert drawn == pairs(net)
    assert len(found) == len(pairs(net)) + 1


@given(EDGES)
def test_dot_has_exactly_the_declared_edges(edges: dict[Key, set[Key | None]]) -> None:
    net = net_of(edges)
    found = re.findall(r'^    "(\w+)" -> "(\w+)"', net.to_dot(), re.M)
    drawn = {(s, "end" if t == "__end__" else t) for s, t in found if s != "__start__"}
    assert drawn == pairs(net)


@given(EDGES)
def test_svg_has_a_line_for_each_edge_and_a_box_for_each_state(
    edges: dict[Key, set[Key | None]],
) -> None:
    net = net_of(edges)
    root = ET.fromstring(net.to_svg())
    space = "{http://www.w3.org/2000/svg}"
    lines = [e for e in root.iter(f"{space}path") if e.get("marker-end")]
    assert len(lines) == len(pairs(net)) + 1
    assert {e.text for e in root.iter(f"{space}title")} == {k.name for k in net.states}


def nested() -> Net:
    inner = react(ScriptedLLM(["inside"]))
    fan = {"left": react(ScriptedLLM(["l"])), "right": react(ScriptedLLM(["r"]))}
    return Net(
        {
            Key.A: SubnetState(inner, on_done=Key.B),
            Key.B: ParallelState(fan, on_done=Key.C),
            Key.C: FunctionState(nothing),
        }
    )


def test_nets_inside_are_drawn_inside() -> None:
    net = nested()
    assert "    state A {\n" in net.to_mermaid()
    assert "        A_REASONING --> A_ACTION\n" in net.to_mermaid()
    assert 'state "right" as B_b1' in net.to_mermaid()
    assert 'label="left"; style=rounded;' in net.to_dot()
    assert "B / right" in net.to_svg()


@pytest.mark.anyio
async def test_the_path_of_a_run_is_highlighted() -> None:
    net = nested()
    async with Brain(net).stream("go") as run:
        events = [event async for event in run]
    drawn = net.to_mermaid(events)
    assert "A --> B : 1×" in drawn
    assert "A_REASONING --> A_ANSWER : 1×" in drawn
    assert "A_REASONING --> A_ACTION\n" in drawn
    assert "class B_b0_ANSWER visited" in drawn
    assert "class A_ACTION visited" not in drawn
    assert net.to_svg(events).count('class="v"') == 3 + 2 * 3
    assert 'label="1×"' in net.to_dot(events)


def test_a_notebook_is_given_an_image() -> None:
    assert nested()._repr_mimebundle_()["image/svg+xml"].startswith("<svg")


@pytest.mark.parametrize("name", ["a<b>&c", 'quo"te', "new\nline", "ünï"])
def test_odd_names_do_not_break_a_picture(name: str) -> None:
    odd = Enum("odd", {name: 1})  # type: ignore[misc]
    net = Net({next(iter(odd)): FunctionState(nothing)}, name=name)
    ET.fromstring(net.to_svg())
    assert net.to_dot().count("{") == net.to_dot().count("}") == 1
    assert "stateDiagram-v2" in net.to_mermaid()


@pytest.mark.anyio
async def test_the_path_of_a_run_includes_the_route_that_was_chosen() -> None:
    brain = Brain(router(ScriptedLLM([["Hello."]]), choose=lambda memory: "react"))
    async with brain.stream("Hi!") as run:
        events = [event async for event in run]

    svg = brain.net.to_svg(events)

    ids = re.findall(r'id="(state-[^"]+)"', svg)
    assert sorted(ids) == sorted(set(ids))
    assert re.search(r'id="state-ROUTE-react-REASONING".*?1×</text></g>', svg)
    assert "1×" not in svg[svg.index('id="state-ROUTE-plan_execute-PLANNING"') :]
