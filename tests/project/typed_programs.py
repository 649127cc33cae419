"""The types that programs get: read by mypy and pyright (scripts/type_docs.py), never run.

A line that must be refused carries an ignore of both checkers, which they report if it is needless.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Any, Literal, assert_never, assert_type

from pydantic import BaseModel

from agent_brain import (
    Action,
    Brain,
    Limits,
    Memory,
    Message,
    MessagesMemory,
    Net,
    Result,
    Run,
    State,
    create_memory,
    create_net,
    react,
)
from agent_brain.memories import WindowedMemory
from agent_brain.states import (
    ActionFinished,
    AgentEvent,
    AnswerState,
    Notes,
    TextDelta,
    UsageReported,
)
from agent_brain.testing import FakeMemory, ScriptedLLM, run_net, run_state


class Step(Enum):
    ASK = "ask"


class City(BaseModel):
    name: str


class Basket(Notes, scope="session"):
    items: list[str] = []


class Ask(State):
    async def run(self, memory: Memory) -> AsyncIterator[str]:
        attempt = memory.control.scratch.get("attempt", 0) + 1
        memory.control.scratch["attempt"] = attempt
        basket = Basket.read(memory)
        assert_type(basket, Basket)
        yield ", ".join(basket.items)

    async def next_state(self, memory: Memory) -> Literal[Step.ASK] | None:
        return None


async def events_are_one_union(brain: Brain) -> None:
    async with brain.stream("go") as run:
        async for event in run:
            assert_type(event, AgentEvent)
            if event.kind == "text_delta":
                assert_type(event, TextDelta)
            elif event.kind == "action_finished":
                assert_type(event, ActionFinished)
                print(event.result.content)
            print(event.kind == "text_dleta")  # type: ignore[comparison-overlap] # pyright: ignore[reportUnnecessaryComparison]
    assert_type(run, Run[Any])
    print(run.result.output.whatever)


def every_kind_is_told_apart(event: TextDelta | UsageReported) -> int:
    match event.kind:
        case "text_delta":
            return len(event.text)
        case "usage_reported":
            return event.usage.input_tokens
    assert_never(event)


async def the_output_has_its_type(net: Net) -> None:
    brain = Brain("react", output_type=City, limits=Limits(max_steps=3))
    result = await brain.run("go")
    assert_type(result, Result[City | None])
    assert_type(brain.run_sync("go").output, City | None)
    async with await Brain.create(output_type=City) as opened:
        assert_type((await opened.resume()).output, City | None)
    async with brain.stream("go") as run:
        assert_type(run.result.output, City | None)
    assert_type(Brain(output_type=list[int]).run_sync("go").output, list[int] | None)
    assert_type(Brain(output_type=int | str), Brain[Any])
    assert_type(Brain(net), Brain[Any])
    print(result.output.name)  # type: ignore[union-attr] # pyright: ignore[reportOptionalMemberAccess]


async def a_test_keeps_the_type_of_its_memory(net: Net) -> None:
    done = await run_state(Ask(), FakeMemory("go"), input="yes")
    assert_type(done.memory, FakeMemory)
    done.memory.assert_not_updated()
    assert_type(done.of(TextDelta), list[TextDelta])
    assert_type((await run_state(Ask(), WindowedMemory())).memory, WindowedMemory)
    assert_type((await run_net(net, "go", max_steps=3)).memory, FakeMemory)
    assert_type((await run_net(net, MessagesMemory(), approve=True)).memory, MessagesMemory)


def nets_are_put_together() -> None:
    net = Net({Step.ASK: Ask()}) | {Step.ASK: Ask()}
    assert_type(net, Net)
    assert_type(net.replace({Step.ASK: Ask()}), Net)
    assert_type(react("openai/gpt-4.1"), Net)
    ScriptedLLM("hello")
    turns = [[Action(name="add")], "hello"]
    ScriptedLLM(turns)


async def misspelt_options_are_refused(brain: Brain) -> None:
    Brain("react", memroy="todo")  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]
    await Brain.create("react", limit=3)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]
    brain.as_tool("ask", "Asks.", idempotnt=True)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    Message.user("hi", nmae="Ann")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    create_net("react", "demo", promt="x")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    create_memory("windowed", max_mesages=3)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    await run_net(react("demo"), "go", max_step=3)  # type: ignore[call-overload] # pyright: ignore[reportCallIssue]


class Quiet(MessagesMemory):
    async def update(self, messages: list[Message]) -> None:  # need not tell what was added
        await super().update(messages)


async def added_messages_have_ids(memory: Memory) -> None:
    for message_id in await MessagesMemory(dedupe=2).update([Message.user("hi")]):
        await memory.update([Message.user(message_id)])
    assert_type(await memory.update([]), Sequence[str] | None)
    await WindowedMemory().clear(keep=lambda message: message.pinned)


async def options_have_types(brain: Brain) -> None:
    brain.as_tool("ask", "Asks.", requires_approval=True, max_result_tokens=100)
    Message.user("hi", name="Ann", cause_by=AnswerState, send_to="Bob", metadata={"n": [1]})
    Message.assistant("hi", tags={"greeting"}, pinned=True)
    create_net("react", ScriptedLLM(), prompt="Be brief.", output_type=City)
    create_memory("windowed", max_messages=3, journal="brain.db", session="ann")
    own: dict[str, Any] = {"ship": "Revenge"}
    create_net("pirate", "demo", **own)
    create_memory("windowed", max_messages="3")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
