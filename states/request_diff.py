"""How a request differs from a recorded one, in lines that a person can read. Private."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

from agent_brain.tools.text import to_compact_json

Data = dict[str, Any]


def describe_request(request: Data) -> str:
    """Return the last message of a request in a few words."""
    if not request["messages"]:
        return "no messages"
    last = request["messages"][-1]
    words = " ".join(str(last.get("content", "")).split())
    return f"{last.get('role')}: {words[:77] + '…' if len(words) > 78 else words}"


def similarity(one: Data, other: Data) -> float:
    """Return how similar two requests are, from 0 to 1."""
    texts = (to_compact_json(one), to_compact_json(other))
    return difflib.SequenceMatcher(None, *texts, autojunk=False).quick_ratio()


def explain_request(recorded: Data, made: Data) -> str:
    """Return the lines that differ, with those around them; empty if none do."""
    lines = difflib.unified_diff([*_lines(recorded)], [*_lines(made)], lineterm="", n=2)
    shown = ["…" if line.startswith("@@") else line for line in [*lines][3:]]  # after the headers
    return "\n".join(f"  {line}" for line in shown)


def _lines(request: Data) -> Iterator[str]:
    yield f"model: {request.get('model')}"
    for message in request.get("messages") or ():
        yield from _block(f"{message.get('role')}:", str(message.get("content", "")))
        for name in sorted(message.keys() - {"role", "content"}):
            yield f"    {name}: {to_compact_json(message[name])}"
    for tool in request.get("tools") or ():
        yield from _block(f"tool {tool.get('name')}:", str(tool.get("description", "")))
        yield from _schema("input_schema", tool.get("input_schema"))
    yield from _schema("output_schema", request.get("output_schema"))


def _schema(name: str, schema: Any) -> Iterator[str]:
    if schema is not None:
        yield from _block(f"{name}:", json.dumps(schema, indent=2, ensure_ascii=False))


def _block(title: str, text: str) -> Iterator[str]:
    first, *rest = text.split("\n")
    yield f"{title} {first}"
    yield from (f"    {line}" for line in rest)
