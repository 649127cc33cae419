"""Nets: built once, never changed; their states neither."""

from __future__ import annotations

import copy
import re
from enum import Enum
from typing import Any

import pytest

from agent_brain.nets import (
    Net,
    NetDefinitionError,
    ReAct,
    as_net,
    create_net,
    net_names,
    react,
    register_net,
)
from agent_brain.nets.errors import UnknownNetError
from agent_brain.states import StateMutationError
from agent_brain.testing import ScriptedLLM
from tests.nets.states import N, To


def small() -> Net:
    return Net({N.A: To(N.B), N.B: To(N.A, None)})


def test_the_first_state_is_the_initial_one():
    assert small().initial is N.A


def test_another_state_may_be_the_initial_one():
    assert Net({N.A: To(None), N.B: To(N.A)}, initial=N.B).initial is N.B


def test_it_is_named_for_its_enum_unless_a_name_is_given():
    assert (small().name, Net({N.A: To(None)}, name="mine").name) == ("N", "mine")


def test_states_are_found_by_key_and_by_name():
    net = small()

    assert net.node(N.B).name == "B"
    assert net.find("B") is net.node(N.B)
    assert net.find("X") is None


def test_a_node_knows_its_targets_and_hooks():
    class Hooked(To):
        async def on_exit(self, memory: Any) -> None: ...

    node = Net({N.A: Hooked(None)}).node(N.A)

    assert (node.targets, node.on_enter, node.on_exit) == (frozenset({None}), False, True)


@pytest.mark.parametrize("attribute", ["initial", "fallback", "states", "edges", "name"])
def test_a_net_cannot_be_changed(attribute):
    with pytest.raises(AttributeError):
        setattr(small(), attribute, None)


def test_the_properties_of_a_net_cannot_be_changed():
    net = small()

    with pytest.raises(TypeError):
        net.states[N.A] = To(None)  # type: ignore[index]
    with pytest.raises(TypeError):
        net.edges[N.A] = ()  # type: ignore[index]


def test_a_net_does_not_follow_changes_of_what_it_was_made_from():
    states: dict[Enum, Any] = {N.A: To(None)}
    transitions: dict[Enum, Any] = {N.A: [None]}
    net = Net(states, transitions=transitions)
    states[N.B] = To(None)
    transitions[N.A].append(N.A)

    assert list(net.states) == [N.A]
    assert net.edges[N.A] == (None,)


def test_a_deep_copy_is_the_same_net():
    net = small()

    assert copy.deepcopy(net) is net


def test_a_state_in_a_net_refuses_to_be_changed_and_names_the_attribute():
    state = To(None)
    state.free = 1
    Net({N.A: state})

    with pytest.raises(StateMutationError, match=r"To\.counter .*memory\.control\.scratch") as new:
        state.counter = 1
    with pytest.raises(StateMutationError, match=r"To\.declared"):
        state.declared = ()
    with pytest.raises(StateMutationError, match=r"To\.free"):
        del state.free  # type: ignore[attr-defined]
    assert new.value.attribute == "counter"


def test_a_state_of_a_net_that_was_refused_may_still_be_corrected():
    state = To(N.D)
    with pytest.raises(NetDefinitionError):
        Net({N.A: state})

    state.declared = (None,)

    assert Net({N.A: state}).validate() == []


def test_one_state_object_may_be_in_several_nets():
    state = To(None)

    assert Net({N.A: state}).states[N.A] is Net({N.B: state}).states[N.B]


def test_a_dict_is_accepted_where_a_net_is():
    net = small()

    assert as_net(net) is net
    assert as_net({N.B: To(None)}).initial is N.B


def test_its_repr_names_it():
    assert repr(small()) == "<Net 'N': A, B>"


# -- pictures --------------------------------------------------------------------------------------


def test_mermaid():
    assert react(ScriptedLLM(), fallback=True).to_mermaid() == (
        "---\n"
        "title: react\n"
        "---\n"
        "stateDiagram-v2\n"
        "    [*] --> REASONING\n"
        "    REASONING --> ACTION\n"
        "    REASONING --> ANSWER\n"
        "    ACTION --> REASONING\n"
        "    ANSWER --> [*]\n"
        "    note right of ANSWER: fallback when a limit is reached\n"
    )


def test_dot():
    picture = react(ScriptedLLM(), fallback=True).to_dot()

    assert picture.startswith('digraph "react" {\n')
    assert re.findall(r"^ *(\S+ -> \S+?);?$", picture, re.MULTILINE) == [
        '"__start__" -> "REASONING"',
        '"REASONING" -> "ACTION"',
        '"REASONING" -> "ANSWER"',
        '"ACTION" -> "REASONING"',
        '"ANSWER" -> "__end__"',
    ]
    assert [line for line in picture.splitlines() if "dashed" in line and '"ANSWER"' in line]
    assert picture.endswith("}\n")


def test_names_that_a_diagram_would_misread_are_quoted():
    Odd = Enum("Odd", {"NOTE": 1, 'a "b" \\c': 2, "état": 3})
    note, spaced, accented = Odd
    net = Net({note: To(spaced), spaced: To(accented), accented: To(None)}, name="a: b\n---")

    assert net.to_mermaid() == (
        '---\ntitle: "a: b ---"\n---\nstateDiagram-v2\n'
        '    state "NOTE" as s0\n'
        '    state "a \\"b\\" \\\\c" as s1\n'
        '    state "état" as s2\n'
        "    [*] --> s0\n    s0 --> s1\n    s1 --> s2\n    s2 --> [*]\n"
    )
    assert '    "a \\"b\\" \\\\c" -> "état";\n' in net.to_dot()


# -- by name ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["react", "ReAct", "REACT"])
def test_names_of_nets_are_case_insensitive(name):
    assert list(create_net(name, ScriptedLLM()).states) == list(ReAct)


def test_options_reach_the_net():
    net = create_net("react", ScriptedLLM(), max_concurrency=3)

    assert net.states[ReAct.ACTION].max_concurrency == 3  # type: ignore[attr-defined]


def test_an_unknown_name_is_an_error_with_the_known_ones():
    with pytest.raises(UnknownNetError, match=r"no net named 'raect'.*react"):
        create_net("raect", ScriptedLLM())


def test_an_unknown_option_is_named_in_the_error():
    with pytest.raises(UnknownNetError, match=r"'react'.*colour"):
        create_net("react", ScriptedLLM(), colour="red")  # type: ignore[call-arg]


@pytest.fixture
def registered(monkeypatch):
    react_alone = {"react": "agent_brain.nets.library.react:react"}
    monkeypatch.setattr("agent_brain.nets.registry._registry.built_in", react_alone)
    monkeypatch.setattr("agent_brain.nets.registry._registry.factories", {})


@pytest.mark.usefixtures("registered")
def test_a_net_of_ones_own_can_be_registered():
    def mine(llm: Any) -> Net:
        return small()

    register_net("Mine", mine)
    register_net("mine", mine)

    assert create_net("MINE", ScriptedLLM()).name == "N"
    assert net_names() == ["mine", "react"]


@pytest.mark.usefixtures("registered")
def test_a_name_that_is_taken_is_refused():
    with pytest.raises(UnknownNetError, match="already registered"):
        register_net("REACT", lambda llm: small())


@pytest.mark.usefixtures("registered")
def test_a_bug_inside_a_nets_function_is_raised_as_it_is():
    def buggy(llm: Any) -> Net:
        return create_net("react", llm, max_concurrency=int([]))  # type: ignore[call-overload]

    register_net("buggy", buggy)

    with pytest.raises(TypeError, match=re.escape("int() argument must be")):
        create_net("buggy", ScriptedLLM())


@pytest.mark.parametrize("states", [{}, {1: None}, {"a": "b"}, 3], ids=repr)
def test_a_net_whose_definition_failed_can_be_shown(states: Any) -> None:
    net = Net.__new__(Net)
    with pytest.raises((NetDefinitionError, TypeError)):
        net.__init__(states)  # type: ignore[misc]
    assert repr(net).startswith("<Net ")
