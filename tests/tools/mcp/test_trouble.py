"""Servers that die, hang, send garbage or change: what a model reads, and what remains."""

from __future__ import annotations

import logging
import os
import signal

import anyio
import pytest

from agent_brain import Brain
from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from agent_brain.tools.mcp import McpServerError, McpTools
from tests.tools.mcp.support import call, children, config, http_server, script, until

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.also_on_trio,
    pytest.mark.usefixtures("nothing_leaks"),
]


def is_up(connection):
    return connection._state == "up" and not connection._wire.over.is_set()


async def test_a_server_that_is_killed_in_the_middle_of_a_call_is_started_again():
    async with await McpTools.open([config(s=script("odd", "plain"))]) as mcp:
        pid = int((await call(mcp, "pid")).content)
        outcome = None

        async def ask() -> None:
            nonlocal outcome
            outcome = await call(mcp, "silence")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await call(mcp, "hello")  # its answer shows that the first question has arrived
            os.kill(pid, signal.SIGKILL)
        await until(lambda: mcp.changed)
        await mcp.refresh()
        again = int((await call(mcp, "pid")).content)

    assert outcome is not None
    assert outcome.is_error
    assert outcome.content == (
        "MCP server 's' stopped before it answered; the request may or may not have been executed"
    )
    assert again != pid


async def test_while_a_server_is_being_started_again_its_calls_say_so(tmp_path):
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    server = config(s=script("odd", "slow", str(gate)))
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, gate.write_text, "go")
        mcp = await McpTools.open([server])
    async with mcp:
        await call(mcp, "die")
        meanwhile = await call(mcp, "hello")
        await anyio.to_thread.run_sync(gate.write_text, "go")
        await until(lambda: mcp.changed)
        afterwards = await call(mcp, "hello")

    assert meanwhile.is_error
    assert "has stopped and is being restarted" in meanwhile.content
    assert afterwards.content == "hello"


async def test_a_server_that_cannot_be_started_again_stays_away_and_says_why(tmp_path):
    server = config(s=script("odd", "once", str(tmp_path / "marker")))
    async with await McpTools.open([server]) as mcp:
        await call(mcp, "die")
        connection = mcp._connections[0]
        await until(lambda: connection._state == "gone")
        outcome = await call(mcp, "hello")
        await mcp.refresh()

    assert "has stopped and was not restarted: it stopped; its stderr ended with" in outcome.content
    assert "not again" in outcome.content
    assert "hello" in {tool.name for tool in mcp.tools}


async def test_a_server_that_dies_of_every_call_is_started_again_once():
    async with await McpTools.open([config(s=script("odd", "chatty"))]) as mcp:
        connection = mcp._connections[0]
        await call(mcp, "die")
        await until(lambda: is_up(connection))
        await call(mcp, "die")
        await until(lambda: connection._state == "gone")
        outcome = await call(mcp, "hello")

    assert "has stopped and was not restarted" in outcome.content


async def test_a_server_that_has_answered_since_is_started_again_again():
    async with await McpTools.open([config(s=script("odd", "chatty"))]) as mcp:
        connection = mcp._connections[0]
        for _ in range(2):
            await call(mcp, "die")
            await until(lambda: is_up(connection))
            assert (await call(mcp, "hello")).content == "hello"


async def test_a_server_that_dies_at_start_is_quoted_without_its_secrets(monkeypatch):
    monkeypatch.setenv("A_SECRET", "s3cr3t-value")
    server = config(s=script("odd", "dies", env={"TOKEN": "${A_SECRET}"}))

    with pytest.raises(McpServerError) as caught:
        await McpTools.open([server])

    assert str(caught.value) == (
        "MCP server 's' stopped; its stderr ended with:\ncannot open the ***"
    )


async def test_a_server_that_hangs_at_start_is_given_up():
    with pytest.raises(McpServerError, match=r"'s' did not answer within 0.3 s"):
        await McpTools.open([config(s=script("odd", "hangs", startTimeout=0.3))])


async def test_a_server_that_sends_garbage_is_given_up_and_quoted():
    with pytest.raises(McpServerError) as caught:
        await McpTools.open([config(s=script("odd", "garbage", startTimeout=1))])

    assert "did not answer within 1 s; it also wrote to stdout" in str(caught.value)
    assert "Hello, I am no MCP server" in str(caught.value)


async def test_garbage_between_messages_does_no_harm_and_makes_no_noise(caplog):
    async with await McpTools.open([config(s=script("odd", "chatty"))]) as mcp:
        outcome = await call(mcp, "hello")

    assert outcome.content == "hello"
    assert [r.getMessage() for r in caplog.records if r.levelno > logging.DEBUG] == []


async def test_a_list_that_cannot_be_had_now_stays_as_it_was(caplog, monkeypatch):
    async with await McpTools.open([config(s=script("odd", "plain"))]) as mcp:
        before = mcp.tools
        connection = mcp._connections[0]
        connection.changed = True
        os.kill(int((await call(mcp, "pid")).content), signal.SIGKILL)
        await until(lambda: not is_up(connection))
        await mcp.refresh()
        assert mcp.tools == before
        await until(lambda: mcp.changed)
        await mcp.refresh()
        assert mcp.tools == before

    [record] = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert "has stopped and is being restarted" in record.getMessage()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # it takes its 4 seconds
async def test_a_server_that_does_not_end_is_ended():
    before = children()
    async with await McpTools.open([config(s=script("odd", "stubborn"))]) as mcp:
        await call(mcp, "hello")
        assert len(children() - before) == 1
    assert children() == before


async def test_cancelling_while_servers_start_leaves_nothing():
    servers = config(a=script("odd", "plain"), b=script("odd", "hangs"))
    before = children()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(McpTools.open, [servers])
        await until(lambda: len(children() - before) == 2)
        cancelled_at = anyio.current_time()
        tasks.cancel_scope.cancel()

    assert (
        anyio.current_time() - cancelled_at < CLEANUP_SECONDS
    )  # nobody waited for the one that hangs


@pytest.mark.thorough
async def test_a_server_over_http_that_goes_away_is_found_again_when_it_is_back():
    with http_server() as (url, process):
        mcp = await McpTools.open([url])
        first = await call(mcp, "add", a=1, b=2)
        process.kill()
        process.wait()
        gone = [await call(mcp, "add", a=1, b=2)]
        await until(lambda: mcp._connections[0]._state == "away")
        gone.append(await call(mcp, "add", a=1, b=2))
    async with mcp:
        with http_server(int(url.split(":")[2].split("/")[0])):
            back = await call(mcp, "add", a=1, b=2)

    assert (first.content, back.content) == ("3", "3")
    assert [outcome.is_error for outcome in gone] == [True, True]
    assert "stopped before it answered" in gone[0].content
    assert "is gone: it could not be reached: nothing answers" in gone[1].content


@pytest.mark.parametrize("server", ["changing", "odd"])  # they speak the newer, the older protocol
async def test_a_changed_list_is_taken_up_between_steps(server):
    model = ScriptedLLM(
        [
            [Action(name="learn", args={"name": "fly"})],
            [Action(name="fly")],
            [Action(name="forget", args={"name": "fly"})],
            [Action(name="fly")],
            "Done.",
        ]
    )
    async with await Brain.create(tools=[config(c=script(server, "plain"))], llm=model) as brain:
        mcp = brain._sources[0]
        result = await _run_waiting_for_changes(brain, mcp)

    answers = [m for m in result.messages if m.role == "tool"]
    assert [m.is_error for m in answers] == [False, False, False, True]
    assert "There is no tool 'fly'" in answers[3].content
    offered = [{tool.name for tool in call.tools} for call in model.calls]
    assert ["fly" in names for names in offered] == [False, True, True, False, False]
    assert all("learn" in names for names in offered)


async def _run_waiting_for_changes(brain, mcp):
    """Announcements and answers are sent separately: wait for both before the step ends."""
    from agent_brain.states.events import ActionFinished

    async with brain.stream("Go.") as run:
        async for event in run:
            if isinstance(event, ActionFinished) and event.action.name in ("learn", "forget"):
                await until(lambda: mcp.changed)
    return run.result
