"""A run ends in the same way whether its events are read or not, whatever fails meanwhile."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from agent_brain import LLM, Brain, Limits, Memory, Message, Net, Result, react, tool
from agent_brain.errors import BrainUseError, LLMRateLimitError
from agent_brain.nets import MapState, SubnetState
from agent_brain.states import (
    ActionState,
    GuardedState,
    Hook,
    ModelRequest,
    ModelResponse,
    ReasoningState,
    ToolRequest,
    ToolResponse,
    Usage,
)
from agent_brain.tools import Action, InputNeeded, ToolError
from tests.brain.nets import Say, Steps
from tests.support.thorough import THOROUGH

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]

FAULTS: dict[str, Callable[[], Exception] | None] = {
    "error": lambda: ValueError("it broke"),
    "model error": lambda: LLMRateLimitError("slow down"),
    "use error": lambda: BrainUseError("used wrongly"),
    "tool error": lambda: ToolError("no such thing"),
    "question": lambda: InputNeeded("Which one?"),
    "cancelled": None,
}


class World:
    """Counts the points that a program of the user passes, and fails at one of them once."""

    def __init__(self, fails_at: int | None = None, fault: str = "") -> None:
        self.passed: list[str] = []
        self.scope = anyio.CancelScope()
        self._fails_at, self._fault = fails_at, fault

    async def pass_by(self, point: str) -> None:
        self.passed.append(point)
        if len(self.passed) - 1 == self._fails_at:
            make = FAULTS[self._fault]
            if make is not None:
                raise make()
            self.scope.cancel()
            await anyio.sleep_forever()


class Model(LLM):
    """Asks for one call after the other, then answers."""

    model = "test"

    def __init__(self, world: World) -> None:
        self.world = world

    async def stream(
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncGenerator[Any, None]:
        turn = sum(message.role.value == "assistant" for message in messages)
        await self.world.pass_by(f"model {turn}")
        yield "So "
        await self.world.pass_by(f"middle of model {turn}")
        yield "be it. "
        if tools and turn < 2:
            name = next(iter(tools[0].input_schema["properties"]))
            yield Action(name="look", args={name: turn if name == "place" else "Look."})
        yield Usage(10, 5, cost=0.25)


class Noted(Hook):
    def __init__(self, world: World) -> None:
        self.world = world

    async def before_model_call(self, request: ModelRequest) -> None:
        await self.world.pass_by("before model")

    async def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        await self.world.pass_by(f"after model: {response.text}")

    async def before_tool_call(self, request: ToolRequest) -> None:
        await self.world.pass_by("before tool")

    async def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        await self.world.pass_by(f"after tool: {response.content}")


class Count(Say):
    """A state with something of its own at every place."""

    def __init__(self, world: World, then: Steps | None = None) -> None:
        super().__init__("one", then=then)
        self.world = world

    async def on_enter(self, memory: Memory) -> None:
        await self.world.pass_by("enter")

    async def on_exit(self, memory: Memory) -> None:
        await self.world.pass_by("exit")

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield "counted"
        await self.world.pass_by("run")
        await memory.update([Message.assistant("counted")])

    async def next_state(self, memory: Memory) -> Steps | None:
        await self.world.pass_by("next")
        return self.then


def tools(world: World, **options: Any) -> list[Any]:
    @tool(**options)
    async def look(place: int) -> str:
        """Look at a place."""
        await world.pass_by(f"tool {place}")
        return f"seen {place}"

    return [look]


def acting(world: World, **options: Any) -> Net:
    states = {
        Steps.ONE: ReasoningState(Model(world), on_action=Steps.TWO, on_answer=Steps.THREE),
        Steps.TWO: GuardedState(ActionState(Steps.ONE), timeout=60),
        Steps.THREE: Count(world),
    }
    return Net(states, **options)


async def double(world: World, item: int) -> int:
    await world.pass_by(f"item {item}")
    return 2 * item


def mapping(world: World) -> Net:
    items = MapState(
        lambda memory: [1, 2, 3],
        lambda item: double(world, item),
        max_concurrency=1,
        on_done=Steps.TWO,
    )
    return Net({Steps.ONE: items, Steps.TWO: Count(world)})


def inside(world: World) -> Net:
    subnet = SubnetState(react(Model(world)), fork=True, on_done=Steps.TWO)
    return Net({Steps.ONE: subnet, Steps.TWO: Count(world)})


BRAINS: dict[str, Callable[[World], Brain]] = {
    "react": lambda world: Brain(react(Model(world)), tools=tools(world)),
    "hooks": lambda world: Brain(react(Model(world)), tools=tools(world), hooks=[Noted(world)]),
    "approval": lambda world: Brain(
        react(Model(world)), tools=tools(world, requires_approval=True)
    ),
    "states": lambda world: Brain({Steps.ONE: Count(world, Steps.TWO), Steps.TWO: Count(world)}),
    "error edges": lambda world: Brain(
        acting(world, on_error={Steps.ONE: Steps.THREE, Steps.TWO: Steps.THREE}),
        tools=tools(world),
        hooks=[Noted(world)],
    ),
    "fallback": lambda world: Brain(
        acting(world, fallback=Steps.THREE), tools=tools(world), limits=Limits(max_steps=3)
    ),
    "tokens": lambda world: Brain(
        react(Model(world)), tools=tools(world), limits=Limits(max_tokens=20, strict=True)
    ),
    "map": lambda world: Brain(mapping(world)),
    "subnet": lambda world: Brain(inside(world), tools=tools(world)),
    "brain as a tool": lambda world: Brain(
        react(Model(world)),
        tools=[Brain(react(Model(world))).as_tool("look", "Looks.")],
    ),
}


DECISIONS: dict[str | None, dict[str, Any]] = {
    "approval": {"approve": True},
    "input": {"input": "This one."},
}


async def by_run(brain: Brain, **decisions: Any) -> None:
    await (brain.resume(**decisions) if brain.memory.control.run_id else brain.run("Look around"))


async def by_stream(brain: Brain, **decisions: Any) -> None:
    resumed = brain.memory.control.run_id is not None
    async with brain.stream_resume(**decisions) if resumed else brain.stream("Look around") as run:
        async for _ in run:
            pass


async def by_answer(brain: Brain, **decisions: Any) -> None:
    if brain.memory.control.run_id is not None:
        await by_stream(brain, **decisions)
        return
    async with aclosing(brain.answer("Look around")) as pieces:
        async for _ in pieces:
            pass


async def what_happens(way: Callable[..., Any], kind: str, world: World) -> list[Any]:
    """Run, and continue up to three times; return everything that can be observed."""
    brain = BRAINS[kind](world)
    happened: list[Any] = []
    for _ in range(4):
        raised: list[str] = []
        world.scope = anyio.CancelScope()
        with world.scope:
            try:
                reason = brain.last_result.stop_reason if brain.last_result else None
                await way(brain, **DECISIONS.get(reason, {}))
            except Exception as error:
                raised = [repr(error), *getattr(error, "__notes__", ())]
        control = brain.memory.control.model_dump(mode="json", exclude={"run_id"})
        control["spent"].pop("seconds")
        messages = [
            (message.role, message.content, message.is_error, message.metadata)
            for message in await brain.memory.turn()
        ]
        happened.append((raised, said(brain.last_result), control, messages, [*world.passed]))
    return happened


def said(result: Result[Any] | None) -> Any:
    if result is None:
        return None
    kept = (result.answer, result.stop_reason, result.finish_reason, result.steps, result.usage)
    return kept, len(result.messages)


def plain(happened: list[Any]) -> str:
    """Return ``happened`` without what is different in each run."""
    text = re.sub(r"\b(?:run|msg|resp|call|wait)_[0-9a-f]{12,}\b", "id", repr(happened))
    return re.sub(r"created_at[^,]*,", "", text)


@pytest.mark.parametrize("kind", BRAINS)
async def test_reading_the_events_changes_nothing(kind: str, anyio_backend_name: str) -> None:
    world = World()
    await what_happens(by_run, kind, world)
    faults = [(None, ""), *((at, fault) for at in range(len(world.passed)) for fault in FAULTS)]
    every = 7 if not THOROUGH else 5 if anyio_backend_name == "trio" else 1
    for at, fault in faults[::every]:
        expected, *others = [
            plain(await what_happens(way, kind, World(at, fault)))
            for way in (by_run, by_stream, by_answer)
        ]
        assert others == [expected] * 2, f"{fault} at point {at}"
