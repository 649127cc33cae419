"""Run one state alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from agent_brain.budget import Budget
from agent_brain.limits import Limits
from agent_brain.machine import run_branches
from agent_brain.memories.base import Memory
from agent_brain.nets.delegate import Delegate
from agent_brain.states.base import State, seal
from agent_brain.states.events import Event, TextDelta
from agent_brain.states.llm import Thought
from agent_brain.states.streams import closing
from agent_brain.stuck import StuckPolicy
from agent_brain.tools.ids import new_id


@dataclass(slots=True)
class StateRun:
    """What a state did.

    Attributes:
        memory: The memory it ran on.
        chunks: The text it streamed, piece by piece, thoughts left out.
        thoughts: The thoughts it streamed, piece by piece, and what parallel branches said.
        events: The events it yielded itself, and those of the nets it had run, with their
            ``path``: the class of the state, then what the branch is called.
        next_state: Where it proposed to go.
    """

    memory: Memory
    chunks: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    next_state: Enum | None = None

    @property
    def text(self) -> str:
        """All the text it streamed."""
        return "".join(self.chunks)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]


async def run_state(state: State, memory: Memory) -> StateRun:
    """Enter ``state``, run it over ``memory``, leave it, and ask it where to go.

    The state is held to the same rules as in a net: assigning to its attributes raises. Nets that
    it hands work to (subnets, parallel branches) are run as a Brain would, within its default
    limits.

    Raises:
        Exception: Whatever the state raises; ``on_exit`` was called then too.
    """
    seal(state)
    done = StateRun(memory)
    try:
        await state.on_enter(memory)
        async with closing(state.run(memory)) as stream:
            async for item in stream:
                if isinstance(item, Delegate):
                    async with closing(_delegated(item, state, memory)) as events:
                        async for event in events:
                            _keep(done, event)
                else:
                    _keep(done, item)
    finally:
        await state.on_exit(memory)
    done.next_state = await state.next_state(memory)
    return done


def _delegated(order: Delegate, state: State, memory: Memory) -> AsyncIterator[Event]:
    budget = Budget(Limits())
    budget.start(memory.control)
    return run_branches(
        order,
        budget,
        StuckPolicy(),
        run_id=memory.control.run_id or new_id("run"),
        path=(type(state).__name__,),
        aside=len(order.branches) > 1,
        within=type(state).__name__,
        seen=Counter(),
    )


def _keep(done: StateRun, item: str | Event) -> None:
    if isinstance(item, str):
        (done.thoughts if isinstance(item, Thought) else done.chunks).append(item)
        return
    if not isinstance(item, Event):
        raise TypeError(
            f"The state yielded {item!r}: yield text, or an event from agent_brain.states"
        )
    done.events.append(item)
    if isinstance(item, TextDelta):
        (done.thoughts if item.thought else done.chunks).append(item.text)
