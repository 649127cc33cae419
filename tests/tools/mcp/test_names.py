"""Names of tools from several servers."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from agent_brain.tools.mcp.names import choose_names


def test_a_name_that_nobody_else_has_is_kept():
    assert choose_names({"a": ["x"], "b": ["y"]}, (), {}) == {("a", "x"): "x", ("b", "y"): "y"}


def test_all_that_share_a_name_are_called_after_their_servers():
    names = choose_names({"a": ["x"], "b": ["x"]}, (), {})

    assert names == {("a", "x"): "a_x", ("b", "x"): "b_x"}


def test_a_local_tool_keeps_its_name():
    assert choose_names({"a": ["x", "y"]}, {"x"}, {}) == {("a", "x"): "a_x", ("a", "y"): "y"}


def test_a_name_once_given_stays():
    before = {("a", "x"): "x", ("a", "gone"): "gone"}

    names = choose_names({"a": ["x"], "b": ["x", "gone"]}, (), before)

    assert names == {("a", "x"): "x", ("b", "x"): "b_x", ("b", "gone"): "gone"}


def test_letters_that_models_do_not_take_are_replaced():
    names = choose_names({"a": ["get user.name", "größe", ""]}, (), {})

    assert list(names.values()) == ["get_user_name", "gr__e", "_"]


def test_two_tools_that_become_alike_are_distinguished():
    names = choose_names({"a": ["x.y", "x_y"]}, {"a_x_y"}, {})

    assert list(names.values()) == ["a_x_y_2", "a_x_y_3"]


def test_a_tool_that_is_listed_twice_is_one():
    assert choose_names({"a": ["x", "x"]}, (), {}) == {("a", "x"): "x"}


TEXTS = st.text(alphabet="ab._é", max_size=70)


@given(
    listed=st.dictionaries(TEXTS, st.lists(TEXTS, max_size=5), max_size=3),
    taken=st.sets(st.text(alphabet="ab_", min_size=1, max_size=3)),
)
def test_names_are_always_fit_and_never_alike(listed, taken):
    names = choose_names(listed, taken, {})

    assert set(names) == {(server, tool) for server, tools in listed.items() for tool in tools}
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names.values())
    assert len({*names.values(), *taken}) == len(names) + len(taken)
    assert choose_names(listed, taken, names) == names
