"""Groups of tools."""

from __future__ import annotations

import pytest

from agent_brain import Brain, MessagesMemory, react
from agent_brain.memories import Role, Snapshot
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import (
    Action,
    BaseTool,
    ToolArgumentsError,
    ToolDefinitionError,
    Toolset,
    tool,
)

pytestmark = pytest.mark.anyio


@tool
async def read(path: str) -> str:
    """Read."""
    return f"read {path}"


@tool
async def write(path: str) -> str:
    """Write."""
    return f"wrote {path}"


class Named(BaseTool):
    """A tool that uses its own name."""

    def __init__(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
        super().__init__(
            "named", "Says its name.", schema, max_concurrency=1, requires_approval=True
        )

    async def execute(self, **kwargs: object) -> str:
        return self.name


NAMED = Named()
BOTH = Toolset([read, write])


async def is_named(_: object) -> bool:
    return False


def names(tools: Toolset) -> list[str]:
    return [tool.name for tool in tools]


def test_toolsets_are_put_together_and_flattened():
    def search(text: str) -> str:
        """Search."""
        return text

    tools = Toolset([BOTH, NAMED]) + Toolset([search])
    assert names(tools) == ["read", "write", "named", "search"]
    assert (len(tools), "read" in tools, tools["write"] is write) == (4, True, True)
    assert names(Toolset([BOTH, read])) == ["read", "write"]
    assert repr(BOTH) == "Toolset(read, write)"


@pytest.mark.parametrize(
    "allow, deny, left",
    [
        ("read", None, ["read"]),
        ("*", "w*", ["read"]),
        (["re*", "write"], None, ["read", "write"]),
        (lambda tool: tool.name == "write", None, ["write"]),
        (None, lambda tool: True, []),
    ],
)
def test_toolsets_are_filtered(allow, deny, left):
    assert names(BOTH.filter(allow=allow, deny=deny)) == left


async def test_tools_are_renamed_and_work_as_before():
    tools = Toolset([read, NAMED]).renamed({"read": "open"}).prefixed("my_")
    assert names(tools) == ["my_open", "my_named"]
    assert await tools["my_open"].invoke({"path": "x"}) == "read x"
    named = tools["my_named"]
    assert await named.invoke({"a": 1}) == "named"
    assert await named.execute(a=1) == "named"
    assert (named.limiter, named.requires_approval) == (NAMED.limiter, True)
    for wrong in (tools["my_open"], named):
        with pytest.raises(ToolArgumentsError, match=f"for tool '{wrong.name}'"):
            await wrong.invoke({})
    assert read.name == "read"
    assert names(BOTH.renamed(str.upper)) == ["READ", "WRITE"]


@pytest.mark.parametrize(
    "make, why",
    [
        (
            lambda: BOTH.renamed({"raed": "x"}),
            "no tool 'raed' to rename. The tools are: read, write",
        ),
        (lambda: BOTH.renamed({"read": "write"}), "Two tools are named 'write'"),
        (lambda: BOTH.prefixed("a b "), "its name must be"),
        (lambda: Toolset([NAMED]).prefixed("a b "), "its name must be"),
        (lambda: Toolset([3]), "3 is not a tool"),  # type: ignore[list-item]
        (lambda: BOTH.filter(allow=[3]), "does not select tools"),  # type: ignore[list-item]
        (lambda: BOTH.filter(deny=is_named), "must not be async"),
        (lambda: MessagesMemory([BOTH]).allow_tools(allow=is_named), "must not be async"),
        (lambda: names(BOTH.filter(allow=lambda each: is_named(each))), "must not be async"),
        (
            lambda: MessagesMemory([BOTH, tool(name="read")(lambda: 1)]),
            "Two tools are named 'read'",
        ),
    ],
)
def test_what_cannot_be_put_together_is_refused(make, why):
    with pytest.raises(ToolDefinitionError, match=why):
        make()


async def test_toolsets_go_wherever_tools_go():
    memory = MessagesMemory(BOTH)
    assert list(memory.available_tools) == ["read", "write"]
    brain = Brain(react(ScriptedLLM(["ok"])), tools=[BOTH.prefixed("a_"), NAMED])
    assert list(brain.memory.available_tools) == ["a_read", "a_write", "named"]


@pytest.mark.parametrize(
    "options, offered",
    [
        ({"allow": "r*"}, ["read"]),
        ({"deny": ["read"]}, ["write"]),
        ({"allow": lambda tool: tool is write}, ["write"]),
        ({"allow": "*", "deny": lambda tool: tool is write}, ["read"]),
        ({"allow": []}, []),
        ({}, ["read", "write"]),
    ],
)
async def test_a_run_sees_the_tools_that_were_chosen_also_after_a_restart(options, offered):
    memory = MessagesMemory(BOTH)
    memory.allow_tools(**options)
    text = (await memory.snapshot()).model_dump_json()
    memory = MessagesMemory(BOTH)
    await memory.restore(Snapshot.from_json(text))
    llm = ScriptedLLM(["ok"])
    await Brain(react(llm), memory).run("go")
    assert [tool.name for tool in llm.calls[0].tools] == offered
    assert list(memory.offered_tools()) == offered


async def test_a_call_of_a_tool_that_is_not_offered_is_refused():
    memory = MessagesMemory(BOTH)
    memory.allow_tools(deny="write")
    llm = ScriptedLLM([[Action(name="write", args={"path": "x"}), Action(name="wriet")], ["ok"]])
    await Brain(react(llm), memory).run("go")
    told = [m.content for m in await memory.dump() if m.role is Role.TOOL]
    assert told[0] == "'write' may not be used for this goal: it was not run"
    assert "There is no tool 'wriet'. Available tools: read." in told[1]
    assert "write" not in memory.list_tools()
