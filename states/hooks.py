"""Hooks: code around every model call, each of its attempts, and every tool call.

A hook sees a request before it is made, may change it or answer it, and sees the response or the
error afterwards::

    class Trace(Hook):
        def before_model_call(self, request):
            print("asks", request.model, "in state", request.state)

        def after_model_call(self, request, response):
            print("said", response.text)

    Brain("react", hooks=[Trace()])
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, cast, get_args

from pydantic import BaseModel

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import NOWHERE, Position
from agent_brain.states.models.llm import LLM, FinishReason
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.suggest import closest, did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class HookRequest:
    """Base class for requests.

    Attributes:
        at: The run, step, state and path of the request.
        memory: The memory of the run.
    """

    at: Position = NOWHERE
    memory: Memory | None = None

    @property
    def deps(self) -> Any:
        """What the run was given as ``deps``."""
        return None if self.memory is None else self.memory.deps

    @property
    def run_id(self) -> str:
        """The run."""
        return self.at.run_id

    @property
    def step(self) -> int:
        """Number of the step, from 0."""
        return self.at.step

    @property
    def state(self) -> str | None:
        """Name of the state."""
        return self.at.state

    @property
    def path(self) -> tuple[str, ...]:
        """The subnets and branches around the state, outermost first."""
        return self.at.path


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRequest(HookRequest):
    """A model call, or an attempt of one, that is about to be made.

    Attributes:
        llm: The model.
        messages: The messages for the model.
        tools: The tools that it may call.
        output_type: The type of data that is requested, if any.
        attempt: Number of the attempt, from 1; 0 for the call as a whole.
    """

    llm: LLM
    messages: Sequence[Message]
    tools: Sequence[BaseTool] = ()
    output_type: type[BaseModel] | None = None
    attempt: int = 0

    @property
    def model(self) -> str:
        """The name of the model."""
        return self.llm.model


@dataclass(frozen=True, slots=True)
class ModelResponse:
    """The response of a model.

    Attributes:
        text: Its text, without thoughts.
        actions: The tool calls that it requests.
        thoughts: Its thoughts.
        usage: The usage of the call; None if unknown.
        finish_reason: Why it ended, if the provider said so.
    """

    text: str = ""
    actions: tuple[Action, ...] = ()
    thoughts: str = ""
    usage: Usage | None = None
    finish_reason: FinishReason | None = None


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
    """

    content: str
    is_error: bool = False
    exception: Exception | None = None


class Hook:
    """Base class of hooks. Override what is needed; each method may be ``async`` or not.

    ``before_…`` returns None, or a changed request (:func:`dataclasses.replace`), or a response,
    and then nothing is called; or it raises :class:`~agent_brain.errors.Refused`. ``after_…``
    returns None, or a changed response. ``on_…_error`` returns None, or a response in place of the
    error. Hooks run in the order in which they were given, the Brain's before the net's;
    ``after_…`` and ``on_…_error`` in the opposite order. They are not called for a call that is
    cancelled or left early.

    A subclass with a method ``before_…``, ``after_…`` or ``on_…`` that is none of these is refused
    with :class:`StateDefinitionError`: a misspelt hook would never be called.

    Attributes:
        buffer: The text of a model is held back until ``after_model_call`` has run, so that it can
            be changed. Without it, ``after_model_call`` changes what is recorded, but not the text
            that has streamed already.
    """

    buffer: bool = False

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

    def before_attempt(self, request: ModelRequest) -> Any:
        """Called before each request that a :class:`LiteLLM` sends, fallbacks included.

        It may change the messages, but not ``llm``.
        """

    def after_attempt(self, request: ModelRequest, response: ModelResponse) -> Any:
        """Called with the whole response of an attempt."""

    def on_attempt_error(self, request: ModelRequest, error: Exception) -> Any:
        """Called when an attempt failed; it may be followed by another."""

    def before_tool_call(self, request: ToolRequest) -> Any:
        """Called before a tool call."""

    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> Any:
        """Called with the result of a tool call, also if it failed."""

    def on_tool_error(self, request: ToolRequest, error: Exception) -> Any:
        """Called when a tool raised; if it returns None, ``after_tool_call`` follows."""


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
}
_ITEMS: dict[type, dict[str, type]] = {
    ModelRequest: {"messages": Message, "tools": BaseTool},
    ModelResponse: {"actions": Action},
}


def check_given(method: str, given: object, kinds: Collection[type]) -> None:
    """Check what a method of a hook returned. Private.

    Args:
        method: The class and the method.
        given: What it returned, which is not None.
        kinds: What it may return.

    Raises:
        TypeError: It is neither, or one of its fields has a value of a wrong type.
    """
    kind = type(given)
    if not isinstance(given, tuple(kinds)):
        *others, last = ["None", *(f"a {expected.__name__}" for expected in kinds)]
        raise TypeError(f"{method} returned {given!r}: return {', '.join(others)} or {last}")
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
