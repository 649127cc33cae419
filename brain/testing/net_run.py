"""Run one net alone, to its end, and look at everything it did."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from agent_brain.limits import Limits
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.nets.net import Net, as_net
from agent_brain.result import Result
from agent_brain.run import Plan, Run
from agent_brain.states.base import State
from agent_brain.states.events import Event, StateEntered, TextDelta
from agent_brain.stuck import StuckPolicy
from agent_brain.testing.fake_memory import FakeMemory
from agent_brain.tools.ids import new_id
from agent_brain.tools.toolset import ToolLike


@dataclass(slots=True)
class NetRun:
    """What a net did.

    Attributes:
        memory: The memory it ran on.
        events: Every event, those of subnets and branches included.
        result: What came of it; None if it failed.
        error: What it raised, where ``check=False`` let it.
    """

    memory: Memory
    events: list[Event] = field(default_factory=list)
    result: Result | None = None
    error: Exception | None = None

    @property
    def path(self) -> list[str]:
        """The states of the net in the order they were entered, without those of subnets."""
        return self.path_of()

    def path_of(self, *inside: str) -> list[str]:
        """The states entered in a subnet or branch, by the ``path`` of its events."""
        entered = (event for event in self.of(StateEntered) if event.path == inside)
        return [str(event.state) for event in entered]

    @property
    def chunks(self) -> list[str]:
        """The text it streamed, piece by piece, thoughts left out."""
        return [event.text for event in self.of(TextDelta) if not event.thought]

    @property
    def thoughts(self) -> list[str]:
        """The thoughts it streamed, and what parallel branches said."""
        return [event.text for event in self.of(TextDelta) if event.thought]

    @property
    def text(self) -> str:
        """All the text it streamed, from every state; ``result.answer`` has the last one's."""
        return "".join(self.chunks)

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one class."""
        return [event for event in self.events if isinstance(event, kind)]


async def run_net(
    net: Net | Mapping[Enum, State],
    memory: Memory | str | Message,
    *,
    goal: str | Message | None = None,
    tools: Iterable[ToolLike] = (),
    stuck: StuckPolicy | None = StuckPolicy(),  # noqa: B008 - frozen
    check: bool = True,
    **limits: Any,
) -> NetRun:
    """Run ``net`` to its end, as a Brain does.

    Args:
        net: A net, or a dict of states by the members of an Enum.
        memory: A memory, or the goal, for a :class:`FakeMemory` of that goal. A memory that has a
            goal already is taken up as it stands, what it was preloaded with included.
        goal: Starts a new turn on ``memory``.
        tools: What the agent may call, besides the memory's own.
        stuck: As in a Brain.
        check: Raise what the run raises; False keeps it as ``.error``.
        limits: As in :class:`~agent_brain.Limits`: ``max_steps=``, ``timeout=``, …

    Raises:
        Exception: Whatever the net raises, unless ``check=False``.
    """
    if not isinstance(memory, Memory):
        if goal is not None:
            raise TypeError("run_net() was given two goals: pass a memory and goal=, or one goal")
        goal, memory = memory, FakeMemory()
    memory.add_tools(tools)
    checked = as_net(net)
    if goal is None:
        _stand_before(checked, memory)
    task = Message.user(goal) if isinstance(goal, str) else goal
    done = NetRun(memory)
    try:
        async with Run(Plan(checked, memory, Limits(**limits), stuck), task) as run:
            async for event in run:
                done.events.append(event)
        done.result = run.result
    except Exception as error:
        if check:
            raise
        done.error = error
    return done


def _stand_before(net: Net, memory: Memory) -> None:
    """Have a run stand before its first step, with everything else in the memory as it is."""
    control = memory.control
    if control.state is None:
        control.run_id, control.state, control.status = new_id("run"), net.initial.name, "waiting"
