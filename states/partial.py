"""The object in the text of a model, as far as it has come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from pydantic_core import from_json

from agent_brain.tools.schemas import resolved

_STEP = 16  # it is read again when a sixteenth of it is new: 17 times its length is read in all
_OF_NUMBERS = "0123456789+-.eE"
_NUMBERS = ("number", "integer")
_MASK = "**********"
_EXACT = frozenset(("const", "enum", "format", "pattern"))


Secrets: TypeAlias = Literal["none", "marked", "unmarked"]


class PartialReader:
    """Reads an object out of a text that grows.

    A text in it may be cut off, where any text fits; everything else appears when it is whole. What
    cannot be read, such as JSON that needs repair, changes nothing.

    Args:
        schema: The JSON Schema of the object.
        wrapped: The value that is wanted is the field ``value`` of the object.
        secrets: Whether there are secrets in it, which are read as asterisks, and whether the
            schema marks them; if it does not, nothing is read.

    Attributes:
        value: What was read last, as JSON data; None if there is nothing yet.
    """

    def __init__(
        self, schema: Mapping[str, Any], *, wrapped: bool, secrets: Secrets = "none"
    ) -> None:
        self.value: Any = None
        self._secrets = secrets
        self._schema = schema
        self._wrapped = wrapped
        self._pieces: list[str] = []
        self._length = self._read_at = 0

    def add(self, piece: str) -> bool:
        """Take the next piece of the text; return whether the value has changed."""
        if self._secrets == "unmarked":
            return False
        self._pieces.append(piece)
        self._length += len(piece)
        if self._length < self._read_at:
            return False
        self._read_at = self._length + self._length // _STEP
        text = "".join(self._pieces)
        self._pieces = [text]
        found = self._read(text)
        if not found or found == self.value:
            return False
        self.value = found
        return True

    def _read(self, text: str) -> Any:
        start = text.find("{")
        if start < 0:
            return None
        text = text[start:].rstrip(_OF_NUMBERS)  # more of the number may come
        try:
            data = from_json(text, allow_inf_nan=False, allow_partial="trailing-strings")
            if not _may_be_cut(data, self._schema, self._schema.get("$defs", {})):
                data = from_json(text, allow_inf_nan=False, allow_partial=True)
        except (ValueError, TypeError, KeyError):  # not JSON; half a character; an unusual schema
            return None
        if self._secrets == "marked":
            data = _masked(data, self._schema, self._schema.get("$defs", {}))
        return data.get("value") if self._wrapped else data


def _masked(data: Any, schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return ``data`` with asterisks in place of secrets, as pydantic writes them."""
    if not isinstance(schema, Mapping):
        return data
    schema = resolved(schema, definitions)
    for kind in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        data = _masked(data, kind, definitions)
    if isinstance(data, str) and schema.get("format") == "password" and schema.get("writeOnly"):
        return data and _MASK
    if isinstance(data, dict):
        fields, others = schema.get("properties", {}), schema.get("additionalProperties")
        return {key: _masked(v, fields.get(key, others), definitions) for key, v in data.items()}
    if isinstance(data, list):
        first, items = schema.get("prefixItems", ()), schema.get("items")
        kinds = (first[i] if i < len(first) else items for i in range(len(data)))
        return [_masked(value, kind, definitions) for value, kind in zip(data, kinds, strict=True)]
    return data


def _may_be_cut(data: Any, schema: Any, definitions: Mapping[str, Any]) -> bool:
    """Return whether the end of ``data`` is something that may be shown although it is cut off."""
    if not isinstance(schema, Mapping):
        return schema is not False
    schema = resolved(schema, definitions)
    for union in ("anyOf", "oneOf"):
        if union in schema:
            kinds = [each for each in schema[union] if isinstance(each, Mapping)]
            if isinstance(data, str) and any(kind.get("type") in _NUMBERS for kind in kinds):
                return False  # a number may be written as a text
            return any(_may_be_cut(data, kind, definitions) for kind in kinds)
    if isinstance(data, str):
        return schema.get("type", "string") == "string" and not _EXACT & schema.keys()
    if isinstance(data, dict) and data and schema.get("type", "object") == "object":
        last = next(reversed(data))
        fields = schema.get("properties", {})
        others = schema.get("additionalProperties", not fields)  # of fields that the type has not
        return _may_be_cut(data[last], fields.get(last, others), definitions)
    if isinstance(data, list) and data and schema.get("type", "array") == "array":
        first = schema.get("prefixItems", ())
        items = first[len(data) - 1] if len(data) <= len(first) else schema.get("items", True)
        return _may_be_cut(data[-1], items, definitions)
    return not (data and isinstance(data, dict | list))  # of another type than the schema says
