"""Servers ask a person: the run waits, and the call is made again with the answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import Action, Brain, SQLiteJournal, WindowedMemory, react
from agent_brain.errors import ResumeError
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import InputNeeded
from agent_brain.tools.mcp import McpTools
from tests.tools.mcp.support import call, config, script

pytestmark = pytest.mark.anyio


def asking(**entry: Any) -> list[dict[str, Any]]:
    return [config(desk=script("asking", **entry))]


def calls(name: str, **args: Any) -> list[Action]:
    return [Action(name=name, args=args, id=f"call_{name}")]


def prompt(brain: Brain[Any]) -> str:
    """Return the question that waits."""
    waits = brain.memory.control.human_requests
    assert waits is not None
    [text] = waits.questions.values()
    return text


async def test_a_person_answers_days_later_in_another_process(tmp_path: Path):
    async def brain(*turns: Any) -> Brain[Any]:
        memory = WindowedMemory(journal=SQLiteJournal(tmp_path / "journal.db"), session="s")
        return await Brain.create(react(ScriptedLLM(turns)), memory, tools=asking())

    async with await brain(calls("book", flight="X1")) as first:
        assert (await first.run("Book a seat")).stop_reason == "input"
        assert prompt(first) == "The MCP server 'desk' asks: Which seat on X1?"
        await first.memory.aclose()
    async with await brain() as second:  # another process of the server, too
        with pytest.raises(ResumeError, match="31 is greater than the maximum of 30"):
            await second.resume(input={"row": 31})
        assert (await second.resume(input={"row": 3, "side": "window"})).stop_reason == "input"
        assert prompt(second).endswith("Row 3, really?")
        await second.memory.aclose()
    async with await brain("Booked.") as third:
        result = await third.resume(input='{"sure": true}')
        assert result.messages[-2].content == "X1: 3 window, 1 booked"
        await third.memory.aclose()


@pytest.mark.parametrize("nothing", ["", {"call_book": None}])
async def test_a_person_may_decline(nothing: object):
    turns = [calls("book", flight="X1"), "A pity."]
    async with await Brain.create(react(ScriptedLLM(turns)), tools=asking()) as brain:
        await brain.run("Book a seat")
        await brain.resume(input={"row": 3})
        with pytest.raises(ResumeError, match="The run waits for a person"):
            await brain.resume(input=None)
        result = await brain.resume(input=nothing)
    assert result.messages[-2].content == "not booked: decline"


async def test_where_nobody_can_be_asked_the_model_is_told():
    async with await McpTools.open(asking()) as mcp:
        outcome = await call(mcp, "book", flight="X1")
    assert outcome.content == "'book' has to ask a person, and nobody can be asked here"
    assert isinstance(outcome.exception, InputNeeded)
    async with await McpTools.open(asking(questions=False)) as mcp:
        outcome = await call(mcp, "book", flight="X1")
    assert outcome.is_error
    assert "form elicitation" in outcome.content


@pytest.mark.also_on_trio
async def test_servers_of_the_older_protocol_ask_too():
    turns = [calls("order"), "Tea it is."]
    servers = asking(olderProtocol=True)
    async with await Brain.create(react(ScriptedLLM(turns)), tools=servers) as brain:
        assert (await brain.run("A drink, please")).stop_reason == "input"
        assert prompt(brain).endswith("Which drink?")
        result = await brain.resume(input={"drink": "tea"})
    assert result.messages[-2].content == "cancel accept: drink='tea'"


async def test_a_question_without_fields_and_one_at_a_url_are_confirmed():
    turns = [calls("confirm"), "Paid."]
    servers = asking(olderProtocol=True)
    async with await Brain.create(react(ScriptedLLM(turns)), tools=servers) as brain:
        await brain.run("Pay")
        assert prompt(brain).endswith("Go on?")
        await brain.resume(input="yes")
        assert prompt(brain).endswith("Please pay\n\nOpen https://example.org/pay first.")
        result = await brain.resume(input="no")
    assert result.messages[-2].content == "accept decline"


@pytest.mark.also_on_trio
async def test_if_several_calls_run_the_older_protocol_does_not_say_which_one_asks():
    outcomes = []
    async with await McpTools.open(asking(olderProtocol=True)) as mcp:

        async def order() -> None:
            outcomes.append(await call(mcp, "order_two"))

        async with anyio.create_task_group() as group:
            group.start_soon(order)
            group.start_soon(order)
    for outcome in outcomes:
        assert outcome.content == (
            "decline\n\n[The server asked 'Which drink?' and was declined: several of its calls ran, "
            "and it does not say which one asks: make that call again alone]"
        )


async def test_a_form_that_cannot_be_used_is_declined_and_the_server_goes_on():
    async with await McpTools.open(asking(olderProtocol=True)) as mcp:
        outcomes = [await call(mcp, "odd") for _ in range(2)]
    for outcome in outcomes:
        assert outcome.content.startswith(
            "decline\n\n[The server asked 'How much?' and was declined"
        )
        assert "'float'" in outcome.content
