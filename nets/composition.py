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
from agent_brain.common.values import check_count, check_function
from agent_brain.memories.base import Memory
from agent_brain.memories.branches.copying import emptied
from agent_brain.memories.control import Control
from agent_brain.memories.message import Message
from agent_brain.nets.delegation import Branch, Delegate, check_choice
from agent_brain.nets.kept_results import KeptResults, RemainingBranches
from agent_brain.nets.net import Net, as_net
from agent_brain.states.base import Choose, RoutedState, State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.function import StateFunction
from agent_brain.states.session_state import Into, keeper_if_any
from agent_brain.states.work import StreamItem

MAX_CONCURRENCY = 10
"""How many branches of a state run at once by default: what a limit may be exceeded by."""

NetLike: TypeAlias = Net | Mapping[Any, State | StateFunction]
Goal: TypeAlias = Callable[[Memory], str | Message | Awaitable[str | Message]]
Join: TypeAlias = Callable[[Memory, Sequence[Branch]], str | Awaitable[str | None] | None]


class SubnetState(RoutedState):
    """A net as one state of another net.

    By default it runs on the memory of the outer net and adds its messages there; on a fork, only
    its answer is added, as an assistant message. Its output becomes that of the run, unless
    ``join`` makes another answer. The ``path`` of its events includes the name of this state.

    Args:
        net: The net to run.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).
        fork: Whether to run on a fork of the memory. ``"empty"``: on a memory of the same kind and
            with the same tools that holds nothing but the goal.
        goal: The goal of the subnet, if it differs from that of the outer net: text, or a function
            of the memory. Requires ``fork``.
        join: A function of the memory and the output of the net (of its answer, if it has made no
            output), sync or async: what it returns is the answer and is recorded; if it returns
            None, nothing is. Requires ``fork``.
        into: Where the output of the net is kept (:class:`AskState`), if it has an ``output_type``.
            If it ends without an output, nothing is kept. Default: an output whose type is a class
            of notes is written as such, any other is not kept.
        as_thoughts: Whether the text of the subnet streams as thoughts.
    """

    def __init__(
        self,
        net: NetLike,
        *,
        on_done: Enum | None = None,
        choose: Choose | None = None,
        fork: ForkKind = False,
        goal: str | Goal | None = None,
        join: Callable[[Memory, Any], str | Awaitable[str | None] | None] | None = None,
        into: Into | None = None,
        as_thoughts: bool = False,
    ) -> None:
        super().__init__(on_done, choose)
        check_fork(fork)
        if goal is not None and not fork:
            raise StateDefinitionError(
                "SubnetState(goal=…) requires fork=True or 'empty': a memory has one goal at a time"
            )
        if goal is not None and not isinstance(goal, str):
            check_function(StateDefinitionError, "goal", goal, "memory")
        check_function(StateDefinitionError, "join", join, "memory", "output", optional=True)
        if join is not None and not fork:
            raise StateDefinitionError(
                "SubnetState(join=…) requires fork=True or 'empty': otherwise the messages of the "
                "subnet are those of the memory"
            )
        self.net = as_net(net)
        self.fork: ForkKind = fork
        self.goal = goal
        self.join = join
        kind = self.net.output_type
        if into is not None and kind is None:
            raise StateDefinitionError(
                f"SubnetState(into={into!r}): the net has no output_type=, and so nothing to keep"
            )
        self._keep = keeper_if_any(kind, into)
        self.as_thoughts = as_thoughts

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The net by its name."""
        return {self.net.name: self.net}

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the net, keep its output, and record its answer if it ran on a fork."""
        if not self.fork:
            branch = Branch("", self.net, memory)
            yield Delegate([branch], as_thoughts=self.as_thoughts)
            if branch.completed:
                await self._keep_output(memory, branch)
            return
        goal = None if self.goal is None else await _resolve(self.goal, memory)
        async with await forked(memory, self.net.name, self.fork, goal, type(self)) as fork:
            branch = Branch("", self.net, fork)
            aside = self.as_thoughts or self.join is not None
            yield Delegate([branch], as_thoughts=aside)
        if not branch.completed:  # after a limit, the state runs again on resume
            return
        await self._keep_output(memory, branch)
        text: str | None = branch.answer
        if self.join is None:
            if branch.has_output:
                memory.control.output = branch.output
        else:
            data = branch.output if branch.has_output else branch.answer
            text = checked_text(await maybe_await(self.join(memory, data)), "SubnetState")
            if text and not self.as_thoughts:
                yield text
        if text is not None:
            await memory.update([Message.assistant(text, cause_by=type(self).__name__)])

    async def _keep_output(self, memory: Memory, branch: Branch) -> None:
        if self._keep is not None and branch.has_output:
            await maybe_await(self._keep(memory, branch.output))


class ParallelState(RoutedState):
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
        fork: Whether branches begin with what the memory holds, or, ``"empty"``, with nothing but
            the goal.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).
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
        fork: ForkKind = True,
        on_done: Enum | None = None,
        choose: Choose | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        check_fork(fork, always=True)
        check_count(StateDefinitionError, "max_concurrency", max_concurrency, optional=True)
        check_choice("until", until, "all", "first")
        check_choice("on_error", on_error, "cancel", "report")
        check_function(StateDefinitionError, "join", join, "memory", "branches", optional=True)
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
        self.fork: ForkKind = fork

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The nets of the branches by name."""
        return self.branches

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the branches concurrently, join them, and record the result."""
        kept = KeptResults(memory)
        async with AsyncExitStack() as stack:
            branches = [
                Branch(name, net, await stack.enter_async_context(made))
                for name, net in self.branches.items()
                for made in [await forked(memory, name, self.fork, None, type(self))]
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


ForkKind: TypeAlias = bool | Literal["empty"]


def check_fork(fork: object, *, always: bool = False) -> None:
    """Refuse what is not a way to make a branch.

    Raises:
        StateDefinitionError: It is none.
    """
    if fork != "empty" and (not isinstance(fork, bool) or (always and not fork)):
        allowed = "True or 'empty'" if always else "True, False or 'empty'"
        raise StateDefinitionError(f"fork={fork!r}: use {allowed}")


async def forked(
    memory: Memory, name: str, fork: ForkKind, goal: str | Message | None, cause: type[State]
) -> Memory:
    """Return the memory of a branch of the current step.

    Args:
        memory: The memory of the run.
        name: Identifies the branch in the step.
        fork: ``"empty"`` for a memory that holds nothing but the goal.
        goal: The goal; None for that of the run.
        cause: The state.
    """
    if fork == "empty":
        given = (await memory.goal())[-1] if goal is None else goal_of(goal, cause)
        return await memory.nested(await emptied(memory), given, name)
    made = await memory.branch(name)
    if goal is not None and not made.resumed:
        await made.set_goal(goal_of(goal, cause))
    return made


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
