"""Other nets as work of a state: the Brain runs them while the state waits.

A state that needs another net yields a :class:`Delegate`, then reads the outcome from its branches.
The Brain, and ``run_state`` in tests, run them, so events, limits, cancellation and resuming reach
into every branch.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, ValidationError

from agent_brain.common.json_data import data_of
from agent_brain.common.text import to_text
from agent_brain.common.values import check_count
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import ScratchError
from agent_brain.memories.message import Message
from agent_brain.memories.runs.scratch import Scratch
from agent_brain.nets.net import Net
from agent_brain.states.answering import last_answer
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event
from agent_brain.states.hooks import Hook
from agent_brain.states.work import Work, WorkContext, key_in_step


@dataclass(slots=True, eq=False)
class Branch:
    """One net to run over one memory, and its outcome.

    Attributes:
        name: The name in the ``path`` of its events.
        net: The net.
        memory: The memory it runs on: a fork, or the memory of the state that delegates.
        answer: The text of its last state that said anything.
        output: The data of its answer, if the net has an ``output_type``.
        has_output: Whether it has made an output, which may be None.
        stop_reason: Why it ended; None if it failed or was cancelled.
        error: The exception that it raised.
        finish_reason: The finish reason of the model response with the answer.
        hooks: Hooks around the net, besides those of the run.
        limits: :class:`agent_brain.Limits` of the branch itself, within those of the run.
        own_limit: Whether it ended at one of these, so that the run continues.
        call_id: ID of the tool call that runs the net, if one does.
        prepare: Makes the memory when the branch begins; it is closed when the branch has ended.
    """

    name: str
    net: Net
    memory: Memory
    answer: str = ""
    output: Any = None
    stop_reason: str | None = None
    error: Exception | None = None
    finish_reason: str | None = None
    hooks: Sequence[Hook] = ()
    limits: Any = None  # of a package above this one
    own_limit: bool = False
    call_id: str = ""
    prepare: Callable[[], Awaitable[Memory]] | None = None
    has_output: bool = False

    def __post_init__(self) -> None:
        given: object = self.net
        if not isinstance(given, Net):
            raise StateDefinitionError(
                f"Branch({self.name!r}, net={given!r}): pass a net, such as Net({{…}})"
            )

    @property
    def completed(self) -> bool:
        """Whether it finished, rather than stopping at an error, a limit or a question."""
        return self.stop_reason in ("done", "stuck")


def check_choice(option: str, value: object, *allowed: str) -> None:
    """Refuse a value that is none of those an option has.

    Raises:
        StateDefinitionError: It is none.
    """
    if value not in allowed:
        uses = " or ".join(map(repr, allowed))
        raise StateDefinitionError(f"{option}={value!r}: use {uses}")


OnEnd: TypeAlias = Callable[[Branch], Awaitable[Iterable[Event]]]


@dataclass(eq=False)
class Delegate(Work):
    """Nets to run now; yield it from ``State.run``.

    One branch runs as part of the state, and its text is that of the state, unless ``as_thoughts``
    is set. Several branches run concurrently, each on its own memory, and their text streams as
    thoughts.

    Attributes:
        branches: The branches to run.
        on_error: Whether a branch that fails cancels the others and the run, or is only reported as
            ``branch.error``.
        until: Whether to run until all branches have ended, or until the first has finished; the
            others are then cancelled.
        as_thoughts: Whether the text of a single branch streams as thoughts, too.
        beside: Events of the state itself, which stream while the branches run.
        on_end: Called when a branch has ended in any way; the events that it returns are streamed
            as events of the state.
        max_concurrency: The maximum number of concurrent branches, started in order; None for all.

    Raises:
        StateDefinitionError: An option has a value that is not one of these.
    """

    branches: Sequence[Branch] = field(default_factory=tuple)
    on_error: Literal["cancel", "report"] = "cancel"
    as_thoughts: bool = False
    until: Literal["all", "first"] = "all"
    beside: AsyncIterator[Event] | None = None
    on_end: OnEnd | None = None
    max_concurrency: int | None = None

    def __post_init__(self) -> None:
        given: object = self.branches
        if not isinstance(given, Sequence) or not all(isinstance(b, Branch) for b in given):
            raise StateDefinitionError(
                f"Delegate(branches={given!r}): pass a list of Branch objects"
            )
        check_choice("Delegate.on_error", self.on_error, "cancel", "report")
        check_choice("Delegate.until", self.until, "all", "first")
        check_count(StateDefinitionError, "max_concurrency", self.max_concurrency, optional=True)

    def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Let ``context`` run the nets.

        Raises:
            RuntimeError: There is no run to be part of.
        """
        if context is None:
            raise RuntimeError("A Delegate needs a run: yield it from State.run")
        return context.delegate(self)

    @property
    def result(self) -> Sequence[Branch]:
        """The branches."""
        return self.branches


async def answer_of(branch: Branch) -> str:
    """Return the answer of a branch: its last text, or else the last answer in its memory.

    If a limit stopped the branch, only an answer that it recorded counts.
    """
    return (branch.answer if branch.completed else "") or await last_answer(branch.memory)


class Part(BaseModel):
    """The result of a part: what a function returned, or the outcome of a branch."""

    value: Any = None
    output: Any = None
    output_class: str | None = None
    stop_reason: str | None = None
    finish_reason: str | None = None
    messages: list[Message] = Field(default_factory=list)


class KeptResults:
    """The results of the finished parts of one state.

    They are in ``control.ended`` of the memory, which is emptied when a step is complete, whether
    the state succeeded or not.

    Args:
        memory: The memory that the state runs on.
    """

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._written: set[str] = set()

    def find(self, name: str, context: WorkContext) -> Part | None:
        """Return the result of a part; None if it has not finished."""
        key = self._key(name, context)
        try:
            return Part.model_validate_json(self._memory.control.ended.get(key, ""))
        except ValidationError:
            return None

    async def keep(self, name: str, part: Part, context: WorkContext) -> bool:
        """Keep the result of a part, if it is a JSON value; return whether it is."""
        try:
            Scratch(value=part.value)
        except ScratchError:
            return False
        key = self._key(name, context)
        self._memory.control.ended[key] = part.model_dump_json()
        if self._memory.durable:
            await self._memory.record([key])
        return True

    def clear(self) -> None:
        """Remove the results: the state has used them."""
        for key in self._written:
            self._memory.control.ended.pop(key, None)

    def _key(self, name: str, context: WorkContext) -> str:
        key = key_in_step(context, name)
        self._written.add(key)
        return key


def name_of(index: int, item: object) -> str:
    """Return a name for an item of a list, by its place and its text."""
    return f"{index}:{hashlib.sha256(to_text(item).encode()).hexdigest()[:16]}"


class RemainingBranches(Work):
    """Run the nets of a :class:`Delegate`, without those that have finished before.

    Args:
        order: The nets; ``as_thoughts`` must be set, as one of several may be left.
        kept: The results.
        names: A name for each branch. Default: the names of the branches.
        messages: Whether to restore the messages of finished branches in their memories too.
    """

    def __init__(
        self,
        order: Delegate,
        kept: KeptResults,
        *,
        names: Sequence[str] = (),
        messages: bool = False,
    ) -> None:
        self._order = order
        self._kept = kept
        self._messages = messages
        named = names or [branch.name for branch in order.branches]
        self._names = dict(zip(order.branches, named, strict=True))
        self._before: dict[Branch, set[str]] = {}

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Run them, and keep the result of each that finishes."""
        order = self._order
        if context is not None:
            order.branches = [
                branch for branch in order.branches if not await self._restore(branch, context)
            ]

            async def on_end(branch: Branch) -> Sequence[Event]:
                await self._keep(branch, context)
                return ()

            order.on_end = on_end
            if order.until == "first" and len(order.branches) < len(self._names):
                return
        if order.branches:
            async with aclosing(order.events(context)) as events:
                async for event in events:
                    yield event

    async def _restore(self, branch: Branch, context: WorkContext) -> bool:
        part = self._kept.find(self._names[branch], context)
        if part is None:
            if self._messages:
                self._before[branch] = {message.id for message in await branch.memory.turn()}
            return False
        branch.answer, branch.stop_reason = part.value, part.stop_reason
        branch.finish_reason = part.finish_reason
        branch.output = branch.net.restore_output(part.output, part.output_class)
        branch.has_output = part.output_class is not None
        if part.messages:
            await branch.memory.update(part.messages)
        return True

    async def _keep(self, branch: Branch, context: WorkContext) -> None:
        if not branch.completed or branch.error is not None:
            return
        part = Part(
            value=branch.answer,
            stop_reason=branch.stop_reason,
            finish_reason=branch.finish_reason,
            output=data_of(branch.output, fallback=str),
            output_class=type(branch.output).__name__ if branch.has_output else None,
        )
        if self._messages and not branch.memory.durable:
            before = self._before[branch]
            part.messages = [m for m in await branch.memory.turn() if m.id not in before]
        await self._kept.keep(self._names[branch], part, context)
