"""A model searches for tools, and is offered those that it has found."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from pydantic import JsonValue

from agent_brain import (
    Action,
    Brain,
    MessagesMemory,
    SQLiteJournal,
    TodoMemory,
    ToolSearch,
    WindowedMemory,
    react,
    tool,
)
from agent_brain.errors import ToolDefinitionError
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import BaseTool, Toolset, count_tokens

pytestmark = pytest.mark.anyio

APPS = {"github": "a repository", "mail": "the mailbox", "shop": "the web shop"}
VERBS = ("create", "list", "delete", "update", "get")
NOUNS = """issue branch invoice customer email appointment contact file folder ticket deployment
metric alert dashboard order refund product shipment coupon release""".split()


@cache
def many() -> list[BaseTool]:
    """Three hundred tools, each with a description of usual length."""

    def make(app: str, verb: str, noun: str) -> BaseTool:
        def use(id: str, note: str = "") -> str:  # noqa: A002
            return f"{verb} {noun} {id}"

        use.__doc__ = (
            f"{verb.capitalize()} one {noun} in {APPS[app]}, and return what it is then.\n\n"
            f"Args:\n    id: Which {noun}.\n    note: What to note about it."
        )
        return tool(name=f"{app}_{verb}_{noun}", requires_approval=verb == "delete")(use)

    return [make(app, verb, noun) for app in APPS for verb in VERBS for noun in NOUNS]


def search(query: str, **more: JsonValue) -> list[Action]:
    return [Action(name="search_tools", args={"query": query, **more})]


def call(name: str, **args: JsonValue) -> list[Action]:
    return [Action(name=name, args=args, id=f"call_{name}")]


def offered(model: ScriptedLLM) -> list[list[str]]:
    """Return the names of the tools of each request."""
    return [[tool.name for tool in call.tools] for call in model.calls]


@pytest.mark.also_on_trio
async def test_three_hundred_tools_take_the_room_of_one():
    turns = [search("delete an invoice of the shop", limit=2), call("shop_delete_invoice", id="7")]
    found = ScriptedLLM([*turns, "Done."])
    tools = many()
    brain = Brain(react(found), tools=[*tools, ToolSearch()])
    result = await brain.run("Delete invoice 7")
    assert result.stop_reason == "approval"  # as it would without a search
    assert (await brain.resume(approve=True)).messages[-2].content == "delete invoice 7"

    everything = MessagesMemory(tools)
    before = count_tokens(everything.list_tools())
    after = count_tokens(brain.memory.list_tools())
    print(f"tokens of the tools in a request: {before} without, {after} with two found")
    assert before > 25_000
    assert after < before / 50
    assert offered(found)[0] == ["search_tools"]
    assert len(offered(found)[1]) == 3
    assert {"search_tools", "shop_delete_invoice"} < {*offered(found)[1]}


async def test_what_was_found_survives_a_restart_and_a_fork(tmp_path):
    def brain(turns: list[object]) -> tuple[Brain, ScriptedLLM]:
        memory = WindowedMemory(
            [*many(), ToolSearch()], journal=SQLiteJournal(tmp_path / "j.db"), session="s"
        )
        model = ScriptedLLM(turns)
        return Brain(react(model), memory), model

    first, _ = brain([search("mail_delete_contact"), call("mail_delete_contact", id="1")])
    async with first.memory:
        assert (await first.run("Delete contact 1")).stop_reason == "approval"
    second, model = brain(["It is gone.", search("github release"), "And now?"])
    async with second.memory:
        result = await second.resume(approve=True)
        assert result.messages[-2].content == "delete contact 1"
        fork = await second.memory.fork()
        await second.run("And the releases?")
    assert "mail_delete_contact" in offered(model)[0]
    assert "mail_delete_contact" in fork.offered_tools()
    # the fork does not know what was found after it
    assert fork.control.found_tools != second.memory.control.found_tools
    assert offered(model)[-1][: len(offered(model)[0])] == offered(model)[0]


async def test_a_tool_that_was_not_found_yet_is_refused():
    model = ScriptedLLM([call("mail_get_email", id="1"), call("mail_get_emial", id="1"), "No."])
    result = await Brain(react(model), tools=[*many(), ToolSearch()]).run("Read my mail")
    told = [message for message in result.messages if message.role == "tool"]
    assert "must be found with 'search_tools' before it can be called" in told[0].content
    assert "Available tools: search_tools." in told[1].content


async def test_some_tools_are_always_offered_and_forbidden_ones_never_found():
    @tool
    def today() -> str:
        "Return the date."
        return "Monday"

    model = ScriptedLLM([search("issue in a repository", limit=20), search("xyzzy"), "Well."])
    memory = TodoMemory(MessagesMemory([*many(), today, ToolSearch(always=["today"])]))
    memory.allow_tools(deny="github_delete_*")
    result = await Brain(react(model), memory).run("Look around")
    told = [message.content for message in result.messages if message.role == "tool"]
    assert {"today", "search_tools", "add_todo"} <= {*offered(model)[0]}
    assert len(offered(model)[0]) < 10
    assert "github_create_issue" in told[0]
    assert "github_delete_issue" not in told[0]
    assert told[1].startswith("No tool fits these words")


@pytest.mark.parametrize("of_net", [False, True], ids=["memory", "net"])
@pytest.mark.parametrize("journal", [None, ":memory:"])
async def test_a_replay_offers_what_was_offered(journal, of_net):
    turns = [search("refund", limit=3), call("shop_get_refund", id="3"), "Done."]
    tools = [*many(), ToolSearch("shop_*")]
    memory = MessagesMemory(journal=journal and SQLiteJournal(journal), session="s")
    async with memory:
        llm = ScriptedLLM(turns)
        net = react(llm, tools=tools if of_net else [])
        brain = Brain(net, memory, [] if of_net else tools, trace=True)
        assert (await brain.run("What about refund 3?")).answer == "Done."
        assert len(llm.calls[-1].tools) == 200 + 1 + 3
        replay = await brain.replay()
    assert replay.equal, replay
    assert replay.requests == 3


@pytest.mark.parametrize("option", ["search", "always"])
async def test_a_name_that_no_tool_has_is_refused(option: str) -> None:
    names: dict[str, Any] = {option: ["shop_*", "mail_list_emial"]}
    search = ToolSearch(**names)
    brain = Brain(react(ScriptedLLM(["Done."])), tools=[*many(), search])
    text = (
        rf"ToolSearch\({option}='mail_list_emial'\): there is no tool 'mail_list_emial'\. "
        "Did you mean 'mail_list_email'"
    )
    with pytest.raises(ToolDefinitionError, match=text):
        await brain.run("Read my mail")


def test_it_cannot_be_renamed_and_takes_names():
    with pytest.raises(ToolDefinitionError, match="put ToolSearch\\(\\) behind the toolset"):
        Toolset([ToolSearch()]).prefixed("a_")
    with pytest.raises(ToolDefinitionError, match=r"ToolSearch\(search=\[1\]\)"):
        ToolSearch([1])  # type: ignore[list-item]
    with pytest.raises(ToolDefinitionError, match=r"ToolSearch\(always=3\): names"):
        ToolSearch(always=3)  # type: ignore[arg-type]
