"""Every kind of answer, as a model gets it."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import pytest

from agent_brain import Brain
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, Media, ToolError
from agent_brain.tools.mcp import McpTools
from agent_brain.tools.mcp.tool import needs_approval
from tests.tools.mcp.support import call, config, script

PIXEL = "iVBORw0KGgo="
ANSWERS = {
    "text": "one\n\ntwo",
    "image": "Look:\n\n[attached: image/png]",
    "torn": "[image/png, which cannot be read: it is not in base64]",
    "audio": "[audio/wav, about 3 bytes, which cannot be shown]",
    "resources": "[resource note://1]\na note\n\n[attached: pic://1 (image/gif)]\n\n"
    "[zip://1 (unknown type), about 3 bytes, which cannot be shown]\n\n"
    "[resource file:///far (unknown type): far away]",
    "structured": '{"sum":3,"of":[1,2]}',
    "both": "three",
    "nothing": "",
}
FAILURES = {
    "failure": "no such city",
    "failure_with_password": "no route to postgres://ann:[hidden]@db",
    "silent_failure": "MCP server 'results' reported an error without a reason",
}


@pytest.mark.anyio
@pytest.mark.parametrize("name", ANSWERS)
async def test_what_a_model_reads(shared, name):
    outcome = await call(shared, name)

    assert (outcome.content, outcome.is_error) == (ANSWERS[name], False)


@pytest.mark.anyio
@pytest.mark.parametrize("name", FAILURES)
async def test_what_a_model_reads_of_a_failure(shared, name):
    outcome = await call(shared, name)

    assert (outcome.content, outcome.is_error) == (FAILURES[name], True)
    assert type(outcome.exception) is ToolError


@pytest.mark.anyio
async def test_an_answer_against_its_own_schema_is_a_failure(shared):
    outcome = await call(shared, "wrong")

    assert outcome.is_error
    assert outcome.content.startswith("MCP server 'results' did not complete 'wrong': ")


@pytest.mark.anyio
async def test_an_answer_fits_a_pattern_that_the_sdk_cannot_read(shared):
    outcome = await call(shared, "capitals")

    assert (outcome.content, outcome.is_error) == ("AÉ", False)


@pytest.mark.anyio
async def test_pictures_come_apart_from_the_text(shared):
    assert (await call(shared, "torn")).media == ()
    assert (await call(shared, "image")).media == (Media("image/png", PIXEL),)
    assert (await call(shared, "resources")).media == (Media("image/gif", PIXEL, "pic://1"),)


@pytest.mark.anyio
async def test_pictures_are_attached_to_the_message_that_the_model_gets(shared):
    model = ScriptedLLM([[Action(name="image")], "I see."])
    result = await Brain(tools=shared.tools, llm=model).run("What is in the picture?")

    [message] = [m for m in result.messages if m.role == "tool"]
    [attachment] = message.attachments
    assert (attachment.media_type, attachment.data) == ("image/png", PIXEL)
    assert model.calls[1].messages[-1].attachments == message.attachments


@pytest.mark.anyio
async def test_a_local_tool_may_return_pictures_too():
    from agent_brain.tools import ToolResult

    def draw() -> ToolResult:
        """Draw."""
        return ToolResult({"drawn": 1}, (Media("image/png", PIXEL),))

    model = ScriptedLLM([[Action(name="draw")], "I see."])
    result = await Brain(tools=[draw], llm=model).run("Draw.")

    [message] = [m for m in result.messages if m.role == "tool"]
    assert message.content == '{"drawn":1}'
    assert len(message.attachments) == 1


@pytest.mark.parametrize("wrong", [("png", PIXEL), ("image/png", "")])
def test_media_without_a_type_or_bytes_are_refused(wrong):
    with pytest.raises(ValueError, match="media need a type"):
        Media(*wrong)


@pytest.mark.parametrize("wrong", ["!!!", "iVBORw0KGg", "é"])
def test_media_that_are_not_base64_are_refused(wrong):
    with pytest.raises(ValueError, match="must be base64-encoded"):
        Media("image/png", wrong)


@pytest.mark.anyio
@pytest.mark.usefixtures("nothing_leaks")
async def test_a_tool_that_no_model_takes_is_left_out_and_logged(caplog):
    with caplog.at_level(logging.WARNING, "agent_brain"):
        async with await McpTools.open([config(r=script("results"))]) as mcp:
            names = [tool.name for tool in mcp.tools]

    assert "broken" not in names
    [record] = [r for r in caplog.records if r.name.startswith("agent_brain")]
    assert "A tool of MCP server 'r' is left out: Tool 'broken'" in record.getMessage()


def test_what_a_server_says_of_repeating_is_taken_at_its_word(shared):
    tools = {tool.name: tool for tool in shared.tools}

    assert [tools[name].idempotent for name in ("text", "image", "audio", "both")] == [
        *(True, True),  # only reads; says so
        *(False, False),
    ]


SILENT = SimpleNamespace(read_only_hint=None, destructive_hint=None)
READS = SimpleNamespace(read_only_hint=True, destructive_hint=None)
ADDS = SimpleNamespace(read_only_hint=False, destructive_hint=False)
DESTROYS = SimpleNamespace(read_only_hint=False, destructive_hint=True)


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        ("never", [False] * 5),
        ("destructive", [True, True, False, False, True]),
        ("always", [True] * 5),
    ],
)
def test_what_needs_approval(approval, expected):
    hints = [None, SILENT, READS, ADDS, DESTROYS]

    assert [needs_approval(approval, hint) for hint in hints] == expected


@pytest.mark.anyio
async def test_a_tool_that_needs_approval_is_not_run_without_it():
    servers = config(s=script("odd", "plain", approval="destructive"))
    async with await McpTools.open([servers]) as mcp:
        assert {tool.requires_approval for tool in mcp.tools} == {True}


@pytest.mark.anyio
async def test_500_tools_in_pages_are_all_there(shared):
    names = [tool.name for tool in shared.tools if tool.server == "many"]

    assert names == [f"tool_{number}" for number in range(500)]
    assert (await call(shared, "tool_437")).content == "called tool_437"


@pytest.mark.anyio
async def test_arguments_are_checked_before_they_are_sent(shared):
    outcome = await call(shared, "add", a="one", c=2)

    assert outcome.is_error
    assert "Invalid arguments for tool 'add'" in outcome.content
    assert "'b' is a required property" in outcome.content


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("name", "args"),
    [("add", {"a": 1, "b": 2}), ("both", {}), ("tool_7", {}), ("count", {"to": 2})],
)
async def test_tools_of_servers_pass_the_suite_for_tools(shared, name, args):
    from agent_brain.testing import tool_conformance

    [tool] = [tool for tool in shared.tools if tool.name == name]
    for check in tool_conformance(tool, args):
        await check()
