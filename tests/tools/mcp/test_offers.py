"""Resources and prompts of servers, as tools and in each request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agent_brain import Action, Brain, react
from agent_brain.memories import SQLiteJournal, WindowedMemory
from agent_brain.serving.conversations import SharedServers
from agent_brain.testing import ScriptedLLM
from agent_brain.tools.mcp import McpConfigError, McpServerError, McpTools
from tests.tools.mcp.support import call, config, script, until

pytestmark = pytest.mark.anyio


def offers(**entry: Any) -> dict[str, Any]:
    return config(docs=script("offers", **entry))


async def test_resources_are_listed_and_read_with_templates_and_pictures():
    async with await McpTools.open([offers(resources=True)]) as mcp:
        everything = await call(mcp, "list_resources")
        some = await call(mcp, "list_resources", query="number PAGE")
        none = await call(mcp, "list_resources", query="zebra")
        # the server has a tool of this name, which keeps it
        own = await call(mcp, "read_resource", uri="docs://style")
        text = await call(mcp, "read_resource_2", uri="docs://pages/7")
        picture = await call(mcp, "read_resource_2", uri="docs://logo")
        archive = await call(mcp, "read_resource_2", uri="docs://archive")
        missing = await call(mcp, "read_resource_2", uri="docs://nowhere")

    assert "docs://style (text/markdown) Style: How we write." in everything.content
    assert some.content == (
        "docs://pages/{page} (text/plain, template: replace what is in braces) "
        "page: A page by its number."
    )
    assert none.content == "None of 4 resources has these words."
    assert own.content == "my own docs://style"
    assert text.content.startswith("[resource docs://pages/7]\nThis is page 7.")
    assert [media.media_type for media in picture.media] == ["image/png"]
    assert archive.content == (
        "[docs://archive (application/zip), about 3000 bytes, which cannot be shown]"
    )
    assert missing.is_error
    assert "Unknown resource: docs://nowhere" in missing.content


async def test_a_long_resource_is_read_in_parts():
    model = ScriptedLLM(
        [
            [Action(name="read_resource_2", args={"uri": "docs://pages/long"}, id="call_1")],
            [Action(name="read_result", args={"id": "call_1", "offset": 40_000})],
            "Much text.",
        ]
    )
    servers = offers(resources=True, maxResultTokens=100)
    async with await Brain.create(react(model), tools=[servers]) as brain:
        result = await brain.run("Read the long page")

    told = [message.content for message in result.messages if message.role == "tool"]
    assert len(told[0]) < 1000
    assert "[Characters 40000 to 48000 of " in told[1]


async def test_prompts_are_tools_with_their_arguments_and_may_change():
    model = ScriptedLLM(
        [
            [Action(name="prompt_review", args={"code": "x.py", "tone": "stern"})],
            [Action(name="prompt_review", args={})],
            [Action(name="add_prompt", args={"name": "dance"})],
            lambda messages: [Action(name="wait", args={})],
            [Action(name="prompt_dance", args={})],
            "Done.",
        ]
    )
    async with await Brain.create(react(model), tools=[offers(prompts=True)]) as brain:
        [source] = brain._sources

        async def wait() -> str:
            tools = brain.memory.available_tools
            await until(lambda: source.changed or "prompt_dance" in tools)
            return "changed"

        brain.memory.add_tools([wait])
        result = await brain.run("Review it, then dance")

    told = [message.content for message in result.messages if message.role == "tool"]
    assert told[0] == "user:\n\nReview x.py in a stern way.\n\nassistant:\n\nGladly."
    assert "'code' is a required property" in told[1]
    assert told[4] == "Do dance."


async def test_each_request_shows_a_resource_as_it_is_then(tmp_path: Path):
    def shown(model: ScriptedLLM) -> list[str]:
        """Return what each request has about the resource."""
        return [
            "".join(
                m.content.partition("<data>")[2] for m in call.messages if "docs://" in m.content
            )
            for call in model.calls
        ]

    journal = SQLiteJournal(tmp_path / "journal.db")
    model = ScriptedLLM(
        [[Action(name="restyle", args={"text": "No jokes."})], [Action(name="wait")], "a", "b"]
    )
    memory = WindowedMemory(journal=journal, session="s")
    servers = [offers(context=["docs://style"])]
    async with await Brain.create(react(model), memory, tools=servers) as brain:
        [source] = brain._sources

        async def wait() -> str:
            async def is_new() -> bool:
                return "No jokes." in (await source.context())[0]

            while not await is_new():
                pass
            return "changed"

        memory.add_tools([wait])
        first = await brain.run("Go")
        # also in a copy of the brain, as servers make them
        await brain.over(WindowedMemory()).run("Go")

    was, new = "Write short sentences.</data>", "No jokes.</data>"
    told = shown(model)
    assert told[0] == was
    assert told[1] in (was, new)  # the server says so beside its result
    assert told[2:] == [new, new]
    assert not any("docs://" in message.content for message in first.messages)
    after = ScriptedLLM(["c"])
    await Brain(react(after), memory).run("And now?")  # the servers are closed
    assert shown(after) == [""]
    await memory.aclose()


@pytest.mark.also_on_trio
async def test_shared_servers_give_their_context_to_each_brain():
    shared = SharedServers([offers(context=["docs://style"])])
    models = [ScriptedLLM(["a"]), ScriptedLLM(["b"])]
    for model in models:
        async with Brain(react(model)) as brain:
            await brain.connect(shared.for_a_brain())
            await brain.run("Go")
    await shared.aclose()
    for model in models:
        assert any("Write short sentences." in m.content for m in model.calls[0].messages)


async def test_what_cannot_be_shown_is_said_when_the_server_is_connected():
    with pytest.raises(McpServerError, match="did not return the resource docs://nowhere"):
        await McpTools.open([offers(context=["docs://nowhere"])])
    with pytest.raises(McpConfigError, match="context"):
        await McpTools.open([offers(context="docs://style")])
