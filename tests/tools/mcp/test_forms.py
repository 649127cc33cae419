"""The four forms in which a brain takes servers, and what becomes of them."""

from __future__ import annotations

import json

import pytest

from agent_brain import Brain, tool
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from agent_brain.tools.mcp import McpServerError
from tests.tools.mcp.support import SERVERS, call, config, http_server, script

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("nothing_leaks")]


@tool
def double(number: int) -> int:
    """Double a number."""
    return 2 * number


def a_brain_for(**action):
    return ScriptedLLM([[Action(**action)], "Done."])


async def test_all_forms_mixed(tmp_path):
    file = tmp_path / "servers.json"
    file.write_text(json.dumps(config(filed=script("results"))))
    async with http_server() as (url, _):
        sources = [double, len_of, SERVERS / "slow.py", url, config(given=script("many")), str(file)]
        async with await Brain.create(tools=sources, llm=ScriptedLLM([])) as brain:
            tools = brain.memory.available_tools
            outcomes = [
                await call(tools.values(), "double", number=4),
                await call(tools.values(), "len_of", text="four"),
                await call(tools.values(), "pid"),
                await call(tools.values(), "add", a=1, b=2),
                await call(tools.values(), "tool_499"),
                await call(tools.values(), "both"),
            ]

    assert [o.is_error for o in outcomes] == [False] * 6
    assert [o.content for o in outcomes if not o.content.isdecimal()] == ["called tool_499", "three"]


def len_of(text: str) -> int:
    """How long a text is."""
    return len(text)


async def test_a_run_calls_the_server_and_the_model_reads_the_answer():
    model = a_brain_for(name="add", args={"a": 17, "b": 25})
    async with await Brain.create(tools=[SERVERS / "plain.py"], llm=model) as brain:
        result = await brain.run("What is 17 + 25?")

    assert result.answer == "Done."
    assert [m.content for m in result.messages if m.role == "tool"] == ["42"]


async def test_several_runs_use_one_connection():
    model = ScriptedLLM([turn for _ in range(2) for turn in ([Action(name="pid")], "Done.")])
    async with await Brain.create(tools=[SERVERS / "slow.py"], llm=model) as brain:
        results = [await brain.run("Who?") for _ in range(2)]

    pids = [m.content for r in results for m in r.messages if m.role == "tool"]
    assert len(set(pids)) == 1


async def test_a_closed_brain_leaves_no_tools_in_a_memory_that_lives_on():
    from agent_brain import MessagesMemory

    memory = MessagesMemory([double])
    async with await Brain.create(
        memory=memory, tools=[SERVERS / "plain.py"], llm=ScriptedLLM([])
    ) as brain:
        [add] = [t for t in memory.available_tools.values() if t.name == "add"]
    assert list(memory.available_tools) == ["double"]
    await brain.aclose()  # twice is fine

    outcome = await call([add], "add", a=1, b=2)
    assert outcome.is_error
    assert outcome.content == "MCP server 'plain' has been closed"


async def test_tools_of_one_name_are_called_after_their_server():
    sources = [
        search,
        config(left=script("plain"), right=script("plain")),
    ]
    async with await Brain.create(tools=sources, llm=ScriptedLLM([])) as brain:
        tools = brain.memory.available_tools
        outcomes = [await call(tools.values(), n, query="x") for n in ("search", "left_search")]
        unknown = await call(tools.values(), "right_serch", query="x")

    assert {"search", "left_search", "right_search", "left_add", "right_add"} <= set(tools) | {
        "left_search",
        "right_search",
        "left_add",
        "right_add",
    }
    assert [o.content for o in outcomes] == ["mine: x", "plain: x"]
    assert "Did you mean 'right_search'" in unknown.content


def search(query: str) -> str:
    """Search."""
    return f"mine: {query}"


async def test_a_server_that_is_not_there_is_named_and_the_others_are_closed():
    sources = [SERVERS / "plain.py", config(gone={"command": "no-such-command-here"})]

    with pytest.raises(McpServerError) as caught:
        await Brain.create(tools=sources, llm=ScriptedLLM([]))

    assert caught.value.server == "gone"
    assert "could not be started: there is no such command" in str(caught.value)


async def test_every_server_that_could_not_be_reached_is_named():
    sources = ["http://127.0.0.1:1/mcp", config(gone={"command": "no-such-command-here"})]

    with pytest.raises(McpServerError) as caught:
        await Brain.create(tools=sources, llm=ScriptedLLM([]))

    assert "'127_0_0_1' could not be reached: nothing answers there" in str(caught.value)
    assert "'gone' could not be started" in str(caught.value)


async def test_environment_and_folder_of_a_server(tmp_path, monkeypatch):
    monkeypatch.setenv("A_SECRET", "s3cr3t-value")
    monkeypatch.setenv("UNRELATED", "should not be passed on")
    entry = script("plain", env={"TOKEN": "${A_SECRET}", "B": "${NONE:-b}"}, cwd=str(tmp_path))
    async with await Brain.create(tools=[config(one=entry)], llm=ScriptedLLM([])) as brain:
        tools = brain.memory.available_tools.values()
        seen = [(await call(tools, "environment", name=n)).content for n in ("TOKEN", "B", "UNRELATED")]
        folder = (await call(tools, "folder")).content

    assert seen == ["s3cr3t-value", "b", "(not set)"]
    assert folder == str(tmp_path)
