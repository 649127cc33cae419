"""The format of an answer that a request asks for, as the output type of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_brain.errors import BrainUseError, StateDefinitionError
from agent_brain.nets.net import Net
from agent_brain.options import RunOptions
from agent_brain.serving.session import Session
from agent_brain.serving.web.openai.errors import invalid, unsupported
from agent_brain.states.output_types import shape_of
from agent_brain.states.schema_types import type_of_schema

_TOLD = ("title", "description", "default", "required", "$defs", "strict")
"""What does not tell one schema from another: clients change it to what strict modes want."""


def format_options(session: Session, wanted: Any, param: str) -> RunOptions:
    """Return the options of a run whose answer has a format.

    An agent that always answers with data of its own type is not asked for another one.

    Args:
        session: The session that answers.
        wanted: ``response_format`` of Chat Completions, or ``text.format`` of Responses.
        param: The name of the field, for errors.

    Raises:
        ApiError: It is not a format, or the agent cannot answer in it.
    """
    if wanted is None or (isinstance(wanted, Mapping) and wanted.get("type", "text") == "text"):
        return {}
    schema, name = _schema(wanted, param)
    try:
        output_type = type_of_schema(schema, name)
        own = _own_schema(session.brain.net)
        if own is not None:
            asked = shape_of(output_type).schema
            if wanted["type"] == "json_object" or _essence(own) == _essence(asked):
                return {}
            raise unsupported(param, "the agent answers with data of a type of its own only")
        session.brain.stream("?", output_type=output_type)  # or it is refused; nothing is run
    except (StateDefinitionError, RecursionError) as error:
        raise invalid(str(error), param, "invalid_json_schema") from None
    except BrainUseError as error:
        raise unsupported(param, str(error)) from None
    return {"output_type": output_type}


def _schema(wanted: Any, param: str) -> tuple[Mapping[str, Any], str]:
    """Return the schema that a format has, and its name."""
    kind = wanted.get("type") if isinstance(wanted, Mapping) else None
    if kind == "json_object":
        return {"type": "object"}, "Answer"
    said = wanted.get("json_schema", wanted) if kind == "json_schema" else {}  # Chat nests it
    schema = said.get("schema") if isinstance(said, Mapping) else None
    if not isinstance(schema, Mapping):
        raise invalid("A format is text, json_object, or json_schema with a 'schema'", param)
    return schema, re.sub(r"\W+", "_", str(said.get("name") or "Answer"))[:64]


def _own_schema(net: Net) -> dict[str, Any] | None:
    """Return the schema of the data that a net always answers with; None if it answers in text."""
    for state in net.states.values():
        if (own := getattr(state, "output_type", None)) is not None:
            return shape_of(own).schema
    return None


def _essence(schema: Any, root: Any = None) -> Any:
    """Return what a schema says about the form of data."""
    root = schema if root is None else root
    if isinstance(schema, list):
        return [_essence(each, root) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    if isinstance(name := schema.get("$ref"), str):
        return _essence(root.get("$defs", {}).get(name.rpartition("/")[2], name), root)
    found: dict[str, Any] = {}
    for key, value in schema.items():
        if key == "properties":
            found[key] = {field: _essence(each, root) for field, each in value.items()}
        elif key not in _TOLD and value is not False:
            found[key] = _essence(value, root)
    return found
