"""Servers that violate the protocol: their other tools and calls still work."""

from __future__ import annotations

import json
import logging
import os
import signal
from typing import Any

import anyio
import pytest

from agent_brain.common.text import count_tokens
from agent_brain.tools.mcp import McpServerError, McpTools
from tests.tools.mcp.support import call, config, script, until

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_leaks")]

SCHEMA = {"type": "object"}


def hostile(*tools: Any, **entry: Any) -> dict[str, Any]:
    """A server with these tools besides its own."""
    return config(s=script("odd", "hostile", json.dumps(tools), **entry))


def described(name: Any, **parts: Any) -> dict[str, Any]:
    return {"name": name, "description": "One of them.", "inputSchema": SCHEMA, **parts}


def named(mcp: McpTools) -> dict[str, Any]:
    return {tool.remote_name: tool for tool in mcp.tools}


@pytest.mark.parametrize(
    ("tool", "words"),
    [
        ("own_error", "the database is locked"),
        ("closed_error", "Connection closed"),
        ("sse_error", "SSE stream ended without a response"),
    ],
)
async def test_the_code_of_a_closed_connection_is_an_answer_if_the_server_gives_it(tool, words):
    async with await McpTools.open([hostile()]) as mcp:
        before = (await call(mcp, "pid")).content
        outcome = await call(mcp, tool)
        after = (await call(mcp, "pid")).content

    assert outcome.is_error
    assert (
        outcome.content
        == f"MCP server 's' did not complete {tool!r}: answered with an error: {words}"
    )
    assert before == after


async def test_a_server_that_refuses_to_start_is_quoted():
    with pytest.raises(McpServerError, match="answered with an error: the licence has expired"):
        await McpTools.open([config(s=script("odd", "refuses", "-32000"))])


async def test_a_byte_that_is_not_utf_8_costs_only_itself():
    async with await McpTools.open([hostile(timeout=None)]) as mcp:
        with anyio.fail_after(60):
            outcome = await call(mcp, "latin1")
            again = await call(mcp, "hello")

    assert (outcome.content, again.content) == ("caf\N{REPLACEMENT CHARACTER}", "hello")


async def test_half_a_surrogate_pair_costs_only_itself():
    async with await McpTools.open([hostile(timeout=None)]) as mcp:
        with anyio.fail_after(60):
            outcome = await call(mcp, "surrogate")

    assert outcome.content == "half \N{REPLACEMENT CHARACTER} a smiley"


@pytest.mark.parametrize("tool", ["no_object", "no_version", "not_json", "cut_off", "too_deep"])
async def test_an_answer_that_cannot_be_read_ends_its_call(tool):
    async with await McpTools.open([hostile(timeout=None)]) as mcp:
        with anyio.fail_after(60):
            outcome = await call(mcp, tool)
            again = await call(mcp, "hello")

    assert "answered with an error: an answer that cannot be read: " in outcome.content
    assert again.content == "hello"


async def test_an_enormous_answer_is_cut_and_kept():
    async with await McpTools.open([hostile()]) as mcp:
        with anyio.fail_after(60):
            outcome = await call(mcp, "enormous")
            failed = await call(mcp, "long_error")
            again = await call(mcp, "hello")

    assert count_tokens(outcome.content) <= 10_000
    assert outcome.full is not None
    assert len(outcome.full) == 4_400_000
    assert count_tokens(failed.content) <= 2_100
    assert again.content == "hello"


async def test_the_limits_of_results_and_descriptions_are_in_the_configuration():
    long = described("long", description="words " * 5000)
    entry: dict[str, Any] = {"maxResultTokens": 20, "maxDescriptionTokens": 30}
    async with await McpTools.open([hostile(long, **entry)]) as mcp:
        outcome = await call(mcp, "environment")
        limited = named(mcp)["long"]
    entry = {"max_result_tokens": None, "max_description_tokens": None}
    async with await McpTools.open([hostile(long, **entry)]) as mcp:
        whole = await call(mcp, "environment")
        unlimited = named(mcp)["long"]
    async with await McpTools.open([hostile(long)]) as mcp:
        usual = named(mcp)["long"]

    assert count_tokens(outcome.content) <= 20
    assert whole.full is None
    assert count_tokens(limited.description) <= 30
    assert len(unlimited.description) == len("words " * 5000)
    assert count_tokens(usual.description) <= 2_000
    assert usual.max_result_tokens == 10_000


async def test_descriptions_in_a_schema_are_shortened_too_and_data_in_it_is_not():
    properties = {
        "a": {"type": "string", "description": "words " * 200, "default": "words " * 100},
        "description": {"type": "string"},
    }
    tool = described("long", inputSchema={"type": "object", "properties": properties})
    async with await McpTools.open([hostile(tool, maxDescriptionTokens=50)]) as mcp:
        schema = named(mcp)["long"].input_schema

    assert count_tokens(schema["properties"]["a"]["description"]) <= 50
    assert schema["properties"]["a"]["default"] == "words " * 100
    assert schema["properties"]["description"] == {"type": "string"}


MALFORMED = {
    "no schema": ({"name": "bad"}, "inputSchema"),
    "schema that is a list": (described("bad", inputSchema=[]), "inputSchema"),
    "description that is a number": (described("bad", description=7), "description"),
    "annotations that are a text": (described("bad", annotations="x"), "annotations"),
    "no name": ({"inputSchema": SCHEMA}, "name"),
    "name that is a number": (described(7), "name"),
    "no tool at all": ("bad", "bad"),
    "nothing": (None, "None"),
    "unknown type": (
        described("bad", inputSchema={"type": "object", "properties": {"a": {"type": "float"}}}),
        "did you mean 'number'",
    ),
    "reference to nowhere": (
        described("bad", inputSchema={"type": "object", "properties": {"a": {"$ref": "#/x"}}}),
        "leads nowhere",
    ),
    "two types": (described("bad", inputSchema={"type": ["object", "null"]}), "bad"),
    "endless schema": (
        described("bad", inputSchema={"type": "object", "enum": [{"text": "x", "times": 200_000}]}),
        "maxDescriptionTokens",
    ),
}


@pytest.mark.parametrize("kind", MALFORMED)
@pytest.mark.parametrize("approval", ["never", "always"])
async def test_one_malformed_tool_is_left_out_by_name_and_the_others_work(kind, approval, caplog):
    tool, said = MALFORMED[kind]
    async with await McpTools.open([hostile(tool, described("good"), approval=approval)]) as mcp:
        names = set(named(mcp))
        outcome = await call(mcp, "hello")

    assert {"good", "hello"} <= names
    assert "bad" not in names
    assert outcome.content == "hello"
    [warning] = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warning.startswith("A tool of MCP server 's' is left out: Tool ")
    assert said in warning
    assert len(warning) < 2000


async def test_names_of_any_length_and_in_any_letters_become_names_that_apis_take():
    names = [
        {"text": "x", "times": 100_000},
        {"text": "x", "times": 100_001},
        "a b\nc",
        "\N{GREEK SMALL LETTER ALPHA}",
        "",
        "../../etc",
        "a.b",
        "a_b",
        "a/b",
    ]
    async with await McpTools.open([hostile(*map(described, names))]) as mcp:
        tools = named(mcp)

    assert {name for name in names if isinstance(name, str)} <= set(tools)
    assert {100_000, 100_001} <= {len(name) for name in tools}
    given = [tool.name for tool in tools.values()]
    assert len(set(given)) == len(given)
    assert all(1 <= len(name) <= 64 and name.isascii() for name in given)


@pytest.mark.parametrize("method", ["server/discover", "initialize", "tools/list"])
async def test_a_server_that_dies_before_it_is_ready_is_named(method):
    with pytest.raises(McpServerError, match="MCP server 's'"), anyio.fail_after(60):
        await McpTools.open([config(s=script("odd", "dies-at", method))])


async def test_a_server_that_dies_at_the_start_of_a_call_is_noticed():
    async with await McpTools.open([config(s=script("odd", "dies-at", "tools/call"))]) as mcp:
        with anyio.fail_after(60):
            outcomes = [await call(mcp, "hello") for _ in range(2)]

    assert all(outcome.is_error for outcome in outcomes)
    assert "stopped before it answered" in outcomes[0].content


async def test_a_password_in_an_error_of_a_server_is_hidden():
    async with await McpTools.open([hostile()]) as mcp:
        outcome = await call(mcp, "password_error")
    assert outcome.is_error
    assert "postgres://ann:[hidden]@db" in outcome.content


async def test_a_server_that_dies_between_list_and_call_is_noticed():
    async with await McpTools.open([config(s=script("odd", "plain"))]) as mcp:
        os.kill(int((await call(mcp, "pid")).content), signal.SIGKILL)
        with anyio.fail_after(60):
            outcome = await call(mcp, "hello")
            await until(lambda: mcp.changed)
            again = await call(mcp, "hello")

    assert outcome.is_error
    assert "stopped" in outcome.content
    assert again.content == "hello"


@pytest.mark.parametrize("size", [1, 2, 3])
async def test_cancelled_calls_leave_the_others_and_the_server_alone(size):
    async with await McpTools.open([config(s=script("odd", "plain"))]) as mcp:
        pid = (await call(mcp, "pid")).content
        async with anyio.create_task_group() as tasks:
            for _ in range(size):
                tasks.start_soon(call, mcp, "silence")
            await call(mcp, "hello")
            tasks.cancel_scope.cancel()
        assert (await call(mcp, "pid")).content == pid


async def test_what_a_server_says_holds_no_configured_secret():
    env = {"API_TOKEN": "tok-of-the-server-1"}
    tool = described("tok", description="Uses tok-of-the-server-1.")
    async with await McpTools.open([hostile(tool, env=env)]) as mcp:
        outcome = await call(mcp, "environment")

    assert "tok-of-the-server-1" not in outcome.content
    assert "[hidden]" in outcome.content
