"""Plausible values for any JSON Schema, so that every net can be watched without a real model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_brain.demo.reading import words

Schema = Mapping[str, Any]

_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "ann@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_RANGE = re.compile(r"(?:from |: )(-?\d+(?:\.\d+)?).*?(?:to|,) (-?\d+(?:\.\d+)?)")
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class Known:
    """What values are made of: the question and its parts, the answer in words and as a number.

    ``names`` are those that a prompt lists to choose from.
    """

    question: str
    parts: Sequence[str]
    answer: str
    number: float
    names: Sequence[str]


def resolve(schema: Any, root: Schema) -> Schema:
    """``schema`` with references followed and the first choice taken that is not null."""
    for _ in range(9):  # of a reference to itself, and no more
        if not isinstance(schema, Mapping):
            return {}
        choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
        if "$ref" in schema:
            at: Any = root
            for key in str(schema["$ref"]).split("/")[1:]:
                at = at.get(key) if isinstance(at, Mapping) else None
            schema = at
        elif choices:
            schema = next((each for each in choices if each != {"type": "null"}), {})
        elif isinstance(schema.get("type"), list):
            schema = {**schema, "type": next((k for k in schema["type"] if k != "null"), "null")}
    return schema if isinstance(schema, Mapping) else {}


def fill(schema: Schema, root: Schema, known: Known, name: str = "", depth: int = 0) -> Any:
    """A value that fits ``schema``, a part of ``root`` that is called ``name``."""
    hint = f"{name} {schema.get('description', '')}"
    if depth > _DEEPEST and {"type": "null"} in schema.get("anyOf", ()):
        return None
    schema = resolve(schema, root)
    choices = [schema["const"]] if "const" in schema else schema.get("enum")
    if choices:
        return _best(choices, known)
    match schema.get("type", "object" if "properties" in schema else "string"):
        case "object":
            parts = schema.get("properties", {})
            wanted = schema.get("required", () if depth else parts) if depth < 2 * _DEEPEST else ()
            return {key: fill(parts.get(key, {}), root, known, key, depth + 1) for key in wanted}
        case "array" if "prefixItems" in schema:
            return [fill(each, root, known, name, depth + 1) for each in schema["prefixItems"]]
        case "array":
            return _list(schema, root, known, name, depth)
        case "boolean":
            return True
        case "integer" | "number" as kind:
            return _number(schema, hint, known, whole=kind == "integer")
        case "string":
            return _string(schema, hint, known)
    return None


def _list(schema: Schema, root: Schema, known: Known, name: str, depth: int) -> list[Any]:
    items = resolve(schema.get("items", {}), root)
    least, most = schema.get("minItems", depth < _DEEPEST), schema.get("maxItems", 100)
    plain = items.get("type", "string") == "string" and not {"enum", "const", "format"} & set(items)
    listed = list(known.parts)[:most] if plain else []
    more = range(len(listed), min(least, most))
    return [*listed, *(fill(items, root, known, name, depth + 1) for _ in more)]


def _number(schema: Schema, hint: str, known: Known, *, whole: bool) -> float:
    told = _RANGE.search(hint)
    low, high = (float(told[1]), float(told[2])) if told else (float("-inf"), float("inf"))
    step = 1 if whole else 0.5
    low = max(schema.get("minimum", low), schema.get("exclusiveMinimum", float("-inf")) + step)
    high = min(schema.get("maximum", high), schema.get("exclusiveMaximum", float("inf")) - step)
    value = max(low, min(high, known.number))
    return int(value) if whole else value


def _string(schema: Schema, hint: str, known: Known) -> str:
    text = _FORMATS.get(schema.get("format", ""), known.answer)
    if words(hint) & {"question", "goal", "task", "query"}:
        text = known.question
    elif "name" in words(hint) and known.names:
        text = str(_best(known.names, known))
    return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]


def _best(choices: Sequence[Any], known: Known) -> Any:
    """The choice with most words of the question, else the first."""
    asked = words(known.question)
    return max(choices, key=lambda choice: len(words(str(choice)) & asked))
