"""The kinds of states that a net file may use, and what each takes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, ConfigDict, Field

from agent_brain.nets.composition import ParallelState, SubnetState
from agent_brain.nets.errors import UnknownNetError
from agent_brain.nets.net import Net
from agent_brain.states import prompts
from agent_brain.states.acting import ActionState
from agent_brain.states.answering import AnswerState
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.models.llm import LLM
from agent_brain.states.reasoning import ReasoningState
from agent_brain.tools.suggest import did_you_mean

StateName: TypeAlias = Annotated[str, Field(description="Name of a state of the same net")]
NetName: TypeAlias = Annotated[
    str, Field(description="Name of a net under [nets], or of a registered net")
]


class Options(BaseModel):
    """What a state takes in a file; other keys are refused."""

    model_config = ConfigDict(extra="forbid")


class OnDone(Options):
    """A state that goes on to one other."""

    on_done: StateName | None = Field(None, description="Where to go afterwards; else the end")


class ReasoningOptions(Options):
    """Options of a reasoning state."""

    on_action: StateName
    on_answer: StateName
    prompt: str | None = Field(None, description="Told to the model first; {goal}, {tools}")
    mode: Literal["auto", "native", "text"] = "auto"


class ActionOptions(Options):
    """Options of an action state."""

    on_done: StateName
    max_concurrency: int | None = Field(None, ge=1)


class AnswerOptions(OnDone):
    """Options of an answer state."""

    prompt: str = prompts.ANSWER
    ask: bool = Field(default=False, description="Ask the model even when there is closing text")


class SubnetOptions(OnDone):
    """Options of a net inside a net."""

    net: NetName
    fork: bool = False
    goal: str | None = None


class ParallelOptions(OnDone):
    """Options of nets that run at once."""

    branches: dict[str, NetName] = Field(min_length=1)
    on_error: Literal["cancel", "report"] = "cancel"
    until: Literal["all", "first"] = "all"


@dataclass(frozen=True, slots=True)
class Site:
    """Where a state is being built: the model, the keys of its net, and the nets it may use."""

    llm: LLM
    keys: Mapping[str, Enum]
    net: Callable[[str], Net]

    def key(self, name: str) -> Enum:
        """The key of a state by its name.

        Raises:
            StateDefinitionError: The net has no such state.
        """
        if name not in self.keys:
            raise StateDefinitionError(
                f"{name!r} is no state of the net; its states are: {', '.join(self.keys)}."
                f"{did_you_mean(name, self.keys)}"
            )
        return self.keys[name]

    def key_or_end(self, name: str | None) -> Enum | None:
        """As :meth:`key`; no name is the end."""
        return None if name is None else self.key(name)


T = TypeVar("T", bound=Options)
Build: TypeAlias = Callable[[Any, Site], State]

_kinds: dict[str, tuple[type[Options], Build]] = {}


def register_state(name: str, options: type[T], build: Callable[[T, Site], State]) -> None:
    """Make a kind of state available to net files.

    Args:
        name: What ``type = "…"`` calls it (case-insensitive).
        options: What else the file may say of it; names of states are fields of type ``str``.
        build: Makes the state of the validated options.

    Raises:
        UnknownNetError: The name is taken.
    """
    key = name.casefold()
    if key in _kinds:
        raise UnknownNetError(f"A kind of state named {name!r} is already registered")
    _kinds[key] = (options, build)


def state_kinds() -> Mapping[str, tuple[type[Options], Build]]:
    """Every registered kind: its options and how it is built."""
    return _kinds


def _reasoning(options: ReasoningOptions, site: Site) -> State:
    return ReasoningState(
        site.llm,
        on_action=site.key(options.on_action),
        on_answer=site.key(options.on_answer),
        prompt=options.prompt,
        mode=options.mode,
    )


def _action(options: ActionOptions, site: Site) -> State:
    return ActionState(site.key(options.on_done), max_concurrency=options.max_concurrency)


def _answer(options: AnswerOptions, site: Site) -> State:
    return AnswerState(
        site.llm, ask=options.ask, on_done=site.key_or_end(options.on_done), prompt=options.prompt
    )


def _subnet(options: SubnetOptions, site: Site) -> State:
    return SubnetState(
        site.net(options.net),
        on_done=site.key_or_end(options.on_done),
        fork=options.fork,
        goal=options.goal,
    )


def _parallel(options: ParallelOptions, site: Site) -> State:
    return ParallelState(
        {name: site.net(net) for name, net in options.branches.items()},
        on_error=options.on_error,
        until=options.until,
        on_done=site.key_or_end(options.on_done),
    )


register_state("reasoning", ReasoningOptions, _reasoning)
register_state("action", ActionOptions, _action)
register_state("answer", AnswerOptions, _answer)
register_state("subnet", SubnetOptions, _subnet)
register_state("parallel", ParallelOptions, _parallel)
