"""The three states of the original, as a user writes them: a dict of states, and plain text."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Memory, Message, MessagesMemory, State, tool
from agent_brain.states import LLM, StateExited
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


class Net(Enum):
    REASONING = "reasoning"
    ACTION = "action"
    ANSWER = "answer"


class Reasoning(State):
    def __init__(self, llm: LLM) -> None:
        self.llm = llm

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        memory.next_action = None
        async for piece in self.llm.stream(await memory.goal() + await memory.dump()):
            if isinstance(piece, Action):
                memory.next_action = piece
            elif isinstance(piece, str):
                yield piece

    async def next_state(self, memory: Memory) -> Enum:
        return Net.ACTION if memory.next_action else Net.ANSWER


class Acting(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        action = memory.next_action
        assert action is not None
        known = memory.get_tool(action.name)
        assert known is not None
        result = await known.execute(**action.args)
        await memory.update([Message.assistant("", [action]), Message.tool(result, action)])
        memory.next_action = None
        yield f"{action.name} gave {result}. "

    async def next_state(self, memory: Memory) -> Enum:
        return Net.REASONING


class Answering(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        last = (await memory.dump())[-1]
        yield f"The answer is {last.content}."
        memory.done = True

    async def next_state(self, memory: Memory) -> Enum:
        return Net.ANSWER


@tool
async def double(number: int) -> int:
    """Double a number."""
    return 2 * number


class Doubling(LLM):
    """Doubles the number of the goal once; reads it from the messages."""

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[str | Action]:
        await anyio.lowlevel.checkpoint()
        if len(messages) == 1:
            yield "I will double it. "
            yield Action(name="double", args={"number": int(messages[0].content)})
        else:
            yield "Now I know. "


def states(llm: LLM) -> dict[Enum, State]:
    return {Net.REASONING: Reasoning(llm), Net.ACTION: Acting(), Net.ANSWER: Answering()}


async def test_a_plain_dict_of_states_runs() -> None:
    llm = ScriptedLLM([["I add. ", Action(name="double", args={"number": 21})], "Done. "])
    brain = Brain(states(llm), tools=[double])
    text = "".join([chunk async for chunk in brain.answer("what is twice 21?")])
    assert text == "I add. double gave 42. Done. The answer is 42."
    llm.assert_complete()


async def test_its_result_is_what_the_last_state_said() -> None:
    result = await Brain(states(Doubling()), tools=[double]).run("4")
    assert (result.answer, result.stop_reason, result.steps) == ("The answer is 8.", "done", 4)


async def test_where_annotations_tell_nothing_every_move_is_possible() -> None:
    brain = Brain(states(Doubling()), tools=[double])
    assert set(brain.net.edges[Net.ACTION]) == {*Net, None}


async def test_one_net_drives_a_thousand_runs_without_mixing_them() -> None:
    net = Brain(states(Doubling())).net
    answers: dict[int, str] = {}
    ways: set[tuple[str | None, ...]] = set()

    async def one(number: int) -> None:
        brain = Brain(net, MessagesMemory([double]))
        way = []
        async with brain.stream(str(number)) as run:
            async for event in run:
                assert event.run_id in ("", run.run_id)
                if isinstance(event, StateExited):
                    way.append(event.next)
        ways.add(tuple(way))
        answers[number] = run.result.answer

    async with anyio.create_task_group() as group:
        for number in range(1000):
            group.start_soon(one, number)
    assert answers == {number: f"The answer is {2 * number}." for number in range(1000)}
    assert ways == {("ACTION", "REASONING", "ANSWER", None)}
