"""The schema of an output type as ``response_format``, by the rules of the strict mode.

In strict mode a provider guarantees the form, and refuses schemas that break its rules
(https://platform.openai.com/docs/guides/structured-outputs#supported-schemas). A schema is adapted
where that loses nothing: each field is required, with its default and the constraints that the mode
does not know in its description. Otherwise it is sent without strict: for dictionaries, tuples and
values of any type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from agent_brain.tools.schemas import resolved

_KEPT = frozenset(
    """type enum description pattern format multipleOf minimum maximum exclusiveMinimum
    exclusiveMaximum minItems maxItems""".split()
)
_TOLD = ("default", "minLength", "maxLength", "uniqueItems", "format", "pattern")
"""Told in the description if it is left out."""
_FORMATS = frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split())
_NOT_STRICT = frozenset(
    """prefixItems patternProperties propertyNames minProperties maxProperties contains not if
    dependentRequired dependentSchemas unevaluatedProperties""".split()
)
_MOST_PROPERTIES, _MOST_VALUES, _MOST_LEVELS = 5000, 1000, 10

Schema = dict[str, Any]


class _NotStrictError(Exception):
    """The strict mode cannot express the schema."""


def response_format(output_type: type[BaseModel]) -> dict[str, Any]:
    """Return the ``response_format`` of a request for data of a type."""
    schema = output_type.model_json_schema()
    try:
        sent, strict = _Strict(schema.get("$defs", {})).root(schema), True
    except _NotStrictError:
        sent, strict = schema, False
    name = re.sub(r"[^A-Za-z0-9_-]+", "_", output_type.__name__)[:64]
    described = {"name": name, "schema": sent, "strict": strict}
    return {"type": "json_schema", "json_schema": described}


class _Strict:
    """Adapts one schema.

    Args:
        definitions: Its ``$defs``.
    """

    def __init__(self, definitions: Mapping[str, Schema]) -> None:
        self._definitions = definitions
        self._properties = self._values = 0

    def root(self, schema: Schema) -> Schema:
        """Return the adapted schema.

        Raises:
            _NotStrictError: It cannot be adapted.
        """
        schema = self._resolved(schema)
        made = self._node({k: v for k, v in schema.items() if k != "$defs"}, 0)
        if made.get("type") != "object":
            raise _NotStrictError
        definitions = {name: self._node(each, 1) for name, each in self._definitions.items()}
        return {**made, "$defs": definitions} if definitions else made

    def _resolved(self, node: Schema) -> Schema:
        try:
            return resolved(node, self._definitions)
        except KeyError:
            raise _NotStrictError from None

    def _node(self, node: Schema, level: int) -> Schema:
        if level > _MOST_LEVELS or _NOT_STRICT & node.keys():
            raise _NotStrictError
        if "$ref" in node:
            if node.keys() == {"$ref"}:
                return node
            return self._node(self._resolved(node), level)  # nothing may stand beside a reference
        if len(node.get("allOf", ())) == 1:
            [only] = node["allOf"]
            return self._node({**only, **{k: v for k, v in node.items() if k != "allOf"}}, level)
        if "const" in node:
            node = {**node, "enum": [node["const"]]}
        made = {key: value for key, value in node.items() if key in _KEPT and _is_known(key, value)}
        if told := _told(node, made):
            made["description"] = f"{node.get('description', '')} ({told})".strip()
        self._add_parts(node, made, level)
        return made

    def _add_parts(self, node: Schema, made: Schema, level: int) -> None:
        """Add the schemas inside ``node`` to the one made of it."""
        choices = node.get("anyOf") or node.get("oneOf")
        if choices:
            made["anyOf"] = [self._node(choice, level) for choice in choices]
        elif node.get("type") == "object":
            self._add_properties(node, made, level)
        elif node.get("type") == "array":
            if not node.get("items"):
                raise _NotStrictError
            made["items"] = self._node(node["items"], level + 1)
        elif "type" not in node and "enum" not in node:
            raise _NotStrictError  # any value, or what this module does not know
        self._values += len(node.get("enum", ()))
        if self._values > _MOST_VALUES:
            raise _NotStrictError

    def _add_properties(self, node: Schema, made: Schema, level: int) -> None:
        properties = node.get("properties")
        if properties is None or node.get("additionalProperties"):
            raise _NotStrictError
        self._properties += len(properties)
        if self._properties > _MOST_PROPERTIES:
            raise _NotStrictError
        made["properties"] = {k: self._node(each, level + 1) for k, each in properties.items()}
        made["required"] = list(properties)
        made["additionalProperties"] = False


def _is_known(key: str, value: Any) -> bool:
    """Return whether the strict mode knows a keyword with this value."""
    if key == "format":
        return value in _FORMATS
    return key != "pattern" or "(?" not in value


def _told(node: Schema, made: Schema) -> str:
    """Return the default and the constraints of ``node`` that ``made`` does not have."""
    told = [f"{key}: {json.dumps(node[key])}" for key in _TOLD if key in node and key not in made]
    return ", ".join(each for each in told if each != "default: null")
