"""The application inside other applications, and its description."""

from __future__ import annotations

import json
import re
from contextlib import asynccontextmanager
from typing import Any

import httpx
import jsonschema
import pytest
from fastapi import FastAPI
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.routing import Mount, WebSocketRoute
from websockets.sync.client import connect

from agent_brain import Brain, react, tool
from agent_brain.serving import Sessions
from agent_brain.serving.web import make_app, routes
from agent_brain.states.events import AgentEvent
from agent_brain.testing import ScriptedLLM
from tests.serving.models import EchoLLM
from tests.serving.web.support import parse_sse, text_of
from tests.support.live_server import live_server


def sessions() -> Sessions:
    return Sessions(Brain(llm=EchoLLM()))


def mounted(kind: str, served: Sessions, **options: Any) -> Any:
    """An application of a framework that has ours at ``/agent`` and opens the sessions."""

    @asynccontextmanager
    async def lifespan(app: Any):
        async with served:
            yield

    inner = make_app(served, **options)
    if kind == "fastapi":
        app = FastAPI(lifespan=lifespan)
        app.mount("/agent", inner)
        return app
    return Starlette(routes=[Mount("/agent", inner)], lifespan=lifespan)


@pytest.mark.parametrize("kind", ["fastapi", "starlette"])
def test_it_works_inside_another_application(kind):
    served = sessions()
    with live_server(served, app=mounted(kind, served, token={"secret": "ann"})) as url:
        base = f"{url}/agent"
        assert httpx.get(f"{base}/healthz").status_code == 200
        assert httpx.get(f"{base}/sessions").status_code == 401
        headers = {"authorization": "Bearer secret"}
        frames = parse_sse(
            httpx.post(f"{base}/sessions/s/runs", json={"task": "Hello"}, headers=headers).text
        )
        assert text_of(frames) == "You said: Hello"
        listed = httpx.get(f"{base}/sessions", headers=headers).json()["sessions"]
        assert [session["id"] for session in listed] == ["s"]
        with connect(
            f"{base.replace('http', 'ws')}/sessions/s/ws",
            subprotocols=["bearer.secret"],  # type: ignore[list-item]
            open_timeout=60,
        ) as socket:
            socket.send(json.dumps({"type": "run", "task": "Hello"}))
            assert json.loads(socket.recv(timeout=60))["event"]["kind"] == "run_started"


def test_closed_sessions_are_unavailable():
    """A parent that does not open them is told so, and readiness is denied."""
    served = sessions()
    with live_server(
        served, app=Starlette(routes=[Mount("/", make_app(served, user="ann"))])
    ) as url:
        assert httpx.get(f"{url}/readyz").status_code == 503
        answer = httpx.get(f"{url}/sessions/s")
        assert answer.status_code == 503
        assert answer.json()["error"]["type"] == "stopping"
        assert answer.headers["retry-after"] == "1"


@pytest.fixture(scope="module")
def url():
    with live_server(sessions(), user="ann") as address:
        yield address


@pytest.fixture(scope="module")
def description(url) -> Any:
    return httpx.get(f"{url}/openapi.json").json()


def test_every_route_of_the_sessions_is_described(description):
    described = {
        (path, method.upper())
        for path, item in description["paths"].items()
        for method in item
        if method in ("get", "post", "patch", "delete")
    }
    for route in (each.route for each in routes.ENDPOINTS):
        assert not isinstance(route, WebSocketRoute)
        for method in (route.methods or set()) - {"HEAD"}:
            assert (route.path, method) in described


def test_the_description_is_consistent(description):
    assert description["openapi"].startswith("3.1")
    text = json.dumps(description)
    schemas = description["components"]["schemas"]
    for reference in text.split('"$ref": "')[1:]:
        name = reference.partition('"')[0]
        assert name.startswith("#/components/schemas/")
        assert name.rpartition("/")[2] in schemas
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    names = [op["operationId"] for item in description["paths"].values() for op in item.values()]
    assert len(names) == len(set(names))
    for path, item in description["paths"].items():
        for operation in item.values():
            declared = {p["name"] for p in operation.get("parameters", []) if p["in"] == "path"}
            assert declared == set(re.findall(r"{(\w+)}", path))
            assert operation["summary"]


def check(description: Any, name: str, value: Any) -> None:
    """Check that a value is what a schema of the description says."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": description["components"]}
    jsonschema.validate(value, schema, cls=jsonschema.Draft202012Validator)


def test_real_events_and_errors_match_their_schemas(url, description):
    answer = httpx.post(
        f"{url}/sessions/s/runs", json={"task": "Hello"}, headers={"accept": "application/x-ndjson"}
    )
    items = [json.loads(line) for line in answer.text.splitlines()]
    for item in items:
        check(description, "NumberedEvent", item)
        TypeAdapter[Any](AgentEvent).validate_python(item["event"])
    for answer in (httpx.post(f"{url}/sessions/s/stop"), httpx.get(f"{url}/nothing")):
        check(description, "Error", answer.json())
    for message in httpx.get(f"{url}/sessions/s").json()["messages"]:
        check(description, "Message", message)


def test_the_description_says_whether_a_token_is_needed(description):
    assert "security" not in description
    with live_server(sessions(), token="secret") as address:
        other = httpx.get(f"{address}/openapi.json").json()
    assert other["security"] == [{"token": []}]
    assert other["components"]["securitySchemes"]["token"] == {"type": "http", "scheme": "bearer"}


def test_info_tells_what_the_agent_is(url):
    body = httpx.get(f"{url}/info").json()
    assert body["net"] == "react"
    assert "REASONING" in body["states"]
    assert body["needs_token"] is False


def test_info_tells_of_the_tools_that_the_net_brings():
    @tool(requires_approval=True)
    def pay() -> str:
        """Pay."""
        return "paid"

    with live_server(Sessions(Brain(react(ScriptedLLM([]), tools=[pay])))) as address:
        told = httpx.get(f"{address}/info").json()["tools"]
    assert told == [{"name": "pay", "description": "Pay.", "requires_approval": True}]


def test_the_picture_of_the_net_marks_its_states(url):
    answer = httpx.get(f"{url}/net.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert 'id="state-REASONING"' in answer.text
