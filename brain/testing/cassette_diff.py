"""How a request differs from a recorded one, in lines that a person can read. Private."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from typing import Any

from agent_brain.tools.text import to_compact_json

_LONG = 100
"""Texts of this many characters are shown as a diff of their lines."""

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
    """Return everything that differs, indented, a block for each; empty if nothing does."""
    return "\n".join(f"  {line}" for line in _differences(recorded, made))


def _differences(recorded: Data, made: Data) -> Iterator[str]:
    yield from _changed(recorded, made, ["model"])
    yield from _messages(recorded.get("messages") or [], made.get("messages") or [])
    yield from _tools(recorded.get("tools") or [], made.get("tools") or [])
    yield from _changed(recorded, made, ["output_schema"])


def _messages(recorded: list[Data], made: list[Data]) -> Iterator[str]:
    """Show what was changed, removed and added, aligned on the messages that are the same."""
    old, new = [*map(to_compact_json, recorded)], [*map(to_compact_json, made)]
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(j - i, m - k)
        for n in range(both):
            before, now = recorded[i + n], made[k + n]
            label, role = f"messages[{k + n}].", f" ({now.get('role')})"
            yield from _changed(before, now, ["role"], label)
            fields = [field for field in {**before, **now} if field != "role"]
            yield from _changed(before, now, fields, label, role)
        for n in range(i + both, j):
            yield f"messages[{n}] is missing now:"
            yield from _block("-", _message(recorded[n]))
        for n in range(k + both, m):
            yield f"messages[{n}] is new:"
            yield from _block("+", _message(made[n]))


def _tools(recorded: list[Data], made: list[Data]) -> Iterator[str]:
    old = {tool.get("name"): tool for tool in recorded}
    new = {tool.get("name"): tool for tool in made}
    for name in old.keys() - new.keys():
        yield f"tool {name!r} is no longer offered"
    for name in new.keys() - old.keys():
        yield f"tool {name!r} is offered now, but was not when this was recorded"
    for name in [name for name in old if name in new]:
        fields = ("description", "input_schema")
        yield from _changed(old[name], new[name], fields, f"tool {name!r}, ")
    if old == new and recorded != made:
        orders = (", ".join(map(str, names)) for names in (old, new))
        yield f"the tools are in another order: {' -> '.join(orders)}"


def _changed(
    recorded: Data, made: Data, fields: Sequence[str], before: str = "", after: str = ""
) -> Iterator[str]:
    for field in fields:
        if recorded.get(field) == made.get(field):
            continue
        yield f"{before}{field}{after} changed:"
        old, new = _text(recorded.get(field)), _text(made.get(field))
        if max(len(old), len(new)) < _LONG and "\n" not in old + new:
            yield from _block("-", old)
            yield from _block("+", new)
            continue
        for line in difflib.unified_diff(old.splitlines(), new.splitlines(), lineterm="", n=2):
            if not line.startswith(("---", "+++")):
                yield f"  {line}"


def _text(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, str):
        return value
    short = to_compact_json(value)
    return short if len(short) < _LONG else json.dumps(value, indent=2, ensure_ascii=False)


def _message(message: Data) -> str:
    calls = [
        f"{call.get('name')}({to_compact_json(call.get('args'))})"
        for call in message.get("tool_calls", ())
    ]
    return "\n".join([f"{message.get('role')}: {message.get('content')}", *calls])


def _block(sign: str, text: str) -> Iterator[str]:
    for line in text.splitlines() or [""]:
        yield f"  {sign} {line}"
