"""Servers that others wrote, from PyPI and npm, over stdio and over HTTP."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_brain import Action, Brain, react
from agent_brain.testing import ScriptedLLM
from agent_brain.tools.context import ToolContext, enter_call, leave_call
from agent_brain.tools.mcp import McpTools
from tests.support.ports import free_port
from tests.tools.mcp.others import command, install
from tests.tools.mcp.support import SERVERS, call, config

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.thorough,  # it installs servers that others wrote
    pytest.mark.usefixtures("nothing_leaks"),
]


@pytest.fixture(scope="session")
def installed(request: pytest.FixtureRequest) -> Path:
    assert request.config.cache is not None
    return install(request.config.cache.mkdir("mcp-servers"))


async def test_time_and_git(installed, tmp_path):
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    commit = ["commit", "-q", "--allow-empty", "-m", "The first one"]
    for arguments in (["init", "-q", "."], [*who, *commit]):
        subprocess.run(["git", *arguments], cwd=tmp_path, check=True)
    servers = config(
        time={
            "command": command(installed, "mcp-server-time"),
            "args": ["--local-timezone", "UTC"],
        },
        git={"command": command(installed, "mcp-server-git")},
    )
    async with await Brain.create(tools=[servers], llm=ScriptedLLM([])) as brain:
        tools = brain.memory.available_tools.values()
        time = await call(
            tools,
            "convert_time",
            source_timezone="UTC",
            time="12:00",
            target_timezone="Asia/Tokyo",
        )
        wrong = await call(tools, "get_current_time", timezone="Nowhere/Else")
        log = await call(tools, "git_log", repo_path=str(tmp_path))

    assert "21:00" in time.content
    assert wrong.is_error
    assert "Nowhere/Else" in wrong.content
    assert "The first one" in log.content


async def test_files_and_knowledge(installed, tmp_path):
    root = tmp_path.resolve()
    (root / "note.txt").write_text("remember the milk")
    servers = tmp_path / "servers.json"
    servers.write_text(
        json.dumps(
            config(
                files={"command": command(installed, "mcp-server-filesystem"), "args": [str(root)]},
                memory={
                    "command": command(installed, "mcp-server-memory"),
                    "env": {"MEMORY_FILE_PATH": str(root / "memory.json")},
                },
            )
        )
    )
    async with await McpTools.open([servers]) as mcp:
        text = await call(mcp, "read_text_file", path=str(root / "note.txt"))
        outside = await call(mcp, "read_text_file", path="/etc/passwd")
        entity = {"name": "Oslo", "entityType": "city", "observations": ["by the sea"]}
        await call(mcp, "create_entities", entities=[entity])
        graph = await call(mcp, "read_graph")

    assert text.content == "remember the milk"
    assert outside.is_error
    assert "Oslo" in graph.content
    assert "by the sea" in (root / "memory.json").read_text()


async def test_everything_over_stdio(installed):
    servers = config(
        all={"command": command(installed, "mcp-server-everything"), "args": ["stdio"]}
    )
    async with await McpTools.open([servers]) as mcp:
        await look_at_everything(mcp)


@pytest.mark.parametrize("by_error", [False, True])
async def test_everything_asks_a_person(installed, by_error):
    pay = {"url": "https://example.org/pay", "elicitationId": "1", "errorPath": by_error}
    turns = [
        [Action(name="trigger-elicitation-request")],
        [Action(name="trigger-url-elicitation", args=pay)],
        "Thank you.",
    ]
    server = {"command": command(installed, "mcp-server-everything"), "args": ["stdio"]}
    async with await Brain.create(react(ScriptedLLM(turns)), tools=[config(all=server)]) as brain:
        assert (await brain.run("Go")).stop_reason == "input"
        result = await brain.resume(input={"name": "Ann", "integer": 7})
        assert "- Name: Ann\n- Favorite Integer: 7" in result.messages[2].content
        assert result.stop_reason == "input"
        result = await brain.resume(input=True)

    assert result.answer == "Thank you."
    assert "accept" in result.messages[-2].content


async def test_fastmcp_asks_and_has_resources_and_prompts(installed):
    script = str(SERVERS / "with_fastmcp.py")
    server = {
        "command": str(Path(command(installed, "fastmcp")).with_name("python")),
        "args": [script],
        "olderProtocol": True,
        "resources": True,
        "prompts": True,
    }
    model = ScriptedLLM([[Action(name="order")], "Tea it is."])
    async with await Brain.create(react(model), tools=[config(fast=server)]) as brain:
        tools = brain.memory.available_tools.values()
        listed = await call(tools, "list_resources")
        text = await call(tools, "read_resource", uri="menu://Monday")
        prompt = await call(tools, "prompt_greet", name="Ann")
        assert (await brain.run("Go")).stop_reason == "input"
        result = await brain.resume(input={"value": "tea"})

    assert "menu://{day}" in listed.content
    assert text.content == "[resource menu://Monday]\nSoup on Monday"
    assert prompt.content == "Greet Ann warmly"
    assert result.messages[-2].content == "accept: tea"


async def test_resources_and_prompts_of_everything(installed):
    server = {
        "command": command(installed, "mcp-server-everything"),
        "args": ["stdio"],
        "resources": True,
        "prompts": True,
        "context": ["demo://resource/static/document/features.md"],
    }
    async with await McpTools.open([config(all=server)]) as mcp:
        listed = await call(mcp, "list_resources", query="template")
        text = await call(mcp, "read_resource", uri="demo://resource/dynamic/text/3")
        prompt = await call(mcp, "prompt_args-prompt", city="Oslo")
        plain = await call(mcp, "prompt_simple-prompt")
        [shown] = await mcp.context()

    assert "demo://resource/dynamic/text/{resourceId}" in listed.content
    assert "Resource 3" in text.content
    assert "Oslo" in prompt.content
    assert "simple prompt" in plain.content
    assert "features.md" in shown


@pytest.fixture(scope="session")
def everything_url(installed) -> Iterator[str]:
    port = free_port()
    server = [command(installed, "mcp-server-everything"), "streamableHttp"]
    with subprocess.Popen(
        server, env={**os.environ, "PORT": str(port)}, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if str(port) in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()


async def test_everything_over_http(everything_url):
    async with await McpTools.open([everything_url]) as mcp:
        await look_at_everything(mcp)


async def look_at_everything(mcp: McpTools) -> None:
    """Text, errors, pictures, structure and progress of the server made to show them."""
    told: list[float] = []
    echo = await call(mcp, "echo", message="hello")
    picture = await call(mcp, "get-tiny-image")
    weather = await call(mcp, "get-structured-content", location="Chicago")
    resource = await call(mcp, "get-resource-reference", resourceType="Text", resourceId=1)
    token = enter_call(ToolContext(on_progress=lambda progress: told.append(progress.done)))
    try:
        await call(mcp, "trigger-long-running-operation", duration=0.2, steps=2)
    finally:
        leave_call(token)

    assert echo.content == "Echo: hello"
    assert [media.media_type for media in picture.media] == ["image/png"]
    assert json.loads(weather.content)["temperature"] is not None
    assert "[resource demo://" in resource.content
    assert told == [1, 2]
