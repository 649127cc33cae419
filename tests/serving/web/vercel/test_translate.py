"""Events of a run become a well-formed UI message stream."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agent_brain.errors import BrainUseError
from agent_brain.serving.web.vercel.translate import UIMessageTranslator
from agent_brain.states.events import AgentEvent
from tests.serving.web.vercel.wellformed import check
from tests.support.random_runs import runs


def translate(events: list[AgentEvent], **options: Any) -> list[dict[str, Any]]:
    to_parts = UIMessageTranslator(session="s/1", message_id="m1", **options)
    found: list[dict[str, Any]] = []
    for event in events:
        found += to_parts.translate(event)
    found += to_parts.fail(BrainUseError("It was cut off"))
    json.dumps(found, ensure_ascii=False).encode()
    return found


@given(runs(), st.booleans())
def test_any_sequence_of_events_becomes_a_well_formed_stream(
    events: list[AgentEvent], visible: bool
) -> None:
    check(translate(events, show_tools=visible))


@given(runs(), st.integers(1, 30))
def test_a_stream_that_is_cut_off_anywhere_is_well_formed(
    events: list[AgentEvent], length: int
) -> None:
    check(translate(events[:length]))
