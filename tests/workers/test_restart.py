"""What the events of an interrupted run lack, and which of them the repeated step undoes."""

from __future__ import annotations

import pytest

from agent_brain.memories import Message
from agent_brain.memories.control import Control
from agent_brain.memories.runs.calls import Call
from agent_brain.states.events import ActionFinished, ActionStarted, Position, StateExited
from agent_brain.tools import Action
from agent_brain.workers.event_log import kept_calls, missing_exit, undone


def log(*events: tuple) -> dict[int, dict]:
    """Events by number: kind, step, state, path."""
    return {
        number: {
            "kind": kind,
            "run_id": "run",
            "step": step,
            "state": state,
            "path": list(path[0]) if path else [],
        }
        for number, (kind, step, state, *path) in enumerate(events, 1)
    }


STEP_0 = (("run_started", 0, None), ("state_entered", 0, "A"), ("state_exited", 0, "A"))


def test_nothing_is_undone_in_a_run_without_events() -> None:
    assert undone({}) == []


def test_nothing_is_undone_between_two_steps() -> None:
    assert undone(log(*STEP_0)) == []


def test_the_interrupted_step_is_undone() -> None:
    events = log(*STEP_0, ("state_entered", 1, "B"), ("text_delta", 1, "B"))

    assert undone(events) == [(4, 5)]


def test_a_first_step_is_undone_but_not_the_start_of_the_run() -> None:
    assert undone(log(*STEP_0[:2])) == [(2, 2)]


def test_complete_steps_of_branches_stay() -> None:
    events = log(
        *STEP_0,
        ("state_entered", 1, "B"),
        ("state_entered", 1, "X", ("B", "x")),
        ("state_exited", 1, "X", ("B", "x")),
        ("state_entered", 2, "Y", ("B", "x")),
        ("state_entered", 1, "X", ("B", "y")),
    )

    assert undone(events) == [(4, 4), (7, 8)]


@pytest.mark.parametrize("end", ["run_finished", "run_failed"])
def test_a_step_that_ended_the_run_is_not_undone(end: str) -> None:
    events = log(*STEP_0, ("state_entered", 1, "B"), (end, 1, None))

    assert undone(events) == []


def test_the_end_of_a_step_that_was_stored_is_added() -> None:
    control = Control(state="B", step=1)

    ended = missing_exit(log(*STEP_0[:2]), control)

    assert ended == StateExited("B", at=Position("run", 0, "A"))


def test_the_end_of_the_last_step_has_no_next_state() -> None:
    ended = missing_exit(log(*STEP_0[:2]), Control(state="A", step=1, done=True))

    assert ended == StateExited(None, at=Position("run", 0, "A"))


@pytest.mark.parametrize("events", [STEP_0[:2], STEP_0])
def test_no_end_is_added_that_is_there_or_did_not_happen(events: tuple) -> None:
    steps = sum(kind == "state_exited" for kind, *_ in events)

    assert missing_exit(log(*events), Control(state="A", step=steps)) is None


def test_steps_of_a_net_inside_do_not_end_the_step_around_it() -> None:
    events = log(
        ("state_entered", 0, "A"),
        ("state_entered", 0, "X", ("A",)),
        ("state_exited", 0, "X", ("A",)),
        ("state_entered", 1, "Y", ("A",)),
    )

    assert missing_exit(events, Control(state="A", step=1)) is None
    assert missing_exit(events, Control(state="A", step=2)) is None  # the end of Y is missing
    assert missing_exit(events, Control(state="B", step=3)) is not None


def test_calls_that_are_not_repeated_are_shown_again() -> None:
    done, open_ = Action(name="f", args={}), Action(name="g", args={})
    result = Message.tool("1", done)
    pending = {
        done.id: Call(done, result, reported=True),
        open_.id: Call(open_),
    }
    at = Position("run", 1, "B")

    events = kept_calls({}, pending, at)

    assert events == [ActionStarted(done, at=at), ActionFinished(done, result, at=at)]


def test_calls_whose_events_count_are_not_shown_again() -> None:
    done = Action(name="f", args={})
    pending = {done.id: Call(done, Message.tool("1", done), reported=True)}
    counting = {7: {"kind": "action_finished", "action": {"id": done.id}}}

    assert kept_calls(counting, pending, Position()) == []
