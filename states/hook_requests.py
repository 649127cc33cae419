"""What hooks are given: the requests of a run, and the responses to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, JsonValue

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states.events import NOWHERE, Placed, Position
from agent_brain.states.models.llm import LLM, FinishReason
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.result import Media

if TYPE_CHECKING:
    from agent_brain.memories.embedders.base import Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRequest(Placed):
    """Base class for requests.

    Attributes:
        at: The run, step, state and path of the request: the same object in all requests of a step.
        memory: The memory of the run.
    """

    at: Position = NOWHERE
    memory: Memory | None = None

    @property
    def deps(self) -> Any:
        """What the run was given as ``deps``."""
        return None if self.memory is None else self.memory.deps

    @property
    def session(self) -> str | None:
        """The session of the memory; None if it has none."""
        return None if self.memory is None else self.memory.session

    @property
    def tenant(self) -> str | None:
        """Whose session it is; None if nobody was named."""
        return None if self.memory is None else self.memory.tenant


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest(HookRequest):
    """A run.

    Attributes:
        goal: The goal; None for a run that is resumed.
        net: The name of the net.
    """

    goal: Message | None = None
    net: str = ""

    @property
    def resumed(self) -> bool:
        """Whether it continues a run."""
        return self.goal is None


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRequest(HookRequest):
    """A step: a state of the net, or of one inside it.

    Attributes:
        kind: The name of the state's class.
        outer: The ``at`` of what the net is run by: the run, or the step of an outer net.
        call_id: ID of the tool call that runs the net, of a brain that is used as a tool.
    """

    kind: str = ""
    outer: Position = NOWHERE
    call_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest(HookRequest):
    """A model call, or an attempt of one, that is about to be made.

    Attributes:
        llm: The model.
        messages: The messages for the model.
        tools: The tools that it may call.
        output_type: The type of data that is requested, if any.
        attempt: Number of the attempt, from 1; 0 for the call as a whole.
        response_id: ID of the call, as in its events; the same for all its attempts.
        purpose: What a memory calls the model for, such as ``"summary"``; None for a call of the
            state.
    """

    llm: LLM
    messages: Sequence[Message]
    tools: Sequence[BaseTool] = ()
    output_type: type[BaseModel] | None = None
    attempt: int = 0
    response_id: str = ""
    purpose: str | None = None

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.llm.model


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingRequest(HookRequest):
    """Texts that a memory is about to embed.

    Attributes:
        embedder: The embedder.
        texts: The texts.
        response_id: ID of the call, as in its events.
    """

    embedder: Embedder
    texts: Sequence[str]
    response_id: str = ""

    @property
    def model(self) -> str:
        """The name of the embedding model."""
        return self.embedder.name


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """The response of a model.

    Attributes:
        text: Its text, without thoughts.
        actions: The tool calls that it requests.
        thoughts: Its thoughts.
        usage: The usage of the call; None if unknown.
        finish_reason: Why it ended, if the provider said so.
        provider_data: What the provider needs again, as in :class:`~agent_brain.states.Finish`.
        metadata: What to keep in the message's metadata, as there.
    """

    text: str = ""
    actions: tuple[Action, ...] = ()
    thoughts: str = ""
    usage: Usage | None = None
    finish_reason: FinishReason | None = None
    provider_data: Mapping[str, JsonValue] = field(default_factory=dict)
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolRequest(HookRequest):
    """A tool call that is about to be made.

    Attributes:
        action: The call. A changed one keeps the ``id`` of the model's call, and needs approval
            again if the tool asks for it: it is then refused.
        tool: The tool; None if there is none of that name.
    """

    action: Action
    tool: BaseTool | None = None


@dataclass(frozen=True, slots=True)
class ToolResponse:
    """The result of a tool call.

    Attributes:
        content: The whole text; the model reads as much of it as the tool's limit allows.
        is_error: The call failed.
        exception: What the tool raised, if it did.
        media: Pictures and other files.
    """

    content: str
    is_error: bool = False
    exception: Exception | None = None
    media: tuple[Media, ...] = ()
