"""The kinds of states in net files, and their options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agent_brain.common.suggest import did_you_mean
from agent_brain.nets.composition import MAX_CONCURRENCY, ForkKind, ParallelState, SubnetState
from agent_brain.nets.errors import UnknownNetError
from agent_brain.nets.net import Net
from agent_brain.states import prompts
from agent_brain.states.answering import AnswerState
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.models.llm import LLM
from agent_brain.states.reasoning import ReasoningState
from agent_brain.states.tool_round import ActionState

StateName: TypeAlias = Annotated[str, Field(description="Name of a state of the same net")]
NetName: TypeAlias = Annotated[
    str, Field(description="Name of a net under [nets], or of a registered net")
]


class Options(BaseModel):
    """Base class for the options of a state in a file; unknown keys are refused."""

    model_config = ConfigDict(extra="forbid")


class OnDone(Options):
    """Options of a state with one target."""

    on_done: StateName | None = Field(None, description="The next state. Default: the end")


class ReasoningOptions(Options):
    """Options of a reasoning state."""

    on_action: StateName
    on_answer: StateName
    prompt: str | None = Field(None, description="System prompt, with {goal} and {tools}")
    mode: Literal["auto", "native", "text"] = "auto"


class ActionOptions(Options):
    """Options of an action state."""

    on_done: StateName
    max_concurrency: int | None = Field(None, ge=1)


class AnswerOptions(OnDone):
    """Options of an answer state."""

    prompt: str = prompts.ANSWER
    ask: bool = Field(default=False, description="Call the model even if there is a closing text")


class SubnetOptions(OnDone):
    """Options of a subnet state."""

    net: NetName
    fork: ForkKind = False
    goal: str | None = None


class ParallelOptions(OnDone):
    """Options of a parallel state."""

    branches: dict[str, NetName] = Field(min_length=1)
    on_error: Literal["cancel", "report"] = "cancel"
    until: Literal["all", "first"] = "all"
    max_concurrency: int | None = Field(MAX_CONCURRENCY, ge=1)
    fork: Literal[True, "empty"] = True


@dataclass(frozen=True, slots=True)
class BuildContext:
    """What a state is built from: the model, the keys of its net, and a function for nets."""

    llm: LLM
    keys: Mapping[str, Enum]
    net: Callable[[str], Net]

    def key(self, name: str) -> Enum:
        """Return the key of a state.

        Raises:
            StateDefinitionError: The net has no such state.
        """
        if name not in self.keys:
            raise StateDefinitionError(
                f"{name!r} is not a state of the net; its states are: {', '.join(self.keys)}."
                f"{did_you_mean(name, self.keys)}"
            )
        return self.keys[name]

    def key_or_end(self, name: str | None) -> Enum | None:
        """Like :meth:`key`, with None for the end."""
        return None if name is None else self.key(name)

    def arguments(self, options: Options, **others: Any) -> dict[str, Any]:
        """Return options as arguments of a state, with keys in place of names of states."""
        targets = {name: self.key_or_end(v) for name, v in options if name in _TARGETS}
        return dict(options) | targets | others


T = TypeVar("T", bound=Options)
Build: TypeAlias = Callable[[Any, BuildContext], State]

_TARGETS = ("on_action", "on_answer", "on_done")
_kinds: dict[str, tuple[type[Options], Build]] = {}


def register_state(name: str, options: type[T], build: Callable[[T, BuildContext], State]) -> None:
    """Register a kind of state for net files.

    Args:
        name: Its name in ``type = "…"`` (case-insensitive).
        options: Its options; names of states are fields of type ``str``.
        build: Makes the state from the validated options.

    Raises:
        UnknownNetError: The name is already registered.
    """
    key = name.casefold()
    if key in _kinds:
        raise UnknownNetError(f"A kind of state named {name!r} is already registered")
    _kinds[key] = (options, build)


def state_kinds() -> Mapping[str, tuple[type[Options], Build]]:
    """Return the registered kinds, each with its options and its build function."""
    return _kinds


register_state(
    "reasoning",
    ReasoningOptions,
    lambda options, context: ReasoningState(context.llm, **context.arguments(options)),
)
register_state(
    "action", ActionOptions, lambda options, context: ActionState(**context.arguments(options))
)
register_state(
    "answer",
    AnswerOptions,
    lambda options, context: AnswerState(context.llm, **context.arguments(options)),
)
register_state(
    "subnet",
    SubnetOptions,
    lambda options, context: SubnetState(
        **context.arguments(options, net=context.net(options.net))
    ),
)
register_state(
    "parallel",
    ParallelOptions,
    lambda options, context: ParallelState(
        **context.arguments(
            options, branches={name: context.net(net) for name, net in options.branches.items()}
        )
    ),
)
