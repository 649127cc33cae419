"""Tasks of experiments: what is said to an agent, and what is expected of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_brain.common.text import clean
from agent_brain.common.values import is_amount
from agent_brain.errors import ExperimentError
from agent_brain.experiments.checks import Check, Expected, as_check
from agent_brain.limits import Limits
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.tools.toolset import ToolLike

MakeTools = Callable[[], Iterable[ToolLike]]
Prepare = Callable[[Memory], Awaitable[None] | None]


def is_name(value: object) -> bool:
    """Return whether ``value`` is a text that is not empty and can be written to a file."""
    return isinstance(value, str) and bool(value.strip()) and clean(value) == value


def _is_list(value: Any, fits: Callable[[Any], bool]) -> bool:
    several = isinstance(value, Iterable) and not isinstance(value, str | Iterator)
    return several and all(map(fits, value))


_FIELDS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "turns": (
        lambda v: isinstance(v, str) or _is_list(v, lambda turn: isinstance(turn, str | Turn)),
        "a text, or a list of texts and turns",
    ),
    "tools": (
        lambda v: callable(v) or (isinstance(v, Iterable) and not isinstance(v, str)),
        "a list of tools, or a function that makes it",
    ),
    "tags": (lambda v: _is_list(v, is_name), "a list of words"),
    "messages": (lambda v: _is_list(v, lambda m: isinstance(m, Message)), "a list of messages"),
    "prepare": (lambda v: v is None or callable(v), "a function of the memory, or None"),
    "limits": (lambda v: v is None or isinstance(v, Limits), "Limits(…), or None"),
    "max_cost": (lambda v: v is None or is_amount(v), "a number above 0, or None for no limit"),
    "source": (lambda v: isinstance(v, str), "a text"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """What a user says, and what is expected of the answer.

    Attributes:
        text: What the user says.
        expected: What is expected of the answer to this turn; None to expect nothing.
        session: The session it is said in. A turn in another session than the turn before is said
            in a new session of the same user, or continues an earlier one; the program restarts in
            between: brain and memory are closed and made again.
        restart: Restart the program before this turn, in the same session.
    """

    text: str
    expected: Expected | None = None
    session: str = "1"
    restart: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise ExperimentError(f"Turn(text={self.text!r}): a text that is not empty")
        if not is_name(self.session):
            raise ExperimentError(f"Turn(session={self.session!r}): a text that is not empty")
        if not isinstance(self.restart, bool):
            raise ExperimentError(f"Turn(restart={self.restart!r}): True or False")

    @property
    def check(self) -> Check | None:
        """The check of this turn's answer."""
        return None if self.expected is None else as_check(self.expected)


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task of an experiment.

    ::

        Task(id="sum", turns="What is 17 + 25?", expected=42, tools=[add])

    Every case of the task has a memory and tools of its own. It passes if every turn with an
    expectation passes.

    Attributes:
        id: Its name, unique in an experiment.
        turns: What the user says: a text, or several turns in order.
        expected: What is expected of the last answer, besides what turns expect: a text that it
            contains, a number, a compiled regular expression, data that ``Result.output`` equals,
            a function, or a :class:`Check`.
        tools: The tools of the task, or a function that makes them for each case. They come
            before those of the experiment.
        output_type: The type of the output, for nets that take it.
        tags: Words by which reports group tasks.
        messages: What the memory already holds when the first turn begins.
        prepare: Called with the memory of each case before its first turn, sync or async.
        limits: Limits of each turn, instead of those of the experiment.
        max_cost: Budget of the whole case in US dollars; None for no budget of its own.
        deps: What the states and tools of its runs need (``memory.deps``, ``ToolContext.deps``).
        source: Where the task comes from, such as a task set with its licence.
    """

    id: str
    turns: str | Sequence[Turn | str]
    expected: Expected | None = None
    tools: Iterable[ToolLike] | MakeTools = ()
    output_type: Any = None
    tags: Sequence[str] = ()
    messages: Sequence[Message] = ()
    prepare: Prepare | None = None
    limits: Limits | None = None
    max_cost: float | None = None
    deps: object = None
    source: str = ""
    _turns: tuple[Turn, ...] = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self) -> None:
        if not is_name(self.id):
            raise ExperimentError(f"Task(id={self.id!r}): a name that is not empty")
        for name, (fits, what) in _FIELDS.items():
            if not fits(getattr(self, name)):
                raise ExperimentError(
                    f"Task {self.id!r}: {name}={getattr(self, name)!r} must be {what}"
                )
        said = [self.turns] if isinstance(self.turns, str) else self.turns
        turns = [turn if isinstance(turn, Turn) else Turn(text=turn) for turn in said]
        if not turns:
            raise ExperimentError(f"Task {self.id!r} has no turns")
        checks = [self.check, *(turn.check for turn in turns)]
        if all(check is None for check in checks):
            raise ExperimentError(
                f"Task {self.id!r} expects nothing: give expected= to it or to one of its turns"
            )
        object.__setattr__(self, "_turns", tuple(turns))
        if not callable(self.tools):
            object.__setattr__(self, "tools", tuple(self.tools))  # each case reads them

    @property
    def all_turns(self) -> tuple[Turn, ...]:
        """The turns, each as a :class:`Turn`."""
        return self._turns

    @property
    def check(self) -> Check | None:
        """The check of the last answer."""
        return None if self.expected is None else as_check(self.expected)

    def make_tools(self) -> list[ToolLike]:
        """Return the tools of one case."""
        return list(self.tools() if callable(self.tools) else self.tools)
