"""The prompts of a model, and the part of the memory that it sees."""

from __future__ import annotations

import pytest

from agent_brain.memories import Memory, Message, Role
from agent_brain.states.prompts import UNTRUSTED, assemble
from agent_brain.testing import FakeMemory
from tests.states.helpers import add

pytestmark = pytest.mark.anyio


async def first(memory: Memory, prompt, tools=()) -> str:
    return (await assemble(memory, prompt, tools))[0].content


async def test_placeholders_are_filled_in():
    text = await first(FakeMemory("Why?"), "{goal} / {tools} / {goal}", [add])

    goal, tools, again = text.split(" / ")
    assert goal == again == "Why?"
    assert tools.startswith('{"add": {"description"')


async def test_other_braces_are_left_alone():
    prompt = '{"name": {x}} {{goal}} {} {goal.id} {0} {goal!r} {'

    assert await first(FakeMemory("Why?"), prompt) == prompt.replace("{goal}", "Why?")


async def test_braces_in_the_goal_are_not_filled_in_again():
    assert await first(FakeMemory("{tools} {goal}"), "Goal: {goal}") == "Goal: {tools} {goal}"


async def test_without_a_goal_the_placeholder_is_empty():
    assert await first(FakeMemory(), "Goal: {goal}.") == "Goal: ."


async def test_a_prompt_may_be_a_function_of_the_memory():
    def prompt(memory: Memory) -> str:
        return f"{len(memory.available_tools)} tools, {{goal}}"

    text = await first(FakeMemory("Why?", tools=[add]), prompt)
    assert text.splitlines() == ["1 tools, {goal}", "", UNTRUSTED]


async def test_a_prompt_may_be_an_async_function():
    async def prompt(memory: Memory) -> str:
        return (await memory.goal())[0].content.upper()

    assert await first(FakeMemory("Why?"), prompt) == "WHY?"


@pytest.mark.parametrize("prompt", ["", lambda memory: ""])
async def test_an_empty_prompt_is_left_out(prompt):
    messages = await assemble(FakeMemory("Why?"), prompt)

    assert [m.role for m in messages] == [Role.USER]


async def test_the_list_of_a_memory_is_not_written_to():
    class Sharing(FakeMemory):
        async def context(self) -> list[Message]:
            return self._messages

    memory = Sharing("Why?", [Message.user("a")])
    memory.control.hint = "hint"
    messages = await assemble(memory, "prompt")

    assert [m.content for m in messages] == ["prompt", "a", "hint"]
    assert [m.content for m in await memory.dump()] == ["a"]


async def test_a_call_without_text_is_its_json():
    from agent_brain.tools import Action

    call = Action(name="add", args={"a": 1})
    memory = FakeMemory("Why?", [Message.assistant("", [call, call])])
    messages = await assemble(memory, "", plain=True)

    written = '{"name": "add", "args": {"a": 1}}'
    assert messages[1].content == f"{written}\n{written}"
