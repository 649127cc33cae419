"""Snapshots: a memory as plain data, read back with care."""

from __future__ import annotations

import json

import pytest
from pydantic import BaseModel

from agent_brain.memories import (
    Call,
    Control,
    MemoryUseError,
    Message,
    Snapshot,
    SnapshotError,
)
from agent_brain.tools import Action
from tests.memories.durable.own import ListMemory

ACTION = Action(name="weather", args={"city": "Oslo"})


def full_snapshot() -> Snapshot:
    return Snapshot(
        goal=[Message.user("What?")],
        messages=[Message.assistant("", [ACTION]), Message.tool("cold", ACTION)],
        control=Control(
            run_id="run_1",
            status="waiting",
            state="ACTION",
            step=3,
            next_actions=[ACTION],
            pending={ACTION.id: Call(action=ACTION, result=Message.tool("cold", ACTION))},
            output={"a": 1},
            fingerprints=["text:1"],
            scratch={"plan": ["a", {"b": None}]},
        ),
        views={"summary": "So far: é"},
    )


def test_it_round_trips_through_json():
    snapshot = full_snapshot()

    assert Snapshot.from_json(snapshot.model_dump_json()) == snapshot


@pytest.mark.anyio
async def test_a_memory_that_cannot_drop_what_it_holds_refuses_a_snapshot():
    memory = ListMemory()
    await memory.update([Message.user("kept")])

    with pytest.raises(MemoryUseError, match="already holds messages"):
        await memory.restore(full_snapshot())
    assert len(await memory.dump()) == 1


def test_bytes_are_read_too():
    snapshot = full_snapshot()

    assert Snapshot.from_json(snapshot.model_dump_json().encode()) == snapshot


def test_a_hint_is_never_written():
    snapshot = Snapshot(control=Control())
    snapshot.control.hint = "You are going in circles"

    assert "circles" not in snapshot.model_dump_json()


def test_a_validated_output_is_written_as_its_data():
    class Answer(BaseModel):
        city: str

    written = Snapshot(control=Control(output=Answer(city="Oslo"))).model_dump_json()

    assert Snapshot.from_json(written).control.output == {"city": "Oslo"}


@pytest.mark.parametrize("version", [0, 2, "2", None, 1.5, [1]])
def test_an_unknown_version_is_refused_by_its_number(version):
    written = json.dumps({"version": version, "what a later version adds": 1})

    with pytest.raises(SnapshotError, match="this library reads version 1"):
        Snapshot.from_json(written)


def test_an_unknown_version_is_refused_when_it_is_used():
    with pytest.raises(SnapshotError, match="has version 7, and this library reads version 1"):
        Snapshot(version=7).check()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "[]",
        "null",
        "{}",
        '{"goal": []}',
        '{"version": 1',
        b"\xff\xfe",
        '{"version": 1, "colour": "red"}',
        '{"version": 1, "goal": "x"}',
        '{"version": 1, "messages": [{"role": "tool"}]}',
        '{"version": 1, "control": {"status": "asleep"}}',
        '{"version": 1, "views": ' + "[" * 100_000,
    ],
)
def test_what_is_not_a_snapshot_is_refused(text):
    with pytest.raises(SnapshotError):
        Snapshot.from_json(text)


def test_the_error_says_where_the_snapshot_is_wrong():
    with pytest.raises(SnapshotError, match=r"messages\.0: .*tool_call_id"):
        Snapshot.from_json('{"version": 1, "messages": [{"role": "tool"}]}')


def test_a_new_run_clears_every_register():
    control = full_snapshot().control
    control.hint = "x"
    control.begin("run_2", "REASONING")

    assert control == Control(run_id="run_2", state="REASONING", status="running")
