"""Events that differ in ids and times only are the same."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Message, react
from agent_brain.states import (
    ActionFinished,
    ActionRequested,
    ApprovalRequested,
    Position,
    TextDelta,
)
from agent_brain.testing import ScriptedLLM, normalize_events, run_net
from agent_brain.tools import Action
from tests.brain.nets import add


async def events_of(a: int) -> list[Any]:
    call = Action(name="add", args={"a": a, "b": 2})
    return (await run_net(react(ScriptedLLM([[call], "3"])), "1 + 2?", tools=[add])).events


@pytest.mark.anyio
async def test_two_runs_that_did_the_same_are_equal() -> None:
    assert normalize_events(await events_of(1)) == normalize_events(await events_of(1))


@pytest.mark.anyio
async def test_two_runs_that_did_different_things_differ() -> None:
    assert normalize_events(await events_of(1)) != normalize_events(await events_of(2))


def test_ids_are_numbered_and_still_refer_to_each_other() -> None:
    first, second = Action(name="f", args={"id": "kept"}), Action(name="g")
    at = Position("run_17", 3, "ACTION")
    events = [
        ApprovalRequested((first, second), at=at),
        ActionRequested(second, at=at),
        ActionFinished(first, Message.tool("x", first), at=at),
        TextDelta("run_17", at=at),
    ]
    asked, requested, finished, text = normalize_events(events)
    assert asked["run_id"] == "run-1"
    assert [action["id"] for action in asked["actions"]] == ["action-1", "action-2"]
    assert requested["action"]["id"] == "action-2"
    assert finished["action"]["args"] == {"id": "kept"}
    result = finished["result"]
    assert (result["tool_call_id"], result["id"], result["created_at"]) == (
        "action-1",
        "message-1",
        "time",
    )
    assert (text["text"], text["step"]) == ("run_17", 3)


def test_events_may_be_dicts() -> None:
    events = [TextDelta("x", at=Position("r", 0, "S"))]
    assert normalize_events([event.to_dict() for event in events]) == normalize_events(events)
