"""Output types made of JSON Schemas, such as those that clients of a server send."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from agent_brain.states.errors import StateDefinitionError
from agent_brain.tools.schemas import Schema, read_schema

_MOST_PARTS = 5000
_MOST_LEVELS = 60


def type_of_schema(schema: Mapping[str, Any], name: str = "Answer") -> type:
    """Return a type whose values are the JSON data that fits a schema.

    It can be an ``output_type``; ``Result.output`` is then data, not an object.

    Args:
        schema: The schema, by draft 2020-12 unless it says otherwise.
        name: The name of the type, which models are shown.

    Raises:
        StateDefinitionError: It is not a schema, leads to another document, or describes itself.
    """
    return _known_type(json.dumps(schema), name)


@lru_cache(maxsize=64)
def _known_type(text: str, name: str) -> type:
    schema: dict[str, Any] = json.loads(text)
    read = read_schema(schema)
    problems = [*read.problems]
    if not problems:
        rest = {k: v for k, v in schema.items() if k not in ("$defs", "definitions", "$schema")}
        try:
            return _type(_Parts(schema).inlined(rest, _MOST_LEVELS), name, read)
        except (LookupError, TypeError, ValueError):
            problems = ["it refers to itself, is too large, or has references other than $defs"]
    raise StateDefinitionError(f"{name!r} is no schema of an answer: {'; '.join(problems)}")


def _type(schema: dict[str, Any], name: str, read: Schema) -> type:
    def check(value: Any) -> Any:
        if problems := read.errors(value, whole=""):
            raise PydanticCustomError("schema", "{problems}", {"problems": "; ".join(problems)})
        return value

    def core(cls: type, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(check, core_schema.any_schema())

    def described(cls: type, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return schema

    methods = {
        "__get_pydantic_core_schema__": classmethod(core),
        "__get_pydantic_json_schema__": classmethod(described),
    }
    return type(name, (), methods)


class _Parts:
    """Puts what references lead to in their place: pydantic knows no references but its own."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = _MOST_PARTS

    def inlined(self, part: Any, levels: int) -> Any:
        """Return a part of the schema without references.

        Raises:
            ValueError: It is too large, or has more levels.
            LookupError: A reference leads nowhere.
        """
        self._left -= 1
        if not (self._left and levels):
            raise ValueError
        if isinstance(part, list):
            return [self.inlined(each, levels - 1) for each in part]
        if not isinstance(part, dict):
            return part
        reference = part.get("$ref")
        if not isinstance(reference, str):
            return {key: self.inlined(value, levels - 1) for key, value in part.items()}
        found: Any = self._root
        for key in reference.removeprefix("#").strip("/").split("/"):
            found = found[key] if key else found
        beside = {key: value for key, value in part.items() if key != "$ref"}
        return self.inlined({**found, **beside}, levels - 1)
