"""Hooks: code around every run, state, model call, each of its attempts, and every tool call.

A hook sees a request before it is made, may change it or answer it, and sees the response or the
error afterwards; runs and states it only observes::

    class Trace(Hook):
        def before_model_call(self, request):
            print("asks", request.model, "in state", request.state)

        def after_model_call(self, request, response):
            print("said", response.text)

    Brain("react", hooks=[Trace()])
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import NoneType
from typing import TYPE_CHECKING, Any, cast, get_args

from pydantic import BaseModel, JsonValue

from agent_brain.common.suggest import closest, did_you_mean
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import NOWHERE, Placed, Position
from agent_brain.states.models.llm import LLM, FinishReason
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action, Media
from agent_brain.tools.base import BaseTool

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


class Hook:
    """Base class of hooks. Override what is needed; each method may be ``async`` or not.

    ``before_…`` returns None, or a changed request (:func:`dataclasses.replace`), or a response,
    and then nothing is called; or it raises :class:`~agent_brain.errors.Refused`. ``after_…``
    returns None, or a changed response. ``on_…_error`` returns None, or a response in place of the
    error. Hooks run in the order in which they were given, the Brain's before the net's;
    ``after_…`` and ``on_…_error`` in the opposite order. They are not called for a call that is
    cancelled or left early.

    Those of runs and states only observe: they return None. What ``before_run`` and
    ``before_state`` raise is an error of the run or the state; what the others raise is logged, as
    the run or the state has ended then. ``before_…`` is followed by exactly one of ``after_…`` and
    ``on_…_error``, also if the run is cancelled or left early.

    A subclass with a method ``before_…``, ``after_…`` or ``on_…`` that is none of these is refused
    with :class:`StateDefinitionError`: a misspelt hook would never be called.

    Attributes:
        buffer: The text of a model is held back until ``after_model_call`` has run, so that it can
            be changed. Without it, ``after_model_call`` changes what is recorded, but not the text
            that has streamed already.
        in_replay: Whether ``Brain.replay`` calls the methods around model calls; not for what only
            belongs to real calls, such as waiting or a cache.
    """

    buffer: bool = False
    in_replay: bool = True

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for name in dir(cls):
            looks_like_one = name.startswith(_PREFIXES) or closest(name, _NAMES, cutoff=0.85)
            if looks_like_one and name not in _NAMES and callable(getattr(cls, name)):
                raise StateDefinitionError(
                    f"{cls.__name__}.{name} would never be called: hooks have no such method."
                    f"{did_you_mean(name, _NAMES)} Their methods are {', '.join(_NAMES)}; the name "
                    "of a method of your own must not begin with before_, after_ or on_"
                )

    def before_model_call(self, request: ModelRequest) -> Any:
        """Called before a model call."""

    def after_model_call(self, request: ModelRequest, response: ModelResponse) -> Any:
        """Called with the whole response."""

    def on_model_error(self, request: ModelRequest, error: Exception) -> Any:
        """Called when a model call failed, after its retries."""

    def stream_model_call(
        self, request: ModelRequest, pieces: AsyncIterator[Any]
    ) -> AsyncIterator[Any]:
        """Return the pieces of the response as they are to stream, such as changed ones.

        Called when the model is called. It must close ``pieces``, and pass on those that it does
        not know.
        """
        return pieces

    def before_attempt(self, request: ModelRequest) -> Any:
        """Called before each request that a :class:`LiteLLM` sends, fallbacks included.

        It may change the messages, but not ``llm``.
        """

    def after_attempt(self, request: ModelRequest, response: ModelResponse) -> Any:
        """Called with the whole response of an attempt."""

    def on_attempt_error(self, request: ModelRequest, error: Exception) -> Any:
        """Called when an attempt failed; it may be followed by another."""

    def before_embedding(self, request: EmbeddingRequest) -> Any:
        """Called before a memory has texts embedded.

        It may change the texts, but not their number, or refuse them: the messages are then found
        by their words only.
        """

    def after_embedding(self, request: EmbeddingRequest, usage: Usage) -> None:
        """Called when texts were embedded, with what that has used."""

    def on_embedding_error(self, request: EmbeddingRequest, error: Exception) -> None:
        """Called when texts could not be embedded."""

    def before_tool_call(self, request: ToolRequest) -> Any:
        """Called before a tool call."""

    def before_approval(self, request: ToolRequest) -> Any:
        """Return a tool call with other arguments, as ``before_tool_call`` will change it, or None.

        Called before it is found out whether a person must approve the call, perhaps several times:
        the person sees these arguments, and they run. ``before_tool_call`` is then given them.
        """

    def needs_approval(self, request: ToolRequest) -> Any:
        """Return whether a person must approve a tool call, beside what the tool itself says."""
        return False

    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> Any:
        """Called with the result of a tool call, also if it failed."""

    def on_tool_error(self, request: ToolRequest, error: Exception) -> Any:
        """Called when a tool raised; if it returns None, ``after_tool_call`` follows."""

    def before_run(self, request: RunRequest) -> Any:
        """Called before a run begins or continues; its memory is open and unchanged.

        Not called for a run that cannot begin, as its memory is busy or cannot be opened.
        """

    def after_run(self, request: RunRequest, result: Any) -> Any:
        """Called with the :class:`~agent_brain.result.Result`, also of a run that was cancelled."""

    def on_run_error(self, request: RunRequest, error: Exception) -> Any:
        """Called when a run failed; its error is raised next."""

    def before_state(self, request: StateRequest) -> Any:
        """Called before each step, also of inner nets."""

    def after_state(self, request: StateRequest, next_state: str | None) -> Any:
        """Called after a step with the name of the next state.

        It is None if the net has ended, and if the state waits for a person.
        """

    def on_state_error(self, request: StateRequest, error: BaseException) -> Any:
        """Called when a state failed, also if its error leads to another state.

        Of a step that was cancelled or left early, ``error`` is not an ``Exception``.
        """

    def around(
        self, request: StateRequest | ModelRequest | ToolRequest
    ) -> AbstractContextManager[object] | None:
        """Return a context manager that is entered while a state, a model or a tool works.

        It is left whenever the consumer of the run works, and another one is entered when the work
        continues, so what it sets in context variables is seen by this work and by what it calls,
        and by nothing else. It must not suppress errors.
        """


_PREFIXES = ("before_", "after_", "on_")
_NAMES = tuple(name for name in vars(Hook) if name.startswith(_PREFIXES))


def as_hooks(hooks: Iterable[Hook]) -> tuple[Hook, ...]:
    """Return ``hooks`` as a tuple.

    Raises:
        StateDefinitionError: Something that is not a hook.
    """
    if not isinstance(cast("object", hooks), Iterable):
        raise StateDefinitionError(
            f"hooks={hooks!r}: pass a list of hooks, such as hooks=[Trace()]"
        )
    found = tuple(hooks)
    for given in cast("tuple[object, ...]", found):
        if not isinstance(given, Hook):
            hint = ", not its class" if isinstance(given, type) else ""
            raise StateDefinitionError(f"hooks={given!r}: pass objects of subclasses of Hook{hint}")
    return found


_FIELDS: dict[type, dict[str, tuple[type, ...]]] = {
    ModelRequest: {"llm": (LLM,)},
    ModelResponse: {"text": (str,), "thoughts": (str,), "usage": (Usage, NoneType)},
    ToolRequest: {"action": (Action,)},
    ToolResponse: {"content": (str,), "exception": (Exception, NoneType)},
    EmbeddingRequest: {},
}
_ITEMS: dict[type, dict[str, type]] = {
    ModelRequest: {"messages": Message, "tools": BaseTool},
    ModelResponse: {"actions": Action},
    EmbeddingRequest: {"texts": str},
}


def check_given(method: str, given: object, kinds: Collection[type]) -> None:
    """Check what a method of a hook returned.

    Args:
        method: The class and the method.
        given: What it returned, which is not None.
        kinds: What it may return.

    Raises:
        TypeError: It is neither, or one of its fields has a value of a wrong type.
    """
    kind = type(given)
    if not isinstance(given, tuple(kinds)):
        if not kinds:
            raise TypeError(f"{method} returned {given!r}: it may only observe")
        names = ["None", *(f"a {expected.__name__}" for expected in kinds)]
        wanted = " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
        raise TypeError(f"{method} returned {given!r}: return {wanted}")
    for name, types in _FIELDS[kind].items():
        value = getattr(given, name)
        if not isinstance(value, types):
            wanted = " or ".join("None" if t is NoneType else t.__name__ for t in types)
            raise TypeError(
                f"{method} returned a {kind.__name__} with {name}={value!r}: expected {wanted}"
            )
    for name, item_type in _ITEMS.get(kind, {}).items():
        items = getattr(given, name)
        if not isinstance(items, Sequence) or not all(isinstance(i, item_type) for i in items):
            raise TypeError(
                f"{method} returned a {kind.__name__} with {name}={items!r}: expected a list or "
                f"tuple of {item_type.__name__} objects"
            )
    if isinstance(given, ModelResponse) and given.finish_reason not in (None, *_REASONS):
        raise TypeError(
            f"{method} returned a ModelResponse with finish_reason={given.finish_reason!r}: "
            f"expected None or one of {', '.join(map(repr, _REASONS))}"
        )


_REASONS = get_args(FinishReason)
