"""Nets inside nets: as one step, or several concurrently."""

from __future__ import annotations

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack
from enum import Enum
from typing import Any, Literal, TypeAlias

from agent_brain.common.aio import maybe_await
from agent_brain.common.secrets import scrub
from agent_brain.common.values import check_count
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.message import Message
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.nets.kept_results import KeptResults, RemainingBranches
from agent_brain.nets.net import Net, as_net
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.work import StreamItem

MAX_CONCURRENCY = 10
"""How many branches of a state run at once by default: what a limit may be exceeded by."""

NetLike: TypeAlias = Net | Mapping[Any, State]
Goal: TypeAlias = Callable[[Memory], str | Message | Awaitable[str | Message]]
Join: TypeAlias = Callable[[Memory, Sequence[Branch]], str | Awaitable[str | None] | None]


class OneTargetState(State):
    """Base class for states with one target, ``on_done``; None ends the run."""

    on_done: Enum | None

    async def next_state(self, memory: Memory) -> Enum | None:
        """Return ``on_done``."""
        return self.on_done

    def targets(self) -> tuple[Enum | None, ...]:
        """Return ``on_done``."""
        return (self.on_done,)


class SubnetState(OneTargetState):
    """A net as one state of another net.

    By default it runs on the memory of the outer net and adds its messages there; on a fork, only
    its answer is added, as an assistant message. The ``path`` of its events includes the name of
    this state.

    Args:
        net: The net to run.
        on_done: The next state; None ends the run.
        fork: Whether to run on a fork of the memory.
        goal: The goal of the subnet, if it differs from that of the outer net: text, or a function
            of the memory. Requires ``fork``.
        as_thoughts: Whether the text of the subnet streams as thoughts.
    """

    def __init__(
        self,
        net: NetLike,
        *,
        on_done: Enum | None = None,
        fork: bool = False,
        goal: str | Goal | None = None,
        as_thoughts: bool = False,
    ) -> None:
        if goal is not None and not fork:
            raise StateDefinitionError(
                "SubnetState(goal=…) requires fork=True: a memory has one goal at a time"
            )
        self.net = as_net(net)
        self.on_done = on_done
        self.fork = fork
        self.goal = goal
        self.as_thoughts = as_thoughts

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The net by its name."""
        return {self.net.name: self.net}

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the net, and record its answer if it ran on a fork."""
        if not self.fork:
            yield Delegate([Branch("", self.net, memory)], as_thoughts=self.as_thoughts)
            return
        async with await memory.branch(self.net.name) as fork:
            if self.goal is not None and not fork.resumed:
                await fork.set_goal(goal_of(await _resolve(self.goal, memory), type(self)))
            branch = Branch("", self.net, fork)
            yield Delegate([branch], as_thoughts=self.as_thoughts)
        if branch.completed:  # after a limit, the state runs again on resume
            await memory.update([Message.assistant(branch.answer, cause_by=type(self).__name__)])


class ParallelState(OneTargetState):
    """Several nets that run concurrently, each on a fork of the memory, and are joined.

    The text of the branches streams as thoughts, each event with its ``path``. The joined text is
    the text of the state and is recorded as an assistant message. The messages of the memory change
    only then: a branch that fails or is cancelled leaves no trace in them. A run that is resumed
    runs no branch again that had finished.

    Args:
        branches: Nets by name, or in order (then named ``"0"``, ``"1"``, …).
        join: Makes one text of the ended branches. It may be async; it may also write to the memory
            itself and return None. Default: the answers of the branches, with their names.
        on_error: Whether a branch that fails cancels the others and the run (``"cancel"``), or is
            passed to ``join`` with its ``error`` (``"report"``).
        until: ``"all"`` waits for all branches. ``"first"`` ends with the first branch that
            finishes and cancels the others; ``join`` then gets that branch and those that failed
            before, and by default returns the answer of that branch.
        max_concurrency: The maximum number of concurrent branches, started in order; None for all.
        on_done: The next state; None ends the run.
    """

    parallel = True

    def __init__(
        self,
        branches: Mapping[str, NetLike] | Sequence[NetLike],
        *,
        join: Join | None = None,
        on_error: Literal["cancel", "report"] = "cancel",
        until: Literal["all", "first"] = "all",
        max_concurrency: int | None = MAX_CONCURRENCY,
        on_done: Enum | None = None,
    ) -> None:
        check_count(StateDefinitionError, "max_concurrency", max_concurrency, optional=True)
        if until not in ("all", "first"):
            raise StateDefinitionError(f"until={until!r}: use 'all' or 'first'")
        if on_error not in ("cancel", "report"):
            raise StateDefinitionError(f"on_error={on_error!r}: use 'cancel' or 'report'")
        if join is not None and not callable(join):
            raise StateDefinitionError(
                f"join={join!r}: pass a function of the memory and the branches"
            )
        if not isinstance(branches, Mapping):
            branches = {str(index): net for index, net in enumerate(branches)}
        if not branches:
            raise StateDefinitionError("ParallelState needs at least one branch")
        for name in branches:
            if not isinstance(name, str):
                raise StateDefinitionError(f"The name of a branch must be a string, not {name!r}")
        self.branches = {name: as_net(net) for name, net in branches.items()}
        Control.model_rebuild()  # forks write it: its schema is built here, not in a run's time
        self.join = join or (list_answers if until == "all" else first_answer)
        self.until: Literal["all", "first"] = until
        self.on_error: Literal["cancel", "report"] = on_error
        self.max_concurrency = max_concurrency
        self.on_done = on_done

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The nets of the branches by name."""
        return self.branches

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the branches concurrently, join them, and record the result."""
        kept = KeptResults(memory)
        async with AsyncExitStack() as stack:
            branches = [
                Branch(name, net, await stack.enter_async_context(await memory.branch(name)))
                for name, net in self.branches.items()
            ]
            order = Delegate(
                branches,
                on_error=self.on_error,
                as_thoughts=True,
                until=self.until,
                max_concurrency=self.max_concurrency,
            )
            yield RemainingBranches(order, kept, messages=True)
            if self.until == "first" and any(branch.completed for branch in branches):
                branches = [b for b in branches if b.completed or b.error is not None]
            text = checked_text(await maybe_await(self.join(memory, branches)), "ParallelState")
        cut = any(branch.error is None and not branch.completed for branch in branches)
        if cut:  # by a limit: on resume the state runs again
            return
        if text:
            yield text
            await memory.update([Message.assistant(text, cause_by=type(self).__name__)])
        kept.clear()


def checked_text(text: Any, owner: str) -> str | None:
    """Return ``text``, which a ``join`` function of ``owner`` returned.

    Raises:
        StateDefinitionError: It is neither text nor None.
    """
    if text is None or isinstance(text, str):
        return text
    raise StateDefinitionError(
        f"{owner}(join=…): the function returned an object of type {type(text).__name__}: return "
        "text, or None"
    )


def failure_text(error: BaseException) -> str:
    """Return what to write in place of a result."""
    return scrub(f"failed: {str(error).strip() or type(error).__name__}")


def list_answers(memory: Memory, branches: Sequence[Branch]) -> str:
    """Return the answers or errors of the branches, with their names."""
    return "\n\n".join(
        f"{branch.name}: {branch.answer if branch.error is None else failure_text(branch.error)}"
        for branch in branches
    )


def first_answer(memory: Memory, branches: Sequence[Branch]) -> str:
    """Return the answer of the branch that finished, or else the errors of the branches."""
    ended = [branch.answer for branch in branches if branch.completed]
    return ended[0] if ended else list_answers(memory, branches)


def goal_of(goal: str | Message, cause: type[State]) -> Message:
    """Return the goal of a branch; what a state writes is not the user's word."""
    return goal if isinstance(goal, Message) else Message.user(goal, cause_by=cause)


async def _resolve(goal: str | Goal, memory: Memory) -> str | Message:
    if isinstance(goal, str):
        return goal
    return await maybe_await(goal(memory))
