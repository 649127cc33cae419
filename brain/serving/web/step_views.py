"""How two sessions differ, as JSON. Private."""

from __future__ import annotations

from typing import Any

from agent_brain.memories.sessions.comparing import Difference
from agent_brain.step_data import describe_message
from agent_brain.tools.text import clean_json


def describe_difference(difference: Difference, names: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how two sessions differ; ``names`` tell which they are."""
    sides = zip(names, difference.rests, strict=True)
    return {
        "common": difference.common,
        "sides": [
            {**name, "messages": [describe_message(message) for message in rest]}
            for name, rest in sides
        ],
        "state": clean_json(
            [{"name": name, "values": values} for name, values in difference.state]
        ),
    }
