"""Events of a run become a well-formed stream of AG-UI."""

from __future__ import annotations

from typing import Any

from ag_ui.core import BaseEvent
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.errors import BrainUseError
from agent_brain.serving.web.ag_ui.translate import AgUiTranslator
from agent_brain.states.events import AgentEvent
from tests.serving.web.ag_ui.wellformed import check, wire
from tests.support.random_runs import runs


def translator(**options: Any) -> AgUiTranslator:
    return AgUiTranslator("thread", "run", session="s/1", **options)


def translate(events: list[AgentEvent], **options: Any) -> list[dict[str, Any]]:
    to_ag_ui = translator(**options)
    found: list[BaseEvent] = []
    for event in events:
        found += to_ag_ui.translate(event)
    return wire([*found, *to_ag_ui.fail(BrainUseError("It was cut off"))])


@given(runs(), st.booleans(), st.sampled_from([(), ("pick_color",)]))
def test_any_sequence_of_events_becomes_a_well_formed_stream(
    events: list[AgentEvent], visible: bool, front_end: tuple[str, ...]
) -> None:
    check(translate(events, show_tools=visible, front_end=front_end))


@given(runs(), st.integers(1, 30))
def test_a_stream_that_is_cut_off_anywhere_is_well_formed(
    events: list[AgentEvent], length: int
) -> None:
    check(translate(events[:length]))


@given(runs())
def test_every_call_that_is_shown_has_a_result_unless_the_run_waits(
    events: list[AgentEvent],
) -> None:
    found = translate(events)
    if found[-1]["type"] == "RUN_FINISHED" and found[-1]["outcome"]["type"] == "interrupt":
        return
    if found[-1]["type"] == "RUN_FINISHED" and found[-1]["outcome"].get("pendingToolCallIds"):
        return
    open_calls = set()
    for event in found:
        if event["type"] == "TOOL_CALL_START":
            open_calls.add(event["toolCallId"])
        elif event["type"] == "TOOL_CALL_RESULT":
            open_calls.discard(event["toolCallId"])
    waits = any(
        event.kind == "run_finished" and event.stop_reason in ("approval", "input")
        for event in events
    )
    assert waits or not open_calls
