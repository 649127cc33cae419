"""Nets inside nets: one as a step of another, or several at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import Enum
from typing import Any, Literal, TypeAlias

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.nets.net import Net, as_net
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event
from agent_brain.tools.aio import maybe_await

NetLike: TypeAlias = Net | Mapping[Any, State]
Goal: TypeAlias = Callable[[Memory], str | Message | Awaitable[str | Message]]
Join: TypeAlias = Callable[[Memory, Sequence[Branch]], str | Awaitable[str | None] | None]


class SubnetState(State):
    """A net as one state of another net.

    On the memory of the outer net (the default) it adds its messages there; on a fork, only its
    answer is added, as an assistant's message. Its events carry this state's name in ``path``.

    Args:
        net: What is run.
        on_done: Where to go afterwards; None ends the run.
        fork: Run on a fork of the memory.
        goal: What is asked of the subnet, if not the goal of the outer net: text, or a function of
            the memory. Needs ``fork``.
        aside: What the subnet says is not for the reader: it streams as thoughts.
    """

    def __init__(
        self,
        net: NetLike,
        *,
        on_done: Enum | None = None,
        fork: bool = False,
        goal: str | Goal | None = None,
        aside: bool = False,
    ) -> None:
        if goal is not None and not fork:
            raise StateDefinitionError(
                "SubnetState(goal=…) needs fork=True: a memory has one goal at a time"
            )
        self.net = as_net(net)
        self.on_done = on_done
        self.fork = fork
        self.goal = goal
        self.aside = aside

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The net inside."""
        return {self.net.name: self.net}

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        """Have the net run, and record its answer if it ran on a fork."""
        if not self.fork:
            yield Delegate([Branch("", self.net, memory)], aside=self.aside)
            return
        async with await memory.fork() as fork:
            if self.goal is not None:
                await fork.set_goal(await _resolve(self.goal, memory))
            branch = Branch("", self.net, fork)
            yield Delegate([branch], aside=self.aside)
        if branch.ended:  # a state whose branch a limit stopped is run again when the run goes on
            await memory.update([Message.assistant(branch.answer, cause_by=type(self).__name__)])

    async def next_state(self, memory: Memory) -> Enum | None:
        """``on_done``."""
        return self.on_done

    def targets(self) -> tuple[Enum | None, ...]:
        """``on_done``, or the end."""
        return (self.on_done,)


class ParallelState(State):
    """Several nets at once, each on a fork of the memory, and a function that joins their findings.

    What the branches say streams as thoughts while they run, each event with its ``path``; the
    joined text is what the state says, and is recorded as an assistant's message. The memory itself
    changes only then: a branch that fails, or is cancelled, leaves no trace in it.

    Args:
        branches: Nets, by name or in order (then named ``"0"``, ``"1"``, …).
        join: Makes one text of the ended branches; it may be async, and may write to the memory
            itself and return None. Default: the branches' answers, each under its name.
        on_error: A branch that fails cancels the others and the run (``"cancel"``), or is told to
            ``join`` as ``branch.error`` (``"report"``).
        until: ``"all"`` waits for all branches. ``"first"`` ends with the first that has come to
            its end and cancels the others; ``join`` then gets that one, and those that failed
            before, and its default is the answer of that one.
        on_done: Where to go afterwards; None ends the run.
    """

    parallel = True

    def __init__(
        self,
        branches: Mapping[str, NetLike] | Sequence[NetLike],
        *,
        join: Join | None = None,
        on_error: Literal["cancel", "report"] = "cancel",
        until: Literal["all", "first"] = "all",
        on_done: Enum | None = None,
    ) -> None:
        if until not in ("all", "first"):
            raise StateDefinitionError(f"until={until!r}: use 'all' or 'first'")
        if on_error not in ("cancel", "report"):
            raise StateDefinitionError(f"on_error={on_error!r}: use 'cancel' or 'report'")
        if join is not None and not callable(join):
            raise StateDefinitionError(
                f"join={join!r}: give a function of the memory and the branches"
            )
        if not isinstance(branches, Mapping):
            branches = {str(index): net for index, net in enumerate(branches)}
        if not branches:
            raise StateDefinitionError("ParallelState needs at least one branch")
        for name in branches:
            if not isinstance(name, str):
                raise StateDefinitionError(f"The name of a branch is a text, not {name!r}")
        self.branches = {name: as_net(net) for name, net in branches.items()}
        self.join = join or (list_answers if until == "all" else first_answer)
        self.until: Literal["all", "first"] = until
        self.on_error: Literal["cancel", "report"] = on_error
        self.on_done = on_done

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The nets of the branches, by name."""
        return self.branches

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        """Have the branches run at once, join them, record and say what came of it."""
        async with AsyncExitStack() as stack:
            branches = [
                Branch(name, net, await stack.enter_async_context(await memory.fork()))
                for name, net in self.branches.items()
            ]
            yield Delegate(branches, on_error=self.on_error, aside=True, until=self.until)
            if self.until == "first" and any(branch.ended for branch in branches):
                branches = [b for b in branches if b.ended or b.error is not None]
            text = await maybe_await(self.join(memory, branches))
        cut = any(branch.error is None and not branch.ended for branch in branches)
        if text and not cut:  # else a limit was reached, and the state is run again after it
            await memory.update([Message.assistant(text, cause_by=type(self).__name__)])
            yield text

    async def next_state(self, memory: Memory) -> Enum | None:
        """``on_done``."""
        return self.on_done

    def targets(self) -> tuple[Enum | None, ...]:
        """``on_done``, or the end."""
        return (self.on_done,)


def list_answers(memory: Memory, branches: Sequence[Branch]) -> str:
    """The answers of the branches, or how they failed, each under its name."""
    return "\n\n".join(
        f"{branch.name}: {branch.answer if branch.error is None else f'failed: {branch.error}'}"
        for branch in branches
    )


def first_answer(memory: Memory, branches: Sequence[Branch]) -> str:
    """The answer of the branch that came to its end, or how the branches failed."""
    ended = [branch.answer for branch in branches if branch.ended]
    return ended[0] if ended else list_answers(memory, branches)


async def _resolve(goal: str | Goal, memory: Memory) -> str | Message:
    if isinstance(goal, str):
        return goal
    return await maybe_await(goal(memory))
