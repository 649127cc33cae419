"""One net, state or function for each item of a list that is known only at run time."""

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
from contextlib import aclosing
from dataclasses import KW_ONLY, dataclass, replace
from enum import Enum
from functools import partial
from typing import Any, Literal

import anyio
from pydantic import ValidationError

from agent_brain.common.aio import is_async_function, maybe_await, run_in_thread
from agent_brain.common.errors import FinalError
from agent_brain.common.json_data import data_of
from agent_brain.common.text import to_text
from agent_brain.common.values import check_count, check_function
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.memories.runs.work import work_here
from agent_brain.nets.composition import (
    MAX_CONCURRENCY,
    ForkKind,
    NetLike,
    check_fork,
    checked_text,
    failure_text,
    forked,
)
from agent_brain.nets.delegation import Branch, Delegate, check_choice
from agent_brain.nets.kept_results import KeptResults, Part, RemainingBranches, name_of
from agent_brain.nets.net import Net, as_net
from agent_brain.states.base import Choose, RoutedState, State
from agent_brain.states.concurrency import Together, failure_of
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event, PartialOutput, TextDelta
from agent_brain.states.model_request import StructuredRequest
from agent_brain.states.models.llm import Thought
from agent_brain.states.work import StreamItem, Work, WorkContext, perform, position_of, run_of
from agent_brain.tools.stubborn import ended_when_cancelled


@dataclass(slots=True)
class MapResult:
    """The outcome of one item of a :class:`MapState`.

    Attributes:
        item: The item.
        value: The answer of the net, or the result of the function.
        output: The data of the answer, if the net has an ``output_type``.
        error: The exception that it raised, with ``on_item_error="collect"``.
    """

    item: Any
    value: Any = None
    output: Any = None
    error: Exception | None = None


def list_results(memory: Memory, results: Sequence[MapResult]) -> str:
    """Return the results or errors in order."""
    return "\n\n".join(
        to_text(result.value) if result.error is None else failure_text(result.error)
        for result in results
    )


class MapState(RoutedState):
    """Process each item of a list that is known only at run time.

    ::

        MapState(lambda memory: Pages.read(memory).urls, summarize, max_concurrency=5, join=collect)

    A net or a state runs on a fork of the memory for each item, with the item as its goal. Its text
    streams as thoughts, and the ``path`` of its events includes the name of the state and the index
    of the item. A function is called with each item, a sync one in a thread; it may return work,
    such as ``llm.call(…)``, whose text streams as thoughts. The limits of the run apply to all
    items together: once one is reached, no item begins. The messages of the memory change only when
    all have ended: an item that fails or is cancelled leaves no trace in them. A run that is
    resumed runs no item again that had finished, unless a function returned what is not a JSON
    value; one that returns a call for data is called again, and the call is not made again.

    Args:
        items: A function of the memory, sync or async, that returns the list.
        body: A net, a dict of states, a state, or a function of one item that returns its result or
            work, sync or async.
        max_concurrency: The maximum number of concurrent items, started in order; None for all.
        join: Makes one text of the memory and the :class:`MapResult` of each item, in order. It may
            be async; it may also write to the memory itself and return None. The text is streamed
            and recorded as an assistant message. Default: the results in order.
        goal: The goal of a net for an item: a function of the item, sync or async. Default: the
            item as text.
        fork: Whether a net begins with what the memory holds, or, ``"empty"``, with nothing but its
            goal.
        on_item_error: ``"raise"``: the first item that fails cancels the others, and its error is
            raised. ``"collect"``: ``join`` gets the error as ``MapResult.error``.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).

    Raises:
        StateDefinitionError: The arguments are invalid.
    """

    parallel = True

    def __init__(
        self,
        items: Callable[[Memory], Iterable[Any] | Awaitable[Iterable[Any]]],
        body: NetLike | State | Callable[[Any], Any],
        *,
        max_concurrency: int | None = MAX_CONCURRENCY,
        join: Callable[[Memory, Sequence[MapResult]], Any] | None = None,
        goal: Callable[[Any], str | Message | Awaitable[str | Message]] | None = None,
        fork: ForkKind = True,
        on_item_error: Literal["raise", "collect"] = "raise",
        on_done: Enum | None = None,
        choose: Choose | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        check_fork(fork, always=True)
        check_function(StateDefinitionError, "items", items, "memory")
        check_function(StateDefinitionError, "join", join, "memory", "results", optional=True)
        check_function(StateDefinitionError, "goal", goal, "item", optional=True)
        check_count(StateDefinitionError, "max_concurrency", max_concurrency, optional=True)
        check_choice("on_item_error", on_item_error, "raise", "collect")
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
            check_function(StateDefinitionError, "body", body, "item")
            if fork is not True:
                raise StateDefinitionError(
                    f"MapState(fork={fork!r}): a function of an item has no memory; pass a net or "
                    "a state as body="
                )
            self.function = body
        else:
            raise StateDefinitionError(
                f"MapState(body={body!r}): pass a net, a state, or a function of an item (without "
                "goal=)"
            )
        self.max_concurrency = max_concurrency
        self.join = join or list_results
        self.goal = goal
        self.fork: ForkKind = fork
        self.on_item_error: Literal["raise", "collect"] = on_item_error

    @property
    def subnets(self) -> Mapping[str, Net]:
        """The net of an item, if ``body`` is not a function."""
        return {} if self.net is None else {"item": self.net}

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Process all items, join the results, and record the text."""
        found = [MapResult(item) for item in _as_list(await maybe_await(self.items(memory)))]
        names = [name_of(index, result.item) for index, result in enumerate(found)]
        kept = KeptResults(memory)
        if self.function is not None:
            collect = self.on_item_error == "collect"
            calls = [
                _FunctionCall(self.function, result, collect=collect, kept=kept, name=name)
                for name, result in zip(names, found, strict=True)
            ]
            yield Together(calls, max_concurrency=self.max_concurrency)
            cut = False
        else:
            branches = self._branches(memory, found, names)
            order = Delegate(
                branches,
                on_error="cancel" if self.on_item_error == "raise" else "report",
                as_thoughts=True,
                max_concurrency=self.max_concurrency,
            )
            yield RemainingBranches(order, kept, names=names)
            for result, branch in zip(found, branches, strict=True):
                result.value, result.error = branch.answer, branch.error
                result.output = branch.output
            cut = any(branch.error is None and not branch.completed for branch in branches)
        if cut:  # by a limit: on resume the state runs again
            return
        text = checked_text(await maybe_await(self.join(memory, found)), "MapState")
        if text:
            yield text
            await memory.update([Message.assistant(text, cause_by=type(self).__name__)])
        kept.clear()

    def _branches(
        self, memory: Memory, results: Sequence[MapResult], names: Sequence[str]
    ) -> list[Branch]:
        """Return a branch for each item, whose memory is made when it begins."""
        assert self.net is not None
        one_at_a_time = anyio.Lock()

        async def begin(name: str, item: Any) -> Memory:
            goal = item
            if self.goal is not None:
                goal = await work_here(memory.run_work, maybe_await(self.goal(item)))
            text = goal if isinstance(goal, Message) else to_text(goal)
            async with one_at_a_time:
                return await forked(memory, name, self.fork, text, type(self))

        return [
            Branch(str(index), self.net, memory, prepare=partial(begin, name, result.item))
            for index, (name, result) in enumerate(zip(names, results, strict=True))
        ]


class _Body(Enum):
    BODY = "body"


@dataclass(eq=False, repr=False)
class _FunctionCall(Work):
    """A call of the function of a :class:`MapState` with one item."""

    function: Callable[[Any], Any]
    outcome: MapResult
    _: KW_ONLY
    collect: bool
    kept: KeptResults
    name: str

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[str | Event, None]:
        """Call the function and do the work that it returns, if any."""
        done = None if context is None else self.kept.find(self.name, context)
        if done is not None and done.output_class is None:
            self.outcome.value = done.value
            return
        try:
            if context is not None and done is None:
                context.check_budget()
            value = await work_here(run_of(context), self._call())
            work = value if isinstance(value, Work) else None
            if work is not None:
                if not _restored(work, done):
                    async with aclosing(perform(work, context)) as events:
                        async for event in events:
                            yield _as_thought(event)
                value = work.result
            self.outcome.value = value
            if context is not None:
                await self._keep(value, work, context)
        except BaseException as error:
            failure = failure_of(error, position_of(context).state, MapState.__name__)
            if (
                not self.collect
                or isinstance(failure, FinalError)
                or not isinstance(failure, Exception)
            ):
                if failure is error:
                    raise
                raise failure from error
            self.outcome.error = failure

    async def _keep(self, value: Any, work: Work | None, context: WorkContext) -> None:
        """Keep a JSON value, or the data of a call, whose type reads it again."""
        is_kept = await self.kept.keep(self.name, Part(value=value), context)
        if not is_kept and isinstance(work, StructuredRequest):
            part = Part(output=data_of(value, fallback=str), output_class=type(value).__name__)
            await self.kept.keep(self.name, part, context)

    async def _call(self) -> Any:
        function, item = self.function, self.outcome.item
        name = getattr(function, "__name__", type(function).__name__)
        if is_async_function(function):
            value = await ended_when_cancelled(function(item), f"function {name!r}")
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


def _restored(work: Work, done: Part | None) -> bool:
    """Give a call for data what it has returned before; return whether there is such data."""
    if done is None or not isinstance(work, StructuredRequest):
        return False
    try:
        work.output = work.shape.restore(done.output, done.output_class)
    except ValidationError:  # its type is another one now
        return False
    return True


def _as_thought(event: str | Event) -> str | Event:
    if isinstance(event, str):
        return Thought(event)
    return replace(event, thought=True) if isinstance(event, TextDelta | PartialOutput) else event


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
