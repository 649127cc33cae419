"""A model searches the tools of a server, also those that it has got since."""

from __future__ import annotations

import pytest

from agent_brain import Action, Brain, ToolSearch, react
from agent_brain.testing import ScriptedLLM
from tests.tools.mcp.support import config, script, until

pytestmark = pytest.mark.anyio


async def test_tools_of_servers_are_found_also_new_ones():
    model = ScriptedLLM(
        [
            [Action(name="search_tools", args={"query": "get a tool"})],
            [Action(name="learn", args={"name": "dance"})],
            [Action(name="wait")],
            [Action(name="search_tools", args={"query": "dance"})],
            [Action(name="dance")],
            "Done.",
        ]
    )
    servers = config(changing=script("changing"))
    search = ToolSearch(always="wait")
    async with await Brain.create(react(model), tools=[servers, search]) as brain:
        [source] = brain._sources

        async def wait() -> str:
            tools = brain.memory.available_tools
            await until(lambda: source.changed or "dance" in tools)
            return "changed"

        brain.memory.add_tools([wait])
        result = await brain.run("Learn to dance")
        assert [*brain.memory.offered_tools()][-1] == "dance"

    assert [tool.name for tool in model.calls[0].tools] == ["search_tools", "wait"]
    assert result.messages[-2].content == "dance was learned"
