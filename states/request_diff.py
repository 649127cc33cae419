"""How a request differs from a recorded one, in lines that a person can read."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

from agent_brain.common.text import to_compact_json
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.states.models.call_data import request_to_data


def describe_request(call: RecordedCall) -> str:
    """Return the last message of a request in a few words."""
    if not call.messages:
        return "no messages"
    last = call.messages[-1]
    words = " ".join(last.content.split())
    return f"{last.role}: {words[:77] + '…' if len(words) > 78 else words}"


def similarity(one: RecordedCall, other: RecordedCall) -> float:
    """Return how similar two requests are, from 0 to 1."""
    text, another = (to_compact_json(request_to_data(call)) for call in (one, other))
    return difflib.SequenceMatcher(None, text, another, autojunk=False).quick_ratio()


def differing_fields(recorded: RecordedCall, made: RecordedCall) -> str:
    """Return the names of what differs."""
    one, other = request_to_data(recorded), request_to_data(made)
    return ", ".join(name for name in one if one[name] != other[name]).replace("_", " ")


def explain_request(recorded: RecordedCall, made: RecordedCall) -> str:
    """Return the lines that differ, with those around them; empty if none do."""
    lines = difflib.unified_diff([*_lines(recorded)], [*_lines(made)], lineterm="", n=2)
    shown = ["…" if line.startswith("@@") else line for line in [*lines][3:]]  # after the headers
    return "\n".join(f"  {line}" for line in shown)


def _lines(call: RecordedCall) -> Iterator[str]:
    request = request_to_data(call)
    yield f"model: {request['model']}"
    for message in request["messages"]:
        yield from _block(f"{message['role']}:", message["content"])
        for name in sorted(message.keys() - {"role", "content"}):
            yield f"    {name}: {to_compact_json(message[name])}"
    for tool in request["tools"]:
        yield from _block(f"tool {tool.get('name')}:", str(tool.get("description", "")))
        yield from _schema("input_schema", tool.get("input_schema"))
    yield from _schema("output_schema", request["output_schema"])


def _schema(name: str, schema: Any) -> Iterator[str]:
    if schema is not None:
        yield from _block(f"{name}:", json.dumps(schema, indent=2, ensure_ascii=False))


def _block(title: str, text: str) -> Iterator[str]:
    first, *rest = text.split("\n")
    yield f"{title} {first}"
    yield from (f"    {line}" for line in rest)
