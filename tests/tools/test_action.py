"""One tool call as data."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from pydantic import ValidationError

from agent_brain.tools import Action


def test_ids_are_unique():
    assert len({Action(name="x").id for _ in range(1000)}) == 1000


def test_it_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        Action(name="x").name = "y"  # type: ignore[misc]


def test_it_is_hashable_and_equal_by_content():
    action = Action(name="x", args={"a": [1]}, id="1")

    assert {action, Action(name="x", args={"a": [1]}, id="1")} == {action}
    assert action != Action(name="x", args={"a": [2]}, id="1")


def test_it_round_trips_through_json():
    action = Action(name="x", args={"a": {"b": [1, 2.5, None, True, "é"]}}, unparsed="{")

    assert Action.model_validate_json(action.model_dump_json()) == action


def test_arguments_are_not_shared_with_the_caller():
    args: dict[str, Any] = {"a": {"b": [1]}}
    action = Action(name="x", args=args)
    args["a"]["b"].append(2)

    assert action.args == {"a": {"b": [1]}}


def test_what_json_cannot_carry_is_replaced():
    action = Action(name="a\ud800", args={"k\udfff": ["\ud800", float("inf")]}, unparsed="\ud800")

    assert action.name == "a\ufffd"
    assert action.args == {"k\ufffd": ["\ufffd", None]}
    assert action.unparsed == "\ufffd"


@pytest.mark.parametrize("fields", [{"id": ""}, {"args": {"a": object()}}, {"args": [1]}])
def test_what_is_not_a_call_is_refused(fields):
    with pytest.raises(ValidationError):
        Action(name="x", **fields)


def test_a_deep_copy_is_the_same_object():
    action = Action(name="x")

    assert copy.deepcopy([action])[0] is action
