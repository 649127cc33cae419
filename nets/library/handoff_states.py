"""The states of hand-offs, and the tool that an agent hands the conversation over with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, ClassVar, TypeAlias

from pydantic import BaseModel, Field

from agent_brain.common.aio import maybe_await
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role
from agent_brain.memories.views.groups import whole_groups
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.nets.net import Net
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.hooks import Hook, ModelRequest
from agent_brain.states.session_state import Notes
from agent_brain.states.tool_round import ActionState, ToolRound
from agent_brain.states.work import StreamItem
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.calling import is_valid
from agent_brain.tools.context import current_call
from agent_brain.tools.errors import ToolError
from agent_brain.tools.schemas import object_schema

OnHandoff: TypeAlias = Callable[[Memory, str, str], Awaitable[None] | None]
Filter: TypeAlias = Callable[[Sequence[Message]], Iterable[Message] | Awaitable[Iterable[Message]]]


class Transfer(BaseModel):
    """A hand-off to an agent that has not run since."""

    sender: str
    to: str
    reason: str


class ActiveAgents(Notes, scope="session"):
    """Which agent is active, in each net of hand-offs of the session.

    Attributes:
        names: The agents by net.
        begun: The last hand-offs by net.
    """

    names: dict[str, str] = Field(default_factory=dict)
    begun: dict[str, Transfer] = Field(default_factory=dict)


class TransferTool(BaseTool):
    """The tool that hands the conversation to one agent.

    It does nothing itself: :class:`TransferRound` notes the hand-off with its result.

    Args:
        to: The agent.
        description: What the agent is for.
    """

    prefix: ClassVar[str] = "transfer_to_"
    always_offered = True

    def __init__(self, to: str, description: str = "") -> None:
        what = f", which is for: {description}" if description else ""
        super().__init__(
            f"{self.prefix}{to}",
            f"Hand this conversation over to the agent {to!r}{what}. It continues with what was "
            "said so far, in your place. Call this tool rather than saying that you hand over.",
            object_schema({"reason": {"type": "string", "description": "Why, in a sentence."}}),
            idempotent=True,
        )
        self.to = to

    async def execute(self, **kwargs: Any) -> str:
        """Accept the hand-off, if it is the first valid one of the round.

        Raises:
            ToolError: Another hand-off was requested before this one.
        """
        call = current_call()
        if call is not None and call.memory is not None:
            first = _first_transfer(call.memory)
            if first is not None and first.id != call.action.id:
                other = first.name.removeprefix(self.prefix)
                raise ToolError(
                    f"Not handed over to {self.to!r}: {other!r} was asked for first, and a "
                    "conversation has one active agent"
                )
        return f"The agent {self.to!r} continues the conversation."


def _first_transfer(memory: Memory) -> Action | None:
    """Return the first hand-off of the round that can be run."""
    tools = memory.offered_tools()
    asked = ((action, tools.get(action.name)) for action in memory.next_actions)
    return next((a for a, t in asked if isinstance(t, TransferTool) and is_valid(a, t)), None)


class TransferRound(ToolRound):
    """A round of calls that notes a hand-off along with its result.

    Args:
        memory: The memory of the run.
        sender: The agent.
        owner: The name of the net of hand-offs.
    """

    def __init__(self, memory: Memory, sender: str, owner: str) -> None:
        super().__init__(memory, ActionState.__name__)
        self._sender = sender
        self._owner = owner

    def note_result(self, action: Action, result: Message) -> None:
        """Note to whom the conversation was handed over, if it was."""
        if action.name.startswith(TransferTool.prefix) and not result.is_error:
            to = action.name.removeprefix(TransferTool.prefix)
            reason = str(action.args.get("reason", ""))
            active = ActiveAgents.read(self.memory)
            active.names[self._owner] = to
            active.begun[self._owner] = Transfer(sender=self._sender, to=to, reason=reason)
            active.write(self.memory)


@dataclass(eq=False, repr=False)
class StartState(State):
    """Continue with the agent that was active last.

    Attributes:
        owner: The name of the net.
        agents: The states of the agents by name.
        first: The agent of the first turn.
    """

    owner: str
    agents: Mapping[str, Enum]
    first: str

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Note the first agent as active, unless another one of the net is."""
        active = ActiveAgents.read(memory)
        if active.names.get(self.owner) not in self.agents:
            active.names[self.owner] = self.first
            active.begun.pop(self.owner, None)
            active.write(memory)
        nothing: tuple[StreamItem, ...] = ()
        for item in nothing:  # which makes it a generator
            yield item

    async def next_state(self, memory: Memory) -> Enum:
        """Return the active agent."""
        return self.agents[ActiveAgents.read(memory).names[self.owner]]

    def targets(self) -> tuple[Enum, ...]:
        """Return the agents."""
        return tuple(self.agents.values())

    async def costs_nothing(self, memory: Memory) -> bool:
        """Return True."""
        return True


@dataclass(eq=False, repr=False)
class AgentState(State):
    """Run one agent on the memory itself.

    Attributes:
        name: The agent.
        net: Its net.
        following: The states of the agents that it may hand over to, by name.
        owner: The name of the net around it.
        on_handoff: Called when the conversation was handed to it.
    """

    name: str
    net: Net
    following: Mapping[str, Enum]
    owner: str
    on_handoff: OnHandoff | None

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The net by its name."""
        return {self.net.name: self.net}

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the agent's net with its tools; the ``path`` of its events is the agent's name.

        Raises:
            ToolDefinitionError: The memory has another tool of the same name.
        """
        begun = ActiveAgents.read(memory).begun.get(self.owner)
        if begun is not None and begun.to == self.name:
            if self.on_handoff is not None:
                await maybe_await(self.on_handoff(memory, begun.sender, begun.reason))
            active = ActiveAgents.read(memory)
            del active.begun[self.owner]
            active.write(memory)
        yield Delegate([Branch("", self.net, memory)])

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return the agent that the conversation was handed to; None after an answer."""
        return self.following.get(ActiveAgents.read(memory).names.get(self.owner, ""))

    def targets(self) -> tuple[Enum | None, ...]:
        """Return the agents that it may hand over to, and the end."""
        return (*self.following.values(), None)


class TransferringState(ActionState):
    """Run tool calls as :class:`ActionState` does; end the agent's net after a hand-off.

    Args:
        name: The agent.
        owner: The name of the net of hand-offs.
        on_done: The next state, if the conversation was not handed over.
    """

    def __init__(self, name: str, owner: str, *, on_done: Enum) -> None:
        super().__init__(on_done)
        self.name = name
        self.owner = owner

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the calls; a hand-off is noted with its result."""
        yield TransferRound(memory, self.name, self.owner)

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return ``on_done``; None after a hand-off."""
        active = ActiveAgents.read(memory).names.get(self.owner, self.name)
        return self.on_done if active == self.name else None

    def targets(self) -> tuple[Enum | None, ...]:
        """Return ``on_done`` and the end."""
        return self.on_done, None


@dataclass(eq=False, repr=False)
class Filtered(Hook):
    """Shows a model a part of the conversation: what ``see`` returns."""

    see: Filter

    async def before_model_call(self, request: ModelRequest) -> ModelRequest:
        """Return the request with the system messages and what ``see`` returns of the others.

        Raises:
            StateDefinitionError: ``see`` returned something else than messages.
        """
        system = [message for message in request.messages if message.role is Role.SYSTEM]
        rest = [message for message in request.messages if message.role is not Role.SYSTEM]
        seen: object = await maybe_await(self.see(rest))
        if not isinstance(seen, Iterable):
            raise StateDefinitionError(f"HandoffAgent(see=…): it returned {seen!r}, not messages")
        chosen = list(seen)
        if wrong := [item for item in chosen if not isinstance(item, Message)]:
            raise StateDefinitionError(
                f"HandoffAgent(see=…): it returned {wrong[0]!r:.100} among the messages"
            )
        return replace(request, messages=[*system, *whole_groups(chosen)])
