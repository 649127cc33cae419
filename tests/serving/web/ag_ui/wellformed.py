"""Checks a stream of AG-UI against the rules of the specification."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ag_ui.core import BaseEvent, Event
from pydantic import TypeAdapter

ADAPTER: TypeAdapter[Any] = TypeAdapter(Event)

# What opens, what needs something open and what closes it, with the key that names it.
KINDS = {
    "text": ("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "messageId"),
    "span": ("REASONING_START", "", "REASONING_END", "messageId"),
    "thought": (
        "REASONING_MESSAGE_START",
        "REASONING_MESSAGE_CONTENT",
        "REASONING_MESSAGE_END",
        "messageId",
    ),
    "call": ("TOOL_CALL_START", "TOOL_CALL_ARGS", "TOOL_CALL_END", "toolCallId"),
    "step": ("STEP_STARTED", "", "STEP_FINISHED", "stepName"),
    "subagent": ("SUBAGENT_STARTED", "", "SUBAGENT_FINISHED", "subagentRunId"),
}
ENDS = ("RUN_FINISHED", "RUN_ERROR")


def wire(events: Iterable[BaseEvent]) -> list[dict[str, Any]]:
    """Return the events as a client reads them; the package's own models must accept them."""
    found = []
    for event in events:
        text = event.model_dump_json(by_alias=True)
        back = ADAPTER.validate_json(text)
        assert type(back) is type(event)
        assert not back.model_extra
        found.append(back.model_dump(mode="json", by_alias=True))
    return found


def check(events: list[dict[str, Any]]) -> None:
    """Raise AssertionError if the stream breaks a rule."""
    assert events[0]["type"] == "RUN_STARTED"
    assert [event["type"] in ENDS for event in events].index(True) == len(events) - 1
    live: dict[str, set[Any]] = {kind: set() for kind in KINDS}
    agents: set[str] = set()
    for event in events:
        kind = event["type"]
        agent = event.get("subagentRunId")
        if agent is not None and not kind.startswith("SUBAGENT"):
            assert agent in live["subagent"], event
        if kind == "SUBAGENT_STARTED":
            assert agent is not None
            assert agent not in agents
            agents.add(agent)
            if "parentSubagentRunId" in event:
                assert event["parentSubagentRunId"] in live["subagent"]
        for name, (opens, continues, closes, key) in KINDS.items():
            what = (agent, event.get(key)) if name == "step" else event.get(key)
            if kind == opens:
                assert what not in live[name], event
                live[name].add(what)
            elif kind == continues:
                assert what in live[name], event
            elif kind == closes or (name == "subagent" and kind == "SUBAGENT_ERROR"):
                assert what in live[name], event
                live[name].remove(what)
    assert not any(live.values()), live
