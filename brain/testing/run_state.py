"""Run one state alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.states.base import State, seal
from agent_brain.states.events import Event, TextDelta
from agent_brain.states.llm import Thought
from agent_brain.states.streams import closing


@dataclass(slots=True)
class StateRun:
    """What a state did.

    Attributes:
        chunks: The text it streamed, piece by piece, thoughts left out.
        thoughts: The thoughts it streamed, piece by piece.
        events: The events it yielded itself.
        next_state: Where it proposed to go.
        memory: The memory it ran on.
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

    The state is held to the same rules as in a net: assigning to its attributes raises.

    Raises:
        Exception: Whatever the state raises; ``on_exit`` was called then too.
    """
    seal(state)
    done = StateRun(memory)
    try:
        await state.on_enter(memory)
        async with closing(state.run(memory)) as stream:
            async for item in stream:
                _keep(done, item)
    finally:
        await state.on_exit(memory)
    done.next_state = await state.next_state(memory)
    return done


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
