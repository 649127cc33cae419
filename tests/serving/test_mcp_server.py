"""A brain as an MCP server, asked by the official client."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from mcp import Client, StdioServerParameters

from agent_brain import Brain, Limits
from agent_brain.cli.app import mcp as mcp_command
from agent_brain.errors import BrainDefinitionError, BrainUseError, LLMServerError
from agent_brain.serving import Conversations, make_server
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, report_progress
from tests.support.forked import forked

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

COMMAND = ["-m", "agent_brain", "mcp"]
IMPORTED = ("agent_brain.cli.session", "agent_brain.serving.mcp_server", "anyio._backends._asyncio")
WAITING = str(Path(__file__).parent / "waiting.py")
HTTPX_ON_TRIO = "ignore:Async generator 'http:ResourceWarning"  # the client's own affair
BOTH_PROTOCOLS = pytest.mark.parametrize(
    ("anyio_backend", "mode"), [("asyncio", "auto"), ("trio", "legacy")]
)
CUT_SHORT = (
    "'wait' was interrupted while it was running. It may or may not have taken effect, and was not "
    "run again"
)
QUESTION = "What is 17 + 25?"


def python() -> tuple[str, ...]:
    """Return what starts a program that serves."""
    return forked(*IMPORTED)


def text_of(result) -> str:
    return "\n".join(part.text for part in result.content)


def scripted(*turns, **options):
    """Makes brains that play the turns, one conversation like the other, and remembers them."""
    return Maker(turns, options)


class Maker:
    def __init__(self, turns, options):
        self.turns, self.options = turns, options
        self.made: list[Brain] = []

    def __call__(self) -> Brain:
        self.made.append(Brain(llm=ScriptedLLM(self.turns), **self.options))
        return self.made[-1]


async def test_an_answer_has_text_and_structure():
    make = scripted("Forty-two.")
    async with Conversations(make) as conversations, Client(make_server(conversations)) as client:
        [tool] = (await client.list_tools()).tools
        result = await client.call_tool("ask", {"question": QUESTION})

    assert (tool.name, tool.input_schema["required"]) == ("ask", ["question"])
    assert text_of(result) == "Forty-two."
    assert result.structured_content == {
        "answer": "Forty-two.",
        "conversation": "stdio",
        "stop_reason": "done",
    }


async def test_one_connection_is_one_conversation():
    make = scripted("One.", "Two.")
    async with Conversations(make) as conversations, Client(make_server(conversations)) as client:
        for question in ("First?", "Second?"):
            await client.call_tool("ask", {"question": question})

    [brain] = make.made
    assert [m.content for m in await brain.memory.context()] == [
        "First?",
        "One.",
        "Second?",
        "Two.",
    ]


async def test_events_are_reported_as_progress():
    def dig() -> str:
        """Dig."""
        report_progress(1, 2, "half way")
        return "dug"

    make = scripted([Action(name="dig")], "Done.", tools=[dig])
    told = []

    async def on_progress(progress, total, message):
        told.append((progress, message))

    async with Conversations(make) as conversations, Client(make_server(conversations)) as client:
        await client.call_tool("ask", {"question": "Dig."}, progress_callback=on_progress)

    assert told == [
        (1, "REASONING"),
        (2, "calls dig"),
        (3, "ACTION"),
        (4, "dig: half way"),
        (5, "dig is done"),
        (6, "REASONING"),
        (7, "ANSWER"),
    ]


async def test_cancelling_a_call_cancels_the_run_and_the_conversation_continues():
    begun, ended = anyio.Event(), anyio.Event()

    async def wait() -> str:
        """Wait."""
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.set()
        return ""

    make = scripted([Action(name="wait")], "Still here.", tools=[wait])
    async with Conversations(make) as conversations, Client(make_server(conversations)) as client:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "ask", {"question": "Wait."})
            await begun.wait()
            tasks.cancel_scope.cancel()
        with anyio.fail_after(60):
            await ended.wait()
            result = await client.call_tool("ask", {"question": "Are you there?"})

    assert text_of(result) == "Still here."
    [brain] = make.made
    assert [m.content for m in await brain.memory.dump() if m.is_error] == [CUT_SHORT]


async def test_a_run_that_was_stopped_says_so():
    make = scripted([Action(name="x")], "…", limits=Limits(max_steps=1))
    async with Conversations(make) as conversations, Client(make_server(conversations)) as client:
        result = await client.call_tool("ask", {"question": "Go on."})

    assert result.structured_content["stop_reason"] == "max_steps"
    assert "(The agent was stopped: max_steps.)" in text_of(result)


async def test_expected_errors_are_reported_and_unexpected_ones_hidden():
    make = scripted(ZeroDivisionError("a secret"))
    async with Conversations(make) as conversations, Client(make_server(conversations)) as client:
        empty = await client.call_tool("ask", {"question": " "})
        crashed = await client.call_tool("ask", {"question": "Hello?"})

    assert (empty.is_error, crashed.is_error) == (True, True)
    assert "The task is empty: say what is to be done" in text_of(empty)
    assert "a secret" not in text_of(crashed)


async def test_no_client_reads_a_secret_of_an_error():
    make = scripted(LLMServerError("refused: sk-proj-abcdefgh12345678"))
    async with Conversations(make) as conversations, Client(make_server(conversations)) as client:
        refused = await client.call_tool("ask", {"question": "Hello?"})

    assert refused.is_error
    assert "refused: [hidden]" in text_of(refused)


async def test_conversations_are_separate_and_the_oldest_is_evicted():
    make = scripted("Hello.")
    async with Conversations(make, most=2) as conversations:
        names = []
        for _ in range(3):
            async with conversations.take(None) as turn:
                names.append(turn.name)
        async with conversations.take(names[2]) as turn:
            assert turn.brain is make.made[2]
        with pytest.raises(BrainUseError, match="There is no such conversation"):
            async with conversations.take(names[0]):
                pass

    assert len(set(names)) == 3
    assert all(len(name) >= 20 for name in names)


async def test_a_conversation_that_is_evicted_meanwhile_is_not_created_again():
    closing, closed = anyio.Event(), anyio.Event()
    made = []

    class SlowToClose(Brain):
        async def aclose(self):
            closing.set()
            await closed.wait()
            await super().aclose()

    def make_brain():
        made.append(SlowToClose(llm=ScriptedLLM([])))
        return made[-1]

    async with Conversations(make_brain, most=1) as conversations:
        async with conversations.take(None) as turn:
            name = turn.name

        async def start_another():
            async with conversations.take(None):
                pass

        async def release():
            await anyio.wait_all_tasks_blocked()
            closed.set()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(start_another)
            await closing.wait()
            tasks.start_soon(release)
            with pytest.raises(BrainUseError, match="There is no such conversation"):
                async with conversations.take(name):
                    pass
    assert len(made) == 2


async def test_a_conversation_in_use_is_not_evicted():
    make = scripted("Hello.")
    async with Conversations(make, most=1) as conversations:
        async with conversations.take(None) as first:
            async with conversations.take(None):
                pass
            async with conversations.take(None, own="other"):
                pass
        async with conversations.take(first.name) as again:
            assert again.brain is first.brain


async def test_turns_of_one_conversation_come_one_after_the_other():
    order = []
    async with Conversations(scripted("Hello.")) as conversations:

        async def turn(number):
            async with conversations.take(None, own="mine"):
                order.append(number)
                await anyio.lowlevel.checkpoint()
                order.append(number)

        async with anyio.create_task_group() as tasks:
            for number in (1, 2):
                tasks.start_soon(turn, number)

    assert order[0] == order[1]
    assert order[2] == order[3]


@BOTH_PROTOCOLS
async def test_the_command_serves_over_stdio(mode):
    server = StdioServerParameters(
        command=python()[0], args=[*python()[1:], *COMMAND, "react", "--model", "demo"]
    )
    async with Client(server, mode=mode) as client:
        first = await client.call_tool("ask", {"question": QUESTION})
        second = await client.call_tool("ask", {"question": "And what is 2 * 21?"})

    assert "42" in text_of(first)
    assert "42" in text_of(second)
    assert first.structured_content["conversation"] == second.structured_content["conversation"]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_options_override_the_file(tmp_path):
    net = tmp_path / "net.toml"
    net.write_text('net = "react"\nmodel = "demo"\n[limits]\nmax_steps = 50\n')
    server = StdioServerParameters(
        command=python()[0], args=[*python()[1:], *COMMAND, str(net), "--max-steps", "1"]
    )
    async with Client(server) as client:
        result = await client.call_tool("ask", {"question": QUESTION})

    assert result.structured_content["stop_reason"] == "max_steps"


@contextmanager
def serving(*arguments: str) -> Iterator[str]:
    """Where a program serves over HTTP, as it says on stderr."""
    with subprocess.Popen([*python(), *arguments], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            assert "http://127.0.0.1:" in line, line
            yield line.split()[-1]
        finally:
            process.terminate()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(*COMMAND, "--http", "0", "--model", "demo") as address:
        yield address


async def wait_and_cancel(client: Client) -> str:
    """Cancel a call whose run has begun to wait; what the server then says of that run."""
    begun = anyio.Event()

    async def on_progress(progress, total, message):
        if message == "ACTION":
            begun.set()

    async def ask() -> None:
        await client.call_tool("ask", {"question": "Wait."}, progress_callback=on_progress)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await begun.wait()
            tasks.cancel_scope.cancel()
        return text_of(await client.call_tool("ask", {"question": "How did it end?"}))


@BOTH_PROTOCOLS
async def test_over_stdio_cancelling_a_call_cancels_the_run(mode):
    server = StdioServerParameters(command=python()[0], args=[*python()[1:], WAITING])
    async with Client(server, mode=mode) as client:
        assert await wait_and_cancel(client) == CUT_SHORT


@pytest.mark.thorough
@pytest.mark.filterwarnings(HTTPX_ON_TRIO)
@BOTH_PROTOCOLS
async def test_over_http_cancelling_a_call_cancels_the_run(mode):
    with serving(WAITING, "http") as address:
        async with Client(address, mode=mode) as client:
            assert await wait_and_cancel(client) == CUT_SHORT


@pytest.mark.filterwarnings(HTTPX_ON_TRIO)
async def test_over_http_a_client_continues_by_name(url):
    async with Client(url) as client:
        first = await client.call_tool("ask", {"question": QUESTION})
        name = first.structured_content["conversation"]
        again = await client.call_tool("ask", {"question": QUESTION, "conversation": name})
        other = await client.call_tool("ask", {"question": QUESTION})
        wrong = await client.call_tool("ask", {"question": QUESTION, "conversation": "mine"})

    assert "42" in text_of(first)
    assert again.structured_content["conversation"] == name
    assert other.structured_content["conversation"] != name
    assert wrong.is_error
    assert "There is no such conversation" in text_of(wrong)


@pytest.mark.filterwarnings(HTTPX_ON_TRIO)
async def test_over_http_an_older_client_has_a_conversation_a_session(url):
    names = []
    for _ in range(2):
        async with Client(url, mode="legacy") as client:
            for _ in range(2):
                result = await client.call_tool("ask", {"question": QUESTION})
                names.append(result.structured_content["conversation"])

    assert names[0] == names[1]
    assert names[2] == names[3]
    assert names[0] != names[2]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_brain_may_ask_another_one():
    server = {"command": python()[0], "args": [*python()[1:], *COMMAND, "--model", "demo"]}
    model = ScriptedLLM([[Action(name="ask", args={"question": QUESTION})], "It says so."])
    servers = {"mcpServers": {"other": server}}
    async with await Brain.create(tools=[servers], llm=model) as brain:
        result = await brain.run("Ask the other one.")

    [answer] = [m.content for m in result.messages if m.role == "tool"]
    assert "42" in answer


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_the_command_uses_servers_itself(tmp_path):
    config = tmp_path / "servers.json"
    server = {"command": python()[0], "args": [*python()[1:], *COMMAND, "--model", "demo"]}
    config.write_text(json.dumps({"mcpServers": {"other": server}}))
    arguments = [*python()[1:], *COMMAND, "--model", "demo", "--mcp", str(config)]
    async with Client(StdioServerParameters(command=python()[0], args=arguments)) as client:
        result = await client.call_tool("ask", {"question": QUESTION})

    assert "42" in text_of(result)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--http", "nowhere"], "write a port, or host:port"),
        (["--http", "70000"], "write a port, or host:port"),
        (["no_such_net"], "no_such_net"),
        (["gone.toml"], "gone.toml"),
        (["--max-steps", "0"], "0 is not in the range"),
    ],
)
def test_mistakes_are_reported_before_anything_is_served(arguments, said, capsys):
    with pytest.raises(SystemExit) as ending:
        mcp_command([*arguments, "--model", "demo"])

    assert ending.value.code == 2
    assert said in capsys.readouterr().err


async def test_without_the_package_the_error_says_how_to_get_it(monkeypatch):
    from agent_brain import serving

    monkeypatch.setitem(sys.modules, "agent_brain.serving.mcp_server", None)
    for name in ("mcp_server", "serve"):
        monkeypatch.delattr(serving, name, raising=False)

    with pytest.raises(BrainDefinitionError, match=r"pip install 'agent-brain\[mcp\]'"):
        _ = serving.serve
