"""Conversations that use MCP servers: how many there are, how long they live, and when they end."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agent_brain import Brain
from agent_brain.errors import BrainUseError
from agent_brain.serving import Conversations
from agent_brain.serving.conversations import SharedServers
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from agent_brain.tools.mcp import McpServerError
from tests.tools.mcp.support import children, config, hosts, nothing_left, script, until

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


def make_brain() -> Brain:
    return Brain(llm=ScriptedLLM([[Action(name="pid")], lambda messages: messages[-1].content] * 9))


@pytest.fixture
async def nothing_leaks(anyio_backend):
    await anyio.to_thread.run_sync(int)
    with nothing_left():
        yield


async def pid_in(conversations: Conversations, name: str | None) -> tuple[str, str]:
    """The process that answers in a conversation, and the conversation."""
    async with conversations.take(name) as turn:
        return (await turn.brain.run("Who?")).answer, turn.name


@pytest.mark.usefixtures("nothing_leaks")
@pytest.mark.parametrize("most", [1, 2, 3])
async def test_all_conversations_share_one_connection_and_the_oldest_ends(most):
    before = children()
    servers = SharedServers([config(s=script("odd", "plain"))])
    async with Conversations(make_brain, most=most, servers=servers) as conversations:
        answers = [await pid_in(conversations, None) for _ in range(5)]
        again, _ = await pid_in(conversations, answers[-1][1])
        kept = [name for _, name in answers if name in conversations._known]
        started = children() - before

    assert {pid for pid, _ in answers} == {again} == set(map(str, started))
    assert kept == [name for _, name in answers[-most:]]


@pytest.mark.usefixtures("nothing_leaks")
async def test_many_at_once_share_one_connection():
    before = children()
    servers = SharedServers([config(s=script("odd", "plain"))])
    pids: list[str] = []

    async def one() -> None:
        pids.append((await pid_in(conversations, None))[0])

    async with Conversations(make_brain, most=2, servers=servers) as conversations:
        async with anyio.create_task_group() as tasks:
            for _ in range(6):
                tasks.start_soon(one)
        assert len(children() - before) == 1

    assert len(pids) == 6
    assert len(set(pids)) == 1


@pytest.mark.usefixtures("nothing_leaks")
async def test_unused_servers_are_closed_and_reopened():
    before, threads = children(), hosts()
    servers = SharedServers([config(s=script("odd", "plain"))])
    async with Conversations(make_brain, servers=servers, servers_idle=0.05) as conversations:
        first, name = await pid_in(conversations, None)
        await until(lambda: children() == before and hosts() == threads)
        second, _ = await pid_in(conversations, name)

    assert first != second
    assert second.isdigit()


@pytest.mark.usefixtures("nothing_leaks")
async def test_servers_in_use_do_not_end():
    servers = SharedServers([config(s=script("odd", "plain"))])
    async with (
        Conversations(make_brain, servers=servers, servers_idle=0.02) as conversations,
        conversations.take(None) as turn,
    ):
        first = (await turn.brain.run("Who?")).answer
        for _ in range(3):  # time passes
            with anyio.move_on_after(0.03):
                await anyio.sleep_forever()
        second = (await turn.brain.run("Who?")).answer

    assert first == second


async def test_unused_conversations_end():
    async with Conversations(make_brain, idle=0.05) as conversations:
        async with conversations.take(None) as turn:
            name = turn.name
            with anyio.move_on_after(0.15):
                await anyio.sleep_forever()
            assert name in conversations._known
        await until(lambda: not conversations._known)
        with pytest.raises(BrainUseError, match="There is no such conversation"):
            async with conversations.take(name):
                pass


@pytest.mark.usefixtures("nothing_leaks")
async def test_a_server_that_cannot_be_started_leaves_no_brain_behind():
    closed: list[Any] = []

    class Watched(Brain):
        async def aclose(self) -> None:
            closed.append(self)
            await super().aclose()

    servers = SharedServers([config(s=script("odd", "dies"))])
    make = lambda: Watched(llm=ScriptedLLM([]))  # noqa: E731
    async with Conversations(make, servers=servers) as conversations:
        with pytest.raises(McpServerError, match="cannot open the database"):
            async with conversations.take(None):
                pass
        assert not conversations._known

    assert len(closed) == 1


@pytest.mark.parametrize("option", ["most", "idle", "servers_idle"])
@pytest.mark.parametrize("value", [0, -1, float("nan")])
async def test_limits_must_be_greater_than_zero(option, value):
    options: dict[str, Any] = {option: value}
    with pytest.raises(BrainUseError, match=f"{option} must be greater than 0"):
        Conversations(make_brain, **options)


@pytest.mark.usefixtures("nothing_leaks")
async def test_a_tool_that_a_server_learns_reaches_every_conversation():
    def make() -> Brain:
        turns: list[Any] = [
            [Action(name="learn")],
            "Learnt.",
            [Action(name="fly")],
            lambda m: m[-1].content,
        ]
        return Brain(llm=ScriptedLLM(turns))

    servers = SharedServers([config(s=script("odd", "plain"))])
    async with (
        Conversations(make, servers=servers) as conversations,
        conversations.take(None) as one,
        conversations.take(None) as other,
    ):
        await one.brain.run("Learn.")
        await until(lambda: servers.changed or servers.generation > 1)
        await other.brain.run("Learn too.")
        offered = set(other.brain.memory.available_tools)
        answer = (await one.brain.run("Fly.")).answer

    assert "fly" in offered
    assert answer == "hello"


@pytest.mark.usefixtures("nothing_leaks")
async def test_a_tool_that_another_conversation_has_found_is_offered_too():
    scripts: list[list[Any]] = [
        [[Action(name="learn")], "Learnt.", "Still here."],
        [[Action(name="fly")], lambda m: m[-1].content],
    ]
    servers = SharedServers([config(s=script("odd", "plain"))])
    async with (
        Conversations(lambda: Brain(llm=ScriptedLLM(scripts.pop(0))), servers=servers) as known,
        known.take(None) as one,
        known.take(None) as other,
    ):
        await one.brain.run("Learn.")
        await until(lambda: servers.changed or servers.generation > 1)
        await one.brain.run("Are you there?")
        found = servers.generation, servers.changed
        answer = (await other.brain.run("Fly.")).answer

    assert found == (2, False)
    assert answer == "hello"
