"""The smaller tools, and the conformance suite on all of them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, Message, MessagesMemory, react
from agent_brain.memories import Role
from agent_brain.memories.views.truncated_results import read_result
from agent_brain.testing import FakeMemory, ScriptedLLM, tool_conformance
from agent_brain.tools import Action, InputNeeded, ToolContext, ToolError, call_tool
from agent_brain.tools.builtin import (
    ask_user,
    calculate,
    clock_tool,
    convert_units,
    current_time,
    file_tools,
    http_get_tool,
    memory_search_tool,
)
from tests.support.conformance import pass_all

pytestmark = pytest.mark.anyio

FOLDER = Path(__file__).parent
FILES = file_tools(FOLDER, max_bytes=100_000)
CASES: list[tuple[Any, dict[str, Any]]] = [
    (calculate, {"expression": "2**10"}),
    (convert_units, {"value": 1, "from_unit": "mile", "to_unit": "km"}),
    (current_time, {"zone": "Europe/Rome"}),
    (FILES["read_file"], {"path": "__init__.py"}),
    (FILES["list_files"], {"path": "."}),
    (FILES["search_files"], {"query": "nothing"}),
    (FILES["search_pattern"], {"regex": "^from"}),
    (memory_search_tool(FakeMemory("Rome")), {"query": "rome"}),
]


@pytest.mark.parametrize("tool, good", CASES, ids=lambda given: getattr(given, "name", ""))
async def test_every_tool_conforms(tool, good):
    await pass_all(tool_conformance(tool, good))


@pytest.mark.parametrize(
    "expression, result",
    [
        ("(3 + 4) * 2 ** 5", "224"),
        ("0.1 + 0.2", "0.3"),
        ("sqrt(2)", "1.41421356237"),
        ("50% * 8", "4"),
    ],
)
async def test_calculate(expression, result):
    assert await calculate.execute(expression=expression) == result


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('true')",
        "9**9**9**9",
        "(" * 500,
        "1/0",
        "2" * 2000,
        "@ + 1",
        "factorial(501)",
        "x",
        "",
    ],
)
async def test_calculate_refuses(expression):
    with pytest.raises(ToolError, match="Cannot calculate"):
        await calculate.execute(expression=expression)


async def test_convert_units():
    assert (
        await convert_units.execute(value=100, from_unit="fahrenheit", to_unit="celsius")
        == 37.77777777777778
    )
    with pytest.raises(ToolError, match="measures mass and metre measures length"):
        await convert_units.execute(value=1, from_unit="kg", to_unit="m")


async def test_the_time_anywhere():
    tool = clock_tool(lambda zone: datetime(2026, 3, 1, 23, 30, tzinfo=UTC).astimezone(zone))
    assert await tool.execute(zone="Tokyo") == {
        "date": "2026-03-02",
        "weekday": "Monday",
        "time": "08:30",
        "zone": "Tokyo",
    }
    assert (await current_time.execute())["date"] >= "2026"
    with pytest.raises(ToolError, match="There is no time zone 'Atlantis'"):
        await tool.execute(zone="Atlantis")


@pytest.mark.parametrize(
    "zone, time",
    [
        ("GMT+5", "17:00"),
        ("gmt-5", "07:00"),
        ("UTC+05:30", "17:30"),
        ("UTC +3", "15:00"),
        ("+0545", "17:45"),
        ("\u221203:30", "08:30"),
        ("GMT+0", "12:00"),
        ("GMT", "12:00"),
        ("utc", "12:00"),
        ("Z", "12:00"),
        ("UTC+14", "02:00"),
        ("Etc/GMT+5", "07:00"),  # an IANA name, whose sign is the other way round
        ("Asia/Kolkata", "17:30"),
        ("EST", "07:00"),
    ],
)
async def test_an_offset_from_greenwich_is_plus_to_the_east(zone, time):
    tool = clock_tool(lambda zone: datetime(2026, 3, 1, 12, tzinfo=UTC).astimezone(zone))
    assert (await tool.execute(zone=zone))["time"] == time


@pytest.mark.parametrize("zone", ["GMT+15", "UTC+99", "GMT+5:75", "", "GMT+", "+"])
async def test_what_is_not_a_zone(zone):
    with pytest.raises(ToolError, match="There is no time zone"):
        await current_time.execute(zone=zone)


async def test_asking_the_user():
    with pytest.raises(InputNeeded, match="Which one"):
        await ask_user.execute(question="Which one?")
    llm = ScriptedLLM([[Action(name="ask_user", args={"question": "Which one?"})], ["ok"]])
    brain = Brain(react(llm), tools=[ask_user])
    assert (await brain.run("go")).stop_reason == "input"
    await brain.resume(input="the red one")
    assert llm.calls[1].messages[-1].content == "the red one"


class Recalling(MessagesMemory):
    """A memory that ranks by itself."""

    async def recall(self, query: str, k: int = 10) -> list[Any]:
        class Recalled:
            message = Message.user(f"{query} {k}")

        return [Recalled]


async def search(memory: Any, query: str, **options: Any) -> str:
    tool = memory_search_tool()
    action = Action(name=tool.name, args={"query": query, **options})
    memory.next_actions = [action]
    context = ToolContext(action, memory)
    return (await call_tool(action, {tool.name: tool}, context)).content


async def test_searching_the_memory_of_the_run():
    memory = MessagesMemory()
    await memory.update([Message.user("I live in Rome"), Message.user("I like tea, and Rome too")])
    assert (await search(memory, "Where in ROME?")).endswith("user: I like tea, and Rome too")
    assert "live in Rome" in await search(memory, "who can live in rome", limit=1)
    assert await search(memory, "Paris") == "Nothing like that is remembered."
    assert (await search(Recalling(), "tea", limit=99)).endswith("user: tea 20")
    with pytest.raises(ToolError, match="no memory to search"):
        await memory_search_tool().invoke({"query": "x"})


async def test_the_call_that_searches_is_not_found():
    llm = ScriptedLLM([[Action(name="search_memory", args={"query": "search"})], ["ok"]])
    await Brain(react(llm), tools=[memory_search_tool()]).run("go")
    assert llm.calls[1].messages[-1].content == "Nothing like that is remembered."


async def test_http_get_says_what_it_is_for():
    assert http_get_tool(["example.com"]).description.startswith("Fetch a text")


async def test_parts_of_a_result_that_was_cut():
    memory = MessagesMemory()
    action = Action(name="long", id="c")
    full = "".join(f"{n:05}" for n in range(4000))
    message = Message.tool("cut", action, metadata={"full_result": full})
    await memory.update([Message.assistant("", [action]), message])
    context = ToolContext(action, memory)
    text = await read_result(context, "c", 5, 10)
    assert text == "0000100002\n[Characters 5 to 15 of 20000. Read on with offset=15.]"
    assert (await read_result(context, "c", 19_990, 10**9)).endswith("of 20000. This is the end.]")
    for args, why in [
        (("d",), "no shortened result of a call 'd'. Shortened results: c."),
        (("c", 20_000), "offset must be 0 to 19999"),
        (("c", -1), "offset must be"),
        (("c", 0, 0), "length at least 1"),
    ]:
        with pytest.raises(ToolError, match=why):
            await read_result(context, *args)
    assert [m.role for m in await memory.dump()] == [Role.ASSISTANT, Role.TOOL]
