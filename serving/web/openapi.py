"""The OpenAPI description of a server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic import TypeAdapter

from agent_brain.memories.message import Message
from agent_brain.serving.web import routes, steps, users
from agent_brain.serving.web.requests import Endpoint
from agent_brain.serving.web.responses import NDJSON, SSE
from agent_brain.serving.web.settings import WebSettings
from agent_brain.states.events import KINDS, AgentEvent

REF = "#/components/schemas/{model}"
Json = dict[str, Any]
ENDPOINTS = [*routes.ENDPOINTS, *steps.ENDPOINTS, *users.ENDPOINTS]
CONTENT: Json = {
    "application/json": {"schema": {"type": "object"}},
    "image/svg+xml": {},
    NDJSON: {"schema": {"$ref": REF.format(model="NumberedEvent")}},
    SSE: {"schema": {"type": "string"}},
}


def describe_api(settings: WebSettings) -> Json:
    """Return the description, as JSON (OpenAPI 3.1)."""
    description: Json = {
        "openapi": "3.1.0",
        "info": {"title": settings.name, "version": version("agent-brain")},
        "paths": _paths(),
        "components": {"schemas": _schemas()},
    }
    if settings.needs_token:
        description["components"]["securitySchemes"] = {
            "token": {"type": "http", "scheme": "bearer"}
        }
        description["security"] = [{"token": []}]
    return description


def _paths() -> Json:
    paths: Json = {}
    for endpoint in ENDPOINTS:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return paths


def _operation(endpoint: Endpoint) -> Json:
    summary = (endpoint.handler.__doc__ or "").strip().partition("\n")[0]
    operation: Json = {
        "operationId": endpoint.handler.__name__,
        "summary": summary,
        "responses": {
            str(endpoint.status): _success(endpoint),
            "default": {
                "description": "What is wrong.",
                "content": {"application/json": {"schema": {"$ref": REF.format(model="Error")}}},
            },
        },
    }
    if parameters := [*_parameters(endpoint)]:
        operation["parameters"] = parameters
    if body := endpoint.models.get("body"):
        reference = {"$ref": REF.format(model=body.__name__)}
        operation["requestBody"] = {"content": {"application/json": {"schema": reference}}}
    return operation


def _parameters(endpoint: Endpoint) -> Iterator[Json]:
    for name in re.findall(r"{(\w+)}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    for name in endpoint.headers:
        yield {"name": name, "in": "header", "schema": {"type": "string"}}
    if query := endpoint.models.get("query"):
        model = query.model_json_schema()
        for name, schema in model["properties"].items():
            required = name in model.get("required", ())
            yield {"name": name, "in": "query", "required": required, "schema": schema}


def _success(endpoint: Endpoint) -> Json:
    if endpoint.status == 204:
        return {"description": "Done."}
    events = "The events as they come; the data of a server-sent event is an Event."
    description = events if SSE in endpoint.media else "Done."
    return {"description": description, "content": {kind: CONTENT[kind] for kind in endpoint.media}}


_OTHER_EVENT: Json = {
    "title": "OtherEvent",
    "description": "An event of the program's own class, with its fields.",
    "type": "object",
    "properties": {"kind": {"type": "string", "not": {"enum": sorted(KINDS)}}},
    "required": ["kind"],
}


@cache
def _schemas() -> Json:
    schemas: Json = {}

    def add(name: str, schema: Json) -> None:
        schemas.update(schema.pop("$defs", {}))
        schemas[name] = schema

    add("Event", TypeAdapter(AgentEvent).json_schema(ref_template=REF, mode="serialization"))
    schemas["Event"]["anyOf"].append(_OTHER_EVENT)
    add("Message", Message.model_json_schema(ref_template=REF, mode="serialization"))
    for endpoint in ENDPOINTS:
        if body := endpoint.models.get("body"):
            add(body.__name__, body.model_json_schema(ref_template=REF))
    add(
        "NumberedEvent",
        {
            "type": "object",
            "properties": {"id": {"type": "string"}, "event": {"$ref": REF.format(model="Event")}},
            "required": ["id", "event"],
        },
    )
    text: Json = {"type": "string"}
    texts = {"type": text, "message": text, "request_id": text}
    error = {"type": "object", "properties": texts, "required": ["type", "message"]}
    add("Error", {"type": "object", "properties": {"error": error}, "required": ["error"]})
    return schemas
