"""Mistakes: whether a response has one, and what it is. Decided by what is shown, so repeatable."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent_brain.experiments.rule_based.moves import UNKNOWN, Answer, Call, Data, Move
from agent_brain.experiments.rule_based.sight import Sight
from agent_brain.tools.action import Action

_NUMBER = re.compile(r"-?\d+")
_SAID_AT = re.compile(r"^- \[\d{4}-\d\d-\d\d \d\d:\d\d\] ", re.MULTILINE)  # of recalled messages


def draw(sight: Sight, seed: int) -> float:
    """Return a number from 0 to 1 that depends on the seed and on all that is shown but the time.

    Memories that recall show when a message was said: a case that is run later, such as after a
    restart, would slip elsewhere.
    """
    shown = [
        [
            m.role.value,
            _SAID_AT.sub("- ", m.content),
            [[call.name, call.args] for call in m.tool_calls],
        ]
        for m in sight.messages
    ]
    asked = [tool.name for tool in sight.tools], getattr(sight.output_type, "__name__", "")
    text = json.dumps([seed, shown, asked], sort_keys=True, default=str)
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) / 2**64


def mistaken(move: Move, output_type: Any) -> Move:
    """Return the move with a mistake in it, of the same form."""
    match move:
        case Call(action):
            return Call(Action(name=action.name, args=_wrong_argument(action.args)))
        case Answer(text):
            return Answer(_wrong_text(text), known=False)
        case Data(value, others):
            return Data(others[0] if others else _wrong_data(value, output_type))


def _wrong_argument(args: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with another last one."""
    if not args:
        return {}
    name = list(args)[-1]
    value = args[name]
    misspelt = isinstance(value, str) and not _NUMBER.search(value)
    return {**args, name: value[:-1] if misspelt else _wrong_value(value)}


def _wrong_value(value: Any) -> Any:
    match value:
        case bool():
            return not value
        case float() if 0 <= value <= 1:
            return 1 - value
        case int() | float():
            return value + 1
        case str():
            return _wrong_text(value)
        case [*_, _]:
            return [*value[:-1], _wrong_value(value[-1])]
    return value


def _wrong_text(text: str) -> str:
    """Return a text with another last number, or one that says nothing."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return f"{UNKNOWN}." if UNKNOWN not in text else "It is as you say."
    last = numbers[-1]
    return f"{text[: last.start()]}{int(last[0]) + 1}{text[last.end() :]}"


def _wrong_data(value: Any, output_type: Any) -> Any:
    """Return data that still fits its type: every value of the first kind that can be wrong."""
    if not isinstance(value, dict):
        return _fitting([_wrong_value(value)], output_type, value)
    kinds: Sequence[tuple[type, ...]] = ((bool,), (int, float), (list,), (str,))
    found = []
    for types in kinds:
        wrong = {k: _wrong_value(v) if type(v) in types else v for k, v in value.items()}
        if wrong != value:
            found.append(wrong | _scores(wrong, value))
    return _fitting(found, output_type, value)


def _scores(wrong: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, float]:
    """Return the score of a judgement that has changed."""
    changed = wrong.get("passed") != right.get("passed")
    return {"score": float(wrong["passed"])} if changed and "score" in right else {}


def _fitting(found: Sequence[Any], output_type: Any, otherwise: Any) -> Any:
    adapter = TypeAdapter(output_type)
    for value in found:
        try:
            adapter.validate_python(value)
        except ValidationError:
            continue
        return value
    return otherwise
