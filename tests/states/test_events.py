"""Events: what happened, as typed data and as one JSON object."""

from __future__ import annotations

import dataclasses
import json
import typing

import pytest
from pydantic import BaseModel

from agent_brain.memories import Message
from agent_brain.states import (
    ActionFinished,
    ActionRequested,
    AgentEvent,
    Event,
    Position,
    RunFailed,
    RunFinished,
    RunStarted,
    TextDelta,
    Usage,
)
from agent_brain.tools import Action


class Answer(BaseModel):
    city: str


AT = Position("run_1", 3, "ACT", ("outer", "inner"))
ACTION = Action(name="add", id="call_1")


def test_an_event_says_where_it_happened():
    event = TextDelta("hi", at=AT)

    assert (event.run_id, event.step, event.state, event.path) == (
        "run_1",
        3,
        "ACT",
        ("outer", "inner"),
    )


def test_an_event_becomes_one_json_object_on_one_line():
    event = TextDelta("a\nb é", thought=True, at=AT)

    assert json.loads(event.to_json()) == {
        "kind": "text_delta",
        "run_id": "run_1",
        "step": 3,
        "state": "ACT",
        "path": ["outer", "inner"],
        "text": "a\nb é",
        "thought": True,
        "response_id": None,
    }
    assert "\n" not in event.to_json()


@pytest.mark.parametrize(
    ("event", "field", "value"),
    [
        (RunStarted(None), "goal", None),
        (ActionRequested(ACTION), "action", {"name": "add", "args": {}, "id": "call_1", "unparsed": None}),
        (
            ActionFinished(ACTION, Message.user("x"), ValueError("bad")),
            "exception",
            {"type": "ValueError", "message": "bad"},
        ),
        (RunFailed(OSError("gone")), "error", {"type": "OSError", "message": "gone"}),
        (RunFinished("done", "Oslo", Answer(city="Oslo")), "output", {"city": "Oslo"}),
        (RunFinished("done", "", {"a": [Answer(city="x")]}), "output", {"a": [{"city": "x"}]}),
        (RunFinished("done", "", (1, {2})), "output", [1, [2]]),
        (TextDelta("a\ud800"), "text", "a\ufffd"),
    ],
)  # fmt: skip
def test_what_happened_is_written_as_json(event, field, value):
    assert json.loads(event.to_json().encode())[field] == value


def test_usage_is_written_with_its_parts():
    usage = json.loads(RunFinished("done", "", usage=Usage(1, 2, 0.5, 3)).to_json())["usage"]

    assert usage["input_tokens"] == 1
    assert usage["cost"] == 0.5


def test_events_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        TextDelta("a").text = "b"  # type: ignore[misc]


def test_every_kind_is_told_apart():
    kinds = [event.kind for event in typing.get_args(AgentEvent)]

    assert len(set(kinds)) == len(kinds)
    assert all(issubclass(event, Event) for event in typing.get_args(AgentEvent))


def test_usages_add_up():
    assert Usage(1, 2, 0.5, 1, "a") + Usage(3, 4, 0.25, 2, "a") == Usage(4, 6, 0.75, 3, "a")
    assert (Usage(model="a") + Usage(model="b")).model is None
    assert Usage(1, 2).total_tokens == 3
