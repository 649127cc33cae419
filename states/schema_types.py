"""Output types made of JSON Schemas, such as those that clients of a server send."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Annotated, Any

from pydantic import AfterValidator, GetCoreSchemaHandler, WithJsonSchema
from pydantic_core import CoreSchema, PydanticCustomError

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
            return _type(_inlined(schema, rest, _MOST_LEVELS, iter(range(_MOST_PARTS))), name, read)
        except (LookupError, TypeError, ValueError):
            problems = ["it refers to itself, is too large, or has references other than $defs"]
    raise StateDefinitionError(f"{name!r} is no schema of an answer: {'; '.join(problems)}")


def _type(schema: dict[str, Any], name: str, read: Schema) -> type:
    def check(value: Any) -> Any:
        if problems := read.errors(value, whole=""):
            raise PydanticCustomError("schema", "{problems}", {"problems": "; ".join(problems)})
        return value

    def core(cls: type, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        described = Annotated[Any, AfterValidator(check), WithJsonSchema(schema)]
        return handler.generate_schema(described)

    return type(name, (), {"__get_pydantic_core_schema__": classmethod(core)})


def _inlined(root: Mapping[str, Any], part: Any, levels: int, left: Iterator[int]) -> Any:
    """Return a part of the schema without references: pydantic knows none but its own.

    Raises:
        ValueError: It has more levels, or more parts than are left.
        LookupError: A reference leads nowhere.
    """
    if next(left, None) is None or not levels:
        raise ValueError
    inline = partial(_inlined, root, levels=levels - 1, left=left)
    if isinstance(part, list):
        return [*map(inline, part)]
    if not isinstance(part, dict):
        return part
    reference = part.get("$ref")
    if not isinstance(reference, str):
        return {key: inline(value) for key, value in part.items()}
    found: Any = root
    for key in reference.removeprefix("#").strip("/").split("/"):
        found = found[key] if key else found
    return inline({**found, **{key: value for key, value in part.items() if key != "$ref"}})
