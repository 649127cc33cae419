"""Nets inside nets: as one step, or several concurrently."""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Literal, TypeAlias

import anyio

from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.message import Message
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.nets.net import Net, as_net
from agent_brain.states.base import State
from agent_brain.states.concurrency import Together, failure_of
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event, TextDelta
from agent_brain.states.models.llm import Thought
from agent_brain.states.work import StreamItem, Work, WorkContext, perform, position_of
from agent_brain.tools.aio import is_async_function, maybe_await, run_in_thread
from agent_brain.tools.secrets import scrub
from agent_brain.tools.text import to_text
from agent_brain.tools.values import is_count

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
        as_thoughts: Whether the text of the subnet streams as thoughts. ``aside`` is the old name.
    """

    def __init__(
        self,
        net: NetLike,
        *,
        on_done: Enum | None = None,
        fork: bool = False,
        goal: str | Goal | None = None,
        as_thoughts: bool = False,
        aside: bool = False,
    ) -> None:
        if goal is not None and not fork:
            raise StateDefinitionError(
                "SubnetState(goal=…) requires fork=True: a memory has one goal at a time"
            )
        self.net = as_net(net)
        self.on_done = on_done
        self.fork = fork
        self.goal = goal
        self.as_thoughts = as_thoughts or aside

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The net by its name."""
        return {self.net.name: self.net}

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the net, and record its answer if it ran on a fork."""
        if not self.fork:
            yield Delegate([Branch("", self.net, memory)], as_thoughts=self.as_thoughts)
            return
        async with await memory.fork() as fork:
            if self.goal is not None:
                await fork.set_goal(await _resolve(self.goal, memory))
            branch = Branch("", self.net, fork)
            yield Delegate([branch], as_thoughts=self.as_thoughts)
        if branch.completed:  # after a limit, the state runs again on resume
            await memory.update([Message.assistant(branch.answer, cause_by=type(self).__name__)])


class ParallelState(OneTargetState):
    """Several nets that run concurrently, each on a fork of the memory, and are joined.

    The text of the branches streams as thoughts, each event with its ``path``. The joined text is
    the text of the state and is recorded as an assistant message. The memory changes only then: a
    branch that fails or is cancelled leaves no trace in it.

    Args:
        branches: Nets by name, or in order (then named ``"0"``, ``"1"``, …).
        join: Makes one text of the ended branches. It may be async; it may also write to the memory
            itself and return None. Default: the answers of the branches, with their names.
        on_error: Whether a branch that fails cancels the others and the run (``"cancel"``), or is
            passed to ``join`` with its ``error`` (``"report"``).
        until: ``"all"`` waits for all branches. ``"first"`` ends with the first branch that
            finishes and cancels the others; ``join`` then gets that branch and those that failed
            before, and by default returns the answer of that branch.
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
        on_done: Enum | None = None,
    ) -> None:
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
        self.on_done = on_done

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The nets of the branches by name."""
        return self.branches

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Run the branches concurrently, join them, and record the result."""
        async with AsyncExitStack() as stack:
            branches = [
                Branch(name, net, await stack.enter_async_context(await memory.fork()))
                for name, net in self.branches.items()
            ]
            yield Delegate(branches, on_error=self.on_error, as_thoughts=True, until=self.until)
            if self.until == "first" and any(branch.completed for branch in branches):
                branches = [b for b in branches if b.completed or b.error is not None]
            text = _checked_text(await maybe_await(self.join(memory, branches)), "ParallelState")
        cut = any(branch.error is None and not branch.completed for branch in branches)
        if text and not cut:  # after a limit, the state runs again on resume
            yield text
            await memory.update([Message.assistant(text, cause_by=type(self).__name__)])


class MapState(OneTargetState):
    """Process each item of a list that is known only at run time.

    ::

        MapState(lambda memory: Pages.read(memory).urls, summarize, max_concurrency=5, join=collect)

    A net or a state runs on a fork of the memory for each item, with the item as its goal. Its text
    streams as thoughts, and the ``path`` of its events includes the name of the state and the index
    of the item. A function is called with each item, a sync one in a thread; it may return work,
    such as ``llm.call(…)``, whose text streams as thoughts. The limits of the run apply to all
    items together. The memory changes only when all have ended: an item that fails or is cancelled
    leaves no trace in it.

    Args:
        items: A function of the memory, sync or async, that returns the list.
        body: A net, a dict of states, a state, or a function of one item that returns its result or
            work, sync or async.
        max_concurrency: The maximum number of concurrent items, started in order. Default: all.
        join: Makes one text of the memory and the :class:`MapResult` of each item, in order. It may
            be async; it may also write to the memory itself and return None. The text is streamed
            and recorded as an assistant message. Default: the results in order.
        goal: The goal of a net for an item: a function of the item, sync or async. Default: the
            item as text.
        on_item_error: ``"raise"``: the first item that fails cancels the others, and its error is
            raised. ``"collect"``: ``join`` gets the error as ``MapResult.error``.
        on_done: The next state; None ends the run.

    Raises:
        StateDefinitionError: The arguments are invalid.
    """

    parallel = True

    def __init__(
        self,
        items: Callable[[Memory], Iterable[Any] | Awaitable[Iterable[Any]]],
        body: NetLike | State | Callable[[Any], Any],
        *,
        max_concurrency: int | None = None,
        join: Callable[[Memory, Sequence[MapResult]], Any] | None = None,
        goal: Callable[[Any], str | Message | Awaitable[str | Message]] | None = None,
        on_item_error: Literal["raise", "collect"] = "raise",
        on_done: Enum | None = None,
    ) -> None:
        for name, value in (("items", items), ("join", join), ("goal", goal)):
            if not (callable(value) or (value is None and name != "items")):
                raise StateDefinitionError(f"MapState({name}={value!r}): pass a function")
        if max_concurrency is not None and not is_count(max_concurrency):
            raise StateDefinitionError(
                f"max_concurrency must be at least 1, not {max_concurrency!r}"
            )
        if on_item_error not in ("raise", "collect"):
            raise StateDefinitionError(f"on_item_error={on_item_error!r}: use 'raise' or 'collect'")
        self.items = items
        self.net: Net | None = None
        self.function: Callable[[Any], Any] | None = None
        if isinstance(body, type) and issubclass(body, State | Net):
            raise StateDefinitionError(
                f"MapState(body={body.__name__}) is a class: pass an instance, {body.__name__}(…)"
            )
        if isinstance(body, State):
            self.net = Net({_Body.BODY: body}, transitions={_Body.BODY: None})
        elif isinstance(body, Net | Mapping):
            self.net = as_net(body)
        elif callable(body) and goal is None:
            self.function = body
        else:
            raise StateDefinitionError(
                f"MapState(body={body!r}): pass a net, a state, or a function of an item (without "
                "goal=)"
            )
        self.max_concurrency = max_concurrency
        self.join = join or list_results
        self.goal = goal
        self.on_item_error: Literal["raise", "collect"] = on_item_error
        self.on_done = on_done

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The net of an item, if ``body`` is not a function."""
        return {} if self.net is None else {"item": self.net}

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Process all items, join the results, and record the text."""
        found = [MapResult(item) for item in _as_list(await maybe_await(self.items(memory)))]
        if self.function is not None:
            collect = self.on_item_error == "collect"
            calls = [_FunctionCall(self.function, result, collect=collect) for result in found]
            yield Together(calls, max_concurrency=self.max_concurrency)
            cut = False
        else:
            branches = self._branches(memory, found)
            if branches:
                yield Delegate(
                    branches,
                    on_error="cancel" if self.on_item_error == "raise" else "report",
                    as_thoughts=True,
                    max_concurrency=self.max_concurrency,
                )
            for result, branch in zip(found, branches, strict=True):
                result.value, result.error = branch.answer, branch.error
            cut = any(branch.error is None and not branch.completed for branch in branches)
        joined = None if cut else await maybe_await(self.join(memory, found))
        text = _checked_text(joined, "MapState")
        if text:  # after a limit, the state runs again on resume
            yield text
            await memory.update([Message.assistant(text, cause_by=type(self).__name__)])

    def _branches(self, memory: Memory, results: Sequence[MapResult]) -> list[Branch]:
        """Return a branch for each item, whose memory is forked when it begins."""
        assert self.net is not None
        one_at_a_time = anyio.Lock()

        async def fork(item: Any) -> Memory:
            goal = item if self.goal is None else await maybe_await(self.goal(item))
            async with one_at_a_time:
                made = await memory.fork()
            await made.set_goal(goal if isinstance(goal, Message) else to_text(goal))
            return made

        return [
            Branch(str(index), self.net, memory, prepare=partial(fork, result.item))
            for index, result in enumerate(results)
        ]


class _Body(Enum):
    BODY = "body"


class _FunctionCall(Work):
    """A call of the function of a :class:`MapState` with one item."""

    def __init__(
        self, function: Callable[[Any], Any], outcome: MapResult, *, collect: bool
    ) -> None:
        self.function = function
        self.outcome = outcome
        self.collect = collect

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[str | Event, None]:
        """Call the function and do the work that it returns, if any."""
        try:
            value = await self._call()
            if isinstance(value, Work):
                async with aclosing(perform(value, context)) as events:
                    async for event in events:
                        yield _as_thought(event)
                value = value.result
            self.outcome.value = value
        except BaseException as error:
            failure = failure_of(error, position_of(context).state, MapState.__name__)
            if not self.collect or not isinstance(failure, Exception):
                if failure is error:
                    raise
                raise failure from error
            self.outcome.error = failure

    async def _call(self) -> Any:
        function, item = self.function, self.outcome.item
        name = getattr(function, "__name__", type(function).__name__)
        if is_async_function(function):
            value = await function(item)
        else:
            call = partial(function, item)
            value = await maybe_await(await run_in_thread(name, call, kind="function"))
        if isinstance(value, AsyncIterator | Iterator):
            if isinstance(value, AsyncGenerator):
                await value.aclose()
            raise StateDefinitionError(
                f"MapState(body={name}): the function returned an object of type "
                f"{type(value).__name__}: return the result itself, or work such as llm.call(…); "
                "for a function that yields, pass FunctionState(function)"
            )
        return value


def _as_thought(event: str | Event) -> str | Event:
    if isinstance(event, str):
        return Thought(event)
    return replace(event, thought=True) if type(event) is TextDelta else event


def _as_list(items: Any) -> Iterable[Any]:
    if isinstance(items, Iterable) and not isinstance(items, str | bytes | Mapping):
        return items
    hint = " such as list(found.items())" if isinstance(items, Mapping) else ""
    if isinstance(items, AsyncIterator):
        hint = " such as [item async for item in found], from an async function"
    raise StateDefinitionError(
        f"MapState(items=…): the function returned an object of type {type(items).__name__}: "
        f"return a list{hint}"
    )


def _checked_text(text: Any, owner: str) -> str | None:
    if text is None or isinstance(text, str):
        return text
    raise StateDefinitionError(
        f"{owner}(join=…): the function returned an object of type {type(text).__name__}: return "
        "text, or None"
    )


def _failure_text(error: BaseException) -> str:
    return scrub(f"failed: {str(error).strip() or type(error).__name__}")


@dataclass(slots=True)
class MapResult:
    """The outcome of one item of a :class:`MapState`.

    Attributes:
        item: The item.
        value: The answer of the net, or the result of the function.
        error: The exception that it raised, with ``on_item_error="collect"``.
    """

    item: Any
    value: Any = None
    error: Exception | None = None


def list_results(memory: Memory, results: Sequence[MapResult]) -> str:
    """Return the results or errors in order."""
    return "\n\n".join(
        to_text(result.value) if result.error is None else _failure_text(result.error)
        for result in results
    )


def list_answers(memory: Memory, branches: Sequence[Branch]) -> str:
    """Return the answers or errors of the branches, with their names."""
    return "\n\n".join(
        f"{branch.name}: {branch.answer if branch.error is None else _failure_text(branch.error)}"
        for branch in branches
    )


def first_answer(memory: Memory, branches: Sequence[Branch]) -> str:
    """Return the answer of the branch that finished, or else the errors of the branches."""
    ended = [branch.answer for branch in branches if branch.completed]
    return ended[0] if ended else list_answers(memory, branches)


async def _resolve(goal: str | Goal, memory: Memory) -> str | Message:
    if isinstance(goal, str):
        return goal
    return await maybe_await(goal(memory))
