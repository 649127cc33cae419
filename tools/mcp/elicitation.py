"""Questions as forms of MCP (elicitation), and forms of MCP as questions. Needs the extra ``mcp``.

A form of MCP is flat: an object whose fields are texts, numbers, booleans and choices.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult
from pydantic import JsonValue

from agent_brain.tools.answers import choices_of, fields_of, plain_schema, read_answer, words_for

ANSWER = "answer"
"""The field of a form for an answer that is not a form itself."""

_KEPT = (
    *("type", "title", "description", "enum", "default"),
    *("minLength", "maxLength", "minimum", "maximum"),
)
_FORMATS = ("date", "date-time", "email", "uri")


def as_question(params: ElicitRequestParams) -> tuple[str, dict[str, Any]]:
    """Return what a server asks, and the JSON Schema of the answer, for ``ToolContext.ask``.

    To a form without fields, and to an address, the answer is yes or no. Null declines a form.
    """
    if not isinstance(params, ElicitRequestFormParams):
        return f"{params.message}\n\nOpen {params.url} first.", {"type": "boolean"}
    form = params.requested_schema
    if not form.get("properties"):
        return params.message, {"type": "boolean"}
    return params.message, {"anyOf": [form, {"type": "null"}]}


def as_result(params: ElicitRequestParams, answer: Any) -> ElicitResult:
    """Return what the server is told of an answer to :func:`as_question`."""
    if answer is None or answer is False:
        return ElicitResult(action="decline")
    if not isinstance(params, ElicitRequestFormParams):
        return ElicitResult(action="accept")
    return ElicitResult(action="accept", content={} if answer is True else answer)


def as_form(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the ``requestedSchema`` that asks for an answer.

    One that no flat form can hold is asked for as JSON, in a text.

    Args:
        schema: The JSON Schema of the answer; None for free text.
    """
    fields = _flat_fields(schema)
    if fields is None:
        fields = {ANSWER: _single_field(schema)}
        required = [ANSWER]
    else:
        required = [field.name for field in fields_of(schema or {}) or () if field.required]
    return {"type": "object", "properties": fields, "required": required}


def read_form(content: Mapping[str, Any], schema: Mapping[str, Any] | None) -> JsonValue:
    """Return the answer in the ``content`` of a form that :func:`as_form` made.

    Raises:
        ValueError: What is wrong with it.
    """
    if schema is None and not str(content.get(ANSWER, "")).strip():
        raise ValueError("it is empty")
    if _flat_fields(schema) is None:
        return read_answer(schema, content.get(ANSWER, ""))
    found = {}
    for field in fields_of(schema or {}) or ():
        value = content.get(field.name)
        if value is not None and (field.required or value != ""):
            found[field.name] = read_answer(field.schema, value)
    return read_answer(schema, found)


def _flat_fields(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the fields of a form; None if the answer is not a form, or not a flat one."""
    fields = fields_of(schema or {})
    found = {field.name: _primitive(field.schema) for field in fields or ()}
    return found if fields is not None and all(found.values()) else None


def _single_field(schema: Mapping[str, Any] | None) -> dict[str, Any]:
    if schema is None:
        return {"type": "string", "title": "Answer", "minLength": 1}
    return _primitive(schema) or {
        "type": "string",
        "title": "Answer",
        "description": words_for(schema),
    }


def _primitive(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the schema of a field of a form of MCP; None if there is no such field."""
    plain, _ = plain_schema(schema)
    if choices := choices_of(schema):  # a choice is a text; ours are read from their names
        preset = next((name for value, name in choices if value == plain.get("default")), None)
        plain |= {"type": "string", "enum": [name for _, name in choices], "default": preset}
    elif plain.get("type") not in ("string", "number", "integer", "boolean"):
        return None
    field = {key: plain[key] for key in _KEPT if plain.get(key) is not None}
    if plain.get("format") in _FORMATS:
        field["format"] = plain["format"]
    return field
