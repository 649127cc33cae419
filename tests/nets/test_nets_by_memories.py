"""Every registered net over every registered memory, on asyncio and on trio."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Brain, StopReason
from agent_brain.demo import demo_tools
from agent_brain.memories import Memory, Message, Role, TodoMemory, create_memory, memory_names
from agent_brain.nets import create_net, net_names
from agent_brain.nets.library.graph_of_thoughts import OneThought, Rating
from agent_brain.nets.library.router import RouteName
from agent_brain.nets.library.thought_tree import Value
from agent_brain.nets.library.tree_of_thoughts import Thoughts
from agent_brain.states import Evaluation, Plan, Reflection
from agent_brain.testing import ModelCall
from agent_brain.tools import Action
from tests.brain.nets import add
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio

OPTIONS: dict[str, dict[str, Any]] = {"windowed": {"max_messages": 8}}
FILLED: dict[Any, Any] = {
    Evaluation: Evaluation(passed=True, score=1),
    OneThought: OneThought(thought="It is 4."),
    Plan: Plan(steps=["add", "answer"]),
    Rating: Rating(score=0.5),
    Reflection: Reflection(on_track=False, remark="Go on."),
    RouteName: RouteName(name="react"),
    Thoughts: Thoughts(thoughts=["2 + 2", "4"]),
    Value: Value(score=0.5),
}


def clever(call: ModelCall) -> Any:
    """Adds once in each turn, then knows; fills every shape."""
    if call.output_type is not None:
        return FILLED[call.output_type]
    if call.tools and not any(m.role is Role.TOOL for m in call.messages):
        return Action(name="add", args={"a": 2, "b": 2})
    return "It is 4."


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
@pytest.mark.parametrize("memory_name", memory_names())
@pytest.mark.parametrize("net_name", net_names())
async def test_it_runs_two_turns(net_name: str, memory_name: str, native: bool) -> None:
    options = OPTIONS.get(memory_name, {})
    llm = FunctionLLM(clever, native=native)
    async with create_memory(memory_name, [add], **options) as memory:
        brain = Brain(create_net(net_name, llm), memory)
        for question in ("What is 2 + 2?", "And again?"):
            result = await brain.run(question)
            assert (result.stop_reason, result.answer) == (StopReason.DONE, "It is 4.")
            assert [m.content for m in await memory.goal()] == [question]
            assert result.messages[-1].content == "It is 4."
            assert not any(m.tool_call_id and not m.content for m in result.messages)


@pytest.mark.parametrize("net_name", net_names())
def test_a_hyphen_is_an_underscore(net_name: str) -> None:
    llm = FunctionLLM(clever)
    assert create_net(net_name.replace("_", "-").upper(), llm).name == net_name


class FourMethods(Memory):
    """The least that a memory of one's own has to have."""

    def __init__(self) -> None:
        super().__init__()
        self.current: Message | None = None
        self.kept: list[Message] = []

    async def set_goal(self, goal: str | Message) -> None:
        self.current = goal if isinstance(goal, Message) else Message.user(goal)
        self.kept.append(self.current)

    async def update(self, messages: list[Message]) -> None:
        self.kept += messages

    async def goal(self) -> list[Message]:
        return [] if self.current is None else [self.current]

    async def dump(self) -> list[Message]:
        return [message for message in self.kept if message is not self.current]


@pytest.mark.parametrize("wrap", [False, True], ids=["alone", "wrapped"])
@pytest.mark.parametrize("net_name", net_names())
async def test_over_a_memory_of_four_methods_each_turn_answers_its_own_question(
    net_name: str, wrap: bool
) -> None:
    memory = TodoMemory(FourMethods()) if wrap else FourMethods()
    brain = Brain(net_name, memory, tools=demo_tools())
    for question, found in (("What is 17 times 23?", "= 391."), ("What is 3 plus 4?", "= 7.")):
        result = await brain.run(question)
        assert result.answer.endswith(found)
        assert result.messages[0].content == question


async def test_a_memory_of_four_methods_shows_a_restored_conversation_in_order() -> None:
    memory = FourMethods()
    await memory.set_goal("first")
    await memory.update([Message.assistant("one")])
    await memory.set_goal("second")
    await memory.update([Message.assistant("two")])
    later = FourMethods()
    await later.restore(await memory.snapshot())
    for shown in (memory, later):
        assert [m.content for m in await shown.context()] == ["first", "one", "second", "two"]
        assert [m.content for m in await shown.turn()] == ["second", "two"]
