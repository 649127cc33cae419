"""The four forms in which a brain accepts servers, and their lifetime."""

from __future__ import annotations

import json
from typing import Any

import anyio
import anyio.to_thread
import pytest

from agent_brain import Brain, MessagesMemory, tool
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from agent_brain.tools.mcp import McpServerError, McpTools
from tests.tools.mcp.servers.odd import TOOLS
from tests.tools.mcp.support import SERVERS, call, config, script

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_leaks")]


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def length(text: str) -> int:
    """How long a text is."""
    return len(text)


def hello() -> str:
    """Say hello here."""
    return "hello from here"


NOBODY = config(gone={"command": "no-such-command-here"})


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_all_forms_mixed(url, tmp_path):
    file = tmp_path / "servers.json"
    file.write_text(json.dumps(config(filed=script("odd", "plain"))))
    sources = [double, length, SERVERS / "slow.py", url, config(given=script("results")), str(file)]
    async with await Brain.create(tools=sources, llm=ScriptedLLM([])) as brain:
        tools = brain.memory.available_tools.values()
        outcomes = [
            await call(tools, "double", number=4),
            await call(tools, "length", text="four"),
            await call(tools, "count", to=1),
            await call(tools, "add", a=1, b=2),
            await call(tools, "both"),
            await call(tools, "hello"),
        ]

    assert [o.content for o in outcomes] == ["8", "4", "done", "3", "three", "hello"]


async def test_a_run_calls_the_server_and_several_runs_use_one_connection():
    model = ScriptedLLM([turn for _ in range(2) for turn in ([Action(name="pid")], "Done.")])
    async with await Brain.create(tools=[config(s=script("odd", "plain"))], llm=model) as brain:
        results = [await brain.run("Who?") for _ in range(2)]

    assert [result.answer for result in results] == ["Done.", "Done."]
    pids = [m.content for result in results for m in result.messages if m.role == "tool"]
    assert len(pids) == 2
    assert len(set(pids)) == 1


async def test_a_brain_with_servers_runs_without_an_event_loop():
    model = ScriptedLLM([[Action(name="hello")], "Done."])

    async def create() -> Brain:
        return await Brain.create(tools=[config(s=script("odd", "plain"))], llm=model)

    def program() -> Any:
        brain = anyio.run(create)
        try:
            return brain.run_sync("Say hello.")
        finally:
            anyio.run(brain.aclose)

    result = await anyio.to_thread.run_sync(program)

    assert [m.content for m in result.messages if m.role == "tool"] == ["hello"]


async def test_a_brain_may_be_closed_in_another_task():
    brain = await Brain.create(tools=[config(s=script("odd", "plain"))], llm=ScriptedLLM([]))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(brain.aclose)


async def test_a_closed_brain_leaves_no_tools_in_a_memory_that_lives_on():
    memory = MessagesMemory([double])
    servers = config(s=script("odd", "plain"))
    async with await Brain.create(memory=memory, tools=[servers], llm=ScriptedLLM([])) as brain:
        theirs = memory.available_tools["hello"]
    assert list(memory.available_tools) == ["double"]
    await brain.aclose()  # twice is fine

    outcome = await call([theirs], "hello")
    assert outcome.is_error
    assert outcome.content == "MCP server 's' has been closed"


async def test_tools_of_one_name_are_called_after_their_server():
    sources: list[Any] = [hello, config(left=script("odd", "plain"), right=script("odd", "plain"))]
    async with await Brain.create(tools=sources, llm=ScriptedLLM([])) as brain:
        tools = brain.memory.available_tools
        names = set(tools)
        outcomes = [await call(tools.values(), name) for name in ("hello", "left_hello")]
        unknown = await call(tools.values(), "right_helo")

    theirs = {f"{server}_{name}" for server in ("left", "right") for name in TOOLS}
    assert names == {"hello", *theirs}
    assert [o.content for o in outcomes] == ["hello from here", "hello"]
    assert "Did you mean 'right_hello'" in unknown.content


async def test_servers_that_cannot_be_reached_are_all_named_and_the_others_are_closed():
    sources: list[Any] = [config(s=script("odd", "plain")), "http://127.0.0.1:1/mcp", NOBODY]

    with pytest.raises(McpServerError) as caught:
        await Brain.create(tools=sources, llm=ScriptedLLM([]))

    assert sorted(str(caught.value).splitlines()) == [
        "MCP server '127_0_0_1' could not be reached: nothing answers there (at http://127.0.0.1:1/mcp)",
        "MCP server 'gone' could not be started: there is no such command or folder (at no-such-command-here)",
    ]


async def test_environment_and_folder_of_a_server(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "s3cr3t-value")
    monkeypatch.setenv("UNRELATED", "not passed on")
    monkeypatch.setenv("A_PLACE", "near the sea")
    env = {"TOKEN": "${A_SECRET}", "PLACE": "${A_PLACE}", "B": "${NONE:-b}"}
    entry = script("odd", "plain", env=env, cwd=str(tmp_path))
    async with await Brain.create(tools=[config(one=entry)], llm=ScriptedLLM([])) as brain:
        tools = brain.memory.available_tools.values()
        seen = json.loads((await call(tools, "environment")).content)
        folder = (await call(tools, "folder")).content
        shown = repr(tools)

    assert (seen["PLACE"], seen["B"]) == ("near the sea", "b")
    assert seen["TOKEN"] == "[hidden]"  # a result shows no configured secret
    assert "UNRELATED" not in seen
    assert folder == str(tmp_path)
    assert "s3cr3t" not in shown


async def test_a_server_among_the_tools_of_a_brain_is_refused_with_a_hint():
    with pytest.raises(ValueError, match=r"MCP servers are for 'await Brain\.create"):
        Brain(tools=["http://example.org/mcp"], llm=ScriptedLLM([]))  # type: ignore[list-item]


async def test_a_brain_that_connects_later_has_the_tools_of_all():
    async with Brain(tools=[double], llm=ScriptedLLM([])) as brain:
        await brain.connect(config(a=script("odd", "plain")))
        await brain.connect(config(b=script("odd", "plain")))
        names = set(brain.memory.available_tools)

    assert {"double", "hello", "b_hello"} <= names
    assert set(brain.memory.available_tools) == {"double"}


async def test_what_is_left_open_is_warned_of():
    mcp = await McpTools.open([config(s=script("odd", "plain"))])
    with pytest.warns(ResourceWarning, match="unclosed <agent_brain.tools.mcp.toolset.McpTools"):
        mcp.__del__()
    await mcp.aclose()
