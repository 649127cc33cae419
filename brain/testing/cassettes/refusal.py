"""How a request differs from the recorded one, for a person to read."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator
from typing import Any

from agent_brain.tools.text import to_compact_json

_LONG = 100
"""Characters from which a changed text is shown as a diff of its lines."""


def explain_request(recorded: dict[str, Any], made: dict[str, Any]) -> str:
    """Everything that differs, indented, a block each; empty if nothing does."""
    return "\n".join(f"  {line}" for line in _differences(recorded, made))


def _differences(recorded: dict[str, Any], made: dict[str, Any]) -> Iterator[str]:
    if recorded.get("model") != made.get("model"):
        yield from _changed("model", recorded.get("model"), made.get("model"))
    yield from _messages(recorded.get("messages") or [], made.get("messages") or [])
    yield from _tools(recorded.get("tools") or [], made.get("tools") or [])
    schemas = (recorded.get("output_schema"), made.get("output_schema"))
    if schemas[0] != schemas[1]:
        yield from _changed("output_schema", *schemas)


def _messages(recorded: list[Any], made: list[Any]) -> Iterator[str]:
    """What was changed, left out and added, matching up what is still the same."""
    old, new = [*map(to_compact_json, recorded)], [*map(to_compact_json, made)]
    for tag, i, j, k, m in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag == "equal":
            continue
        both = min(j - i, m - k)
        for n in range(both):
            yield from _message(k + n, recorded[i + n], made[k + n])
        for n in range(i + both, j):
            yield f"messages[{n}] is missing now:"
            yield from _block("-", _shown(recorded[n]))
        for n in range(k + both, m):
            yield f"messages[{n}] is new:"
            yield from _block("+", _shown(made[n]))


def _message(index: int, recorded: dict[str, Any], made: dict[str, Any]) -> Iterator[str]:
    role = made.get("role")
    for field in dict.fromkeys([*recorded, *made]):
        if recorded.get(field) != made.get(field):
            label = f"messages[{index}].{field}"
            if field != "role":
                label += f" ({role})"
            yield from _changed(label, recorded.get(field), made.get(field))


def _tools(recorded: list[Any], made: list[Any]) -> Iterator[str]:
    old = {tool.get("name"): tool for tool in recorded}
    new = {tool.get("name"): tool for tool in made}
    for name in old.keys() - new.keys():
        yield f"tool {name!r} is not offered any more"
    for name in new.keys() - old.keys():
        yield f"tool {name!r} is offered now, and was not when this was recorded"
    for name in [name for name in old if name in new and old[name] != new[name]]:
        for field in ("description", "input_schema"):
            if old[name].get(field) != new[name].get(field):
                yield from _changed(
                    f"tool {name!r}, {field}", old[name].get(field), new[name].get(field)
                )
    if old == new and recorded != made:
        yield f"the tools are in another order: {', '.join(old)} -> {', '.join(new)}"


def _changed(label: str, recorded: Any, made: Any) -> Iterator[str]:
    before, after = _text(recorded), _text(made)
    yield f"{label} changed:"
    if len(before) < _LONG and len(after) < _LONG and "\n" not in before + after:
        yield from _block("-", before)
        yield from _block("+", after)
        return
    diff = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=2)
    for line in diff:
        if not line.startswith(("---", "+++")):
            yield f"  {line}"


def _text(value: Any) -> str:
    if value is None:
        return "(none)"
    if isinstance(value, str):
        return value
    short = to_compact_json(value)
    return short if len(short) < _LONG else json.dumps(value, indent=2, ensure_ascii=False)


def _shown(message: dict[str, Any]) -> str:
    words = f"{message.get('role')}: {message.get('content')}"
    calls = message.get("tool_calls", ())
    written = [f"{call.get('name')}({to_compact_json(call.get('args'))})" for call in calls]
    return "\n".join([words, *written])


def _block(sign: str, text: str) -> Iterator[str]:
    for line in text.splitlines() or [""]:
        yield f"  {sign} {line}"
