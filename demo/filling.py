"""Fill any JSON Schema with plausible values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Schema = Mapping[str, Any]

_STOP = frozenset(
    "a an and are as at be by call can could did do does for from get give has have how i in into "
    "is it its make many me much my of on or please tell that the then there this to tool use was "
    "we were what when where which who will with would you your".split()
)
_FORMATS = {
    "date": "2026-01-01",
    "date-time": "2026-01-01T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "email": "ann@example.com",
    "uri": "https://example.com/",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_SPECIAL = {"enum", "const", "format"}
_RANGE = re.compile(r"(?:from |: )(-?\d+(?:\.\d+)?).*?(?:to|,) (-?\d+(?:\.\d+)?)")
_MAX_DEPTH = 4


def words(text: str) -> frozenset[str]:
    """Return the significant words of a text or an identifier, without a plural's s."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|[\W_]+", " ", text).lower()
    singular = (re.sub(r"(?<=\w\w)(?<![siu])s$", "", word) for word in spaced.split())
    return frozenset(singular) - _STOP


def resolve(schema: Any, root: Schema) -> Schema:
    """Return ``schema`` with references followed and the first alternative that is not null."""
    named = {**root.get("definitions", {}), **root.get("$defs", {})}
    for _ in range(9):  # a reference may lead to itself
        if not isinstance(schema, Mapping):
            return {}
        choices = [*schema.get("anyOf", ()), *schema.get("oneOf", ()), *schema.get("allOf", ())]
        if "$ref" in schema:
            schema = named.get(str(schema["$ref"]).rpartition("/")[2])
        elif choices:
            schema = next((each for each in choices if each != {"type": "null"}), {})
        elif isinstance(schema.get("type"), list):
            schema = {**schema, "type": next((k for k in schema["type"] if k != "null"), "null")}
    return schema if isinstance(schema, Mapping) else {}


@dataclass(frozen=True, slots=True)
class Filler:
    """Fills the parts of one schema with what is known."""

    root: Schema  # the whole schema
    question: str
    parts: Sequence[str]  # of the question, for lists of text
    answer: str
    number: float  # in the answer
    names: Sequence[str]  # that a prompt lists to choose from

    def fill(self, schema: Schema, name: str = "", depth: int = 0) -> Any:
        """Return a value for ``schema``, the part of the whole schema that is called ``name``."""
        hint = f"{name} {schema.get('description', '')}"
        if depth > _MAX_DEPTH and {"type": "null"} in schema.get("anyOf", ()):
            return None
        schema = resolve(schema, self.root)
        choices = [schema["const"]] if "const" in schema else schema.get("enum")
        if choices:
            return self._best(choices)
        match schema.get("type", "object" if "properties" in schema else "string"):
            case "object":
                parts = schema.get("properties", {})
                keys = schema.get("required", () if depth else parts)
                keys = keys if depth < 2 * _MAX_DEPTH else ()
                return {key: self.fill(parts.get(key, {}), key, depth + 1) for key in keys}
            case "array" if "prefixItems" in schema:
                return [self.fill(each, name, depth + 1) for each in schema["prefixItems"]]
            case "array":
                return self._array(schema, name, depth)
            case "boolean":
                return True
            case "integer" | "number" as kind:
                return self._number(schema, hint, whole=kind == "integer")
            case "string":
                return self._string(schema, hint)
        return None

    def _array(self, schema: Schema, name: str, depth: int) -> list[Any]:
        items = resolve(schema.get("items", {}), self.root)
        least, most = schema.get("minItems", depth < _MAX_DEPTH), schema.get("maxItems", 100)
        text = items.get("type", "string") == "string" and not _SPECIAL & set(items)
        filled: list[Any] = list(self.parts)[:most] if text else []
        while len(filled) < min(least, most):
            filled.append(self.fill(items, name, depth + 1))
        return filled

    def _number(self, schema: Schema, hint: str, *, whole: bool) -> float:
        stated = _RANGE.search(hint)
        low, high = (float(stated[1]), float(stated[2])) if stated else (-1e308, 1e308)
        step = 1 if whole else 0.5
        low = max(schema.get("minimum", low), schema.get("exclusiveMinimum", -1e308) + step)
        high = min(schema.get("maximum", high), schema.get("exclusiveMaximum", 1e308) - step)
        value = max(low, min(high, self.number))
        return int(value) if whole else value

    def _string(self, schema: Schema, hint: str) -> str:
        text = _FORMATS.get(schema.get("format", ""), self.answer)
        if words(hint) & {"question", "goal", "task", "query"}:
            text = self.question
        elif "name" in words(hint) and self.names:
            text = str(self._best(self.names))
        return text.ljust(schema.get("minLength", 0), ".")[: schema.get("maxLength")]

    def _best(self, choices: Sequence[Any]) -> Any:
        """Return the choice that shares most words with the question, otherwise the first."""
        asked = words(self.question)
        return max(choices, key=lambda choice: len(words(str(choice)) & asked))
