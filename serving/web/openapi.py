"""The OpenAPI description of a server."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, TypeAdapter
from starlette.routing import Route

from agent_brain.memories.message import Message
from agent_brain.serving.web import routes as session_routes
from agent_brain.serving.web import steps, users
from agent_brain.serving.web.responses import NDJSON, SSE
from agent_brain.serving.web.settings import WebSettings
from agent_brain.states.events import KINDS, AgentEvent

REF = "#/components/schemas/{model}"
Json = dict[str, Any]
_BODIES: dict[Callable[..., Any], type[BaseModel]] = {
    session_routes.create_session: session_routes.NewSession,
    session_routes.rename_session: session_routes.RenameSession,
    session_routes.start_run: session_routes.StartRun,
    session_routes.resume_run: session_routes.ResumeRun,
    session_routes.send_message: session_routes.SendMessage,
    steps.fork_session: steps.ForkSession,
    steps.branch_session: steps.BranchSession,
    users.correct_fact: users.CorrectFact,
    users.forget_user: users.Forget,
}
_STREAMS = (session_routes.start_run, session_routes.resume_run, session_routes.watch_events)
_STATUS = {
    session_routes.create_session: "201",
    session_routes.delete_session: "204",
    session_routes.stop_run: "202",
    session_routes.cancel_run: "202",
    session_routes.send_message: "202",
    steps.fork_session: "201",
    steps.branch_session: "201",
}
_NUMBER: Json = {"type": "integer", "minimum": 1}
_QUERIES: dict[Callable[..., Any], Json] = {
    session_routes.watch_events: {"after": {"type": "string"}},
    session_routes.list_sessions: {
        "limit": {**_NUMBER, "maximum": 200, "default": session_routes.LIMIT},
        "after": {"type": "string"},
        "search": {"type": "string"},
    },
    steps.list_steps: {
        "before": _NUMBER,
        "after": _NUMBER,
        "limit": {**_NUMBER, "maximum": 200, "default": steps.LIMIT},
    },
    users.read_user: {
        "limit": {**_NUMBER, "maximum": 500, "default": users.LIMIT},
        "after": {"type": "string"},
    },
    steps.compare_sessions: {"with": {"type": "string"}, "step": _NUMBER, "with_step": _NUMBER},
}
_REQUIRED = {"with"}


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
    for route in (*session_routes.routes(), *steps.routes(), *users.routes()):
        method = next(iter(sorted((route.methods or set()) - {"HEAD"}))).lower()
        paths.setdefault(route.path, {})[method] = _operation(route)
    return paths


def _operation(route: Route) -> Json:
    endpoint = route.endpoint
    summary = (endpoint.__doc__ or "").strip().partition("\n")[0]
    operation: Json = {
        "operationId": endpoint.__name__,
        "summary": summary,
        "responses": {
            _STATUS.get(endpoint, "200"): _success(endpoint),
            "default": {
                "description": "What is wrong.",
                "content": {"application/json": {"schema": {"$ref": REF.format(model="Error")}}},
            },
        },
    }
    if parameters := _parameters(route):
        operation["parameters"] = parameters
    if endpoint in _BODIES:
        reference = {"$ref": REF.format(model=_BODIES[endpoint].__name__)}
        operation["requestBody"] = {"content": {"application/json": {"schema": reference}}}
    return operation


def _parameters(route: Route) -> list[Json]:
    found: list[Json] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in ("session", "step", "fact")
        if f"{{{name}}}" in route.path
    ]
    if route.endpoint is session_routes.watch_events:
        found.append({"name": "Last-Event-ID", "in": "header", "schema": {"type": "string"}})
    return found + [
        {"name": name, "in": "query", "required": name in _REQUIRED, "schema": schema}
        for name, schema in _QUERIES.get(route.endpoint, {}).items()
    ]


def _success(endpoint: Callable[..., Any]) -> Json:
    if endpoint is session_routes.delete_session:
        return {"description": "It is deleted."}
    if endpoint is steps.draw_step:
        return {"description": "An image.", "content": {"image/svg+xml": {}}}
    if endpoint not in _STREAMS:
        return {"description": "Done.", "content": {"application/json": {"schema": {}}}}
    event = {"schema": {"$ref": REF.format(model="NumberedEvent")}}
    content: Json = {SSE: {"schema": {"type": "string"}}, NDJSON: event}
    if endpoint is not session_routes.watch_events:
        content["application/json"] = {"schema": {"type": "object"}}
    return {
        "description": "The events as they come; the data of a server-sent event is an Event.",
        "content": content,
    }


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
    for model in _BODIES.values():
        add(model.__name__, model.model_json_schema(ref_template=REF))
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
