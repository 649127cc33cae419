"""A tool as the demo model sees it: its name, its description and its JSON Schema, nothing more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Param:
    """One parameter of a tool.

    Attributes:
        name: Its name.
        type: JSON type, ``"string"`` if the schema tells none.
        required: It must be given.
        enum: The values allowed, if they are listed.
        items: JSON type of the items of an array.
        format: JSON Schema format, such as ``"date"``.
    """

    name: str
    type: str = "string"
    required: bool = True
    enum: tuple[Any, ...] = ()
    items: str = ""
    format: str = ""

    @property
    def words(self) -> list[str]:
        """The words of the name, as stems."""
        return stems(self.name)


@dataclass(frozen=True, slots=True)
class Card:
    """A tool: what it is called, what it says of itself, what it takes."""

    name: str
    description: str
    params: tuple[Param, ...]


def stems(text: str) -> list[str]:
    """The words of ``text`` or of an identifier, lower-case, plural endings taken off."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[a-zA-Z])(?=\d)|[^a-zA-Z0-9]+", " ", text)
    return [_stem(word) for word in spaced.lower().split()]


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def read_card(name: str, description: str, schema: Mapping[str, Any]) -> Card:
    """The card of a tool; what is odd in a schema is read as a string."""
    required = schema.get("required") or ()
    definitions = schema.get("$defs") or {}
    properties = schema.get("properties") or {}
    return Card(
        name,
        description or "",
        tuple(
            _param(key, _resolved(part, definitions), definitions, required=key in required)
            for key, part in properties.items()
        ),
    )


def _param(
    name: str, part: Mapping[str, Any], definitions: Mapping[str, Any], *, required: bool
) -> Param:
    kind = part.get("type", "string")
    if isinstance(kind, list):
        kind = next((one for one in kind if one != "null"), "string")
    enum = part.get("enum") or ([part["const"]] if "const" in part else [])
    items = _resolved(part.get("items") or {}, definitions).get("type", "")
    return Param(name, str(kind), required, tuple(enum), str(items), str(part.get("format", "")))


def _resolved(part: Any, definitions: Mapping[str, Any], depth: int = 0) -> Mapping[str, Any]:
    """``part`` with references followed and optional parts reduced to what they may be."""
    if not isinstance(part, Mapping) or depth > 8:
        return {}
    if "$ref" in part:
        key = str(part["$ref"]).rsplit("/", 1)[-1]
        return _resolved(definitions.get(key, {}), definitions, depth + 1)
    for union in ("anyOf", "oneOf", "allOf"):
        for choice in part.get(union) or ():
            if isinstance(choice, Mapping) and choice.get("type") != "null":
                return _resolved(choice, definitions, depth + 1)
    return part
