"""The branches of a run: inner nets, run at once, on the memory of the run or on their own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from typing import TYPE_CHECKING, Protocol

import anyio

from agent_brain.common.aio import CLEANUP_SECONDS, work_off
from agent_brain.common.errors import FinalError
from agent_brain.limits import OWN, WAITING, StopReason, waits_on
from agent_brain.memories.base import Memory
from agent_brain.memories.control import SUSPENDED, Control
from agent_brain.memories.errors import STORE_ERRORS
from agent_brain.memories.runs.human_requests import HumanRequests, key_of_branch
from agent_brain.memories.runs.work import family, set_run_work
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.open_calls import close_open_calls, undo_half_a_step
from agent_brain.states.concurrency import live
from agent_brain.states.events import ApprovalRequested, Event, InputRequested, Position
from agent_brain.states.work import Clock, OutOfTimeError, close_stream, closing, relay
from agent_brain.tools.toolset import offered

if TYPE_CHECKING:
    from agent_brain.engine import Engine


class Source(Protocol):
    """The owner of a stream: a branch, or the delegating state."""

    error: Exception | None

    @property
    def completed(self) -> bool:
        """Whether it ended by itself."""
        ...


Streams = Sequence[tuple[Source, AsyncIterator[Event]]]


class _Beside:
    """The owner of the events of the delegating state itself."""

    error: Exception | None = None
    completed = False


async def run_branches(
    order: Delegate, outer: Engine, *, part: bool
) -> AsyncGenerator[Event, None]:
    """Yield the events of every branch, and those of ``order.beside``.

    Args:
        order: The branches. The answer of a single one becomes the answer of the state.
        outer: The engine of the net around them.
        part: Whether they are part of other work of the state, which has another answer.

    Raises:
        Exception: The error of a branch, if ``on_error`` is ``"cancel"`` or the error is final.
    """
    record, branches = outer.record, order.branches
    record.used = True
    aside = order.as_thoughts or part or len(branches) > 1
    as_thoughts = outer.as_thoughts or aside
    streams: list[tuple[Source, AsyncIterator[Event]]] = [
        (branch, _run_branch(order, branch, outer, as_thoughts=as_thoughts)) for branch in branches
    ]
    beside = _Beside()
    if order.beside is not None:
        streams.insert(0, (beside, order.beside))
    events = streams[0][1] if len(streams) == 1 else run_at_once(streams, order)
    try:
        async for event in events:
            yield event
        if beside.error is not None:
            raise beside.error
    except BaseException as error:
        await close_stream(events)
        over = all(branch.completed or branch.stop_reason in SUSPENDED for branch in branches)
        if over and not isinstance(error, Exception):  # left while it only waited
            record.report.waits = _collect_requests(order, outer)
        elif not as_thoughts and branches:
            record.report.inner = branches[0].answer
        raise
    for branch in branches:
        reason = branch.stop_reason
        if reason not in (None, *OWN, *SUSPENDED) and not branch.own_limit:
            record.report.cut = StopReason(reason)
    record.report.waits = _collect_requests(order, outer) or record.report.waits
    if branches and not aside and branches[0].answer:
        record.say(branches[0].answer, branches[0].finish_reason)


def _collect_requests(order: Delegate, outer: Engine) -> StopReason | None:
    """Record what the branches wait for; return what the run then waits for, if it does."""
    waiting = [branch for branch in order.branches if branch.stop_reason in SUSPENDED]
    if order.until == "first" and any(branch.completed for branch in order.branches):
        for branch in waiting:  # they are cancelled, like those that still ran
            branch.stop_reason = None
        return None
    if not waiting or outer.record.report.cut is not None:
        return None
    mine, control = outer.memory.available_tools, outer.memory.control
    for branch in waiting:
        if branch.memory is not outer.memory:
            inner, tools = branch.memory.control, branch.memory.available_tools
            foreign = [name for name, tool in tools.items() if mine.get(name) is not tool]
            control.collect_requests(inner, foreign=foreign)
            if inner.wake_at is not None:
                control.sleep(inner.wake_at)
    if any(branch.stop_reason == StopReason.PAUSED for branch in waiting):
        return StopReason.PAUSED
    return waits_on(control)


async def _run_branch(
    order: Delegate, branch: Branch, outer: Engine, *, as_thoughts: bool
) -> AsyncGenerator[Event, None]:
    events: AsyncGenerator[Event, None] | None = None
    try:
        if branch.prepare is not None:
            reached = None if outer.reason else outer.budget.reached()
            if reached is not None:
                branch.stop_reason = reached
                return
            branch.memory = await branch.prepare()
        inner = outer.engine_for(branch, as_thoughts=as_thoughts)
        events, tools = BranchRun(branch, inner, outer).events(), branch.net.tools
        trace = None if outer.hooks is None else outer.hooks.trace
        own = tools if trace is None or not tools else trace.tools(tools)
        with offered(branch.memory.available_tools, own):
            async for event in events:
                yield event
    except Exception as error:
        branch.error = branch.error or error
        if isinstance(error, STORE_ERRORS):  # before the memories of those beside it are closed
            branch.memory.note_store_failure(error)
        if _ends_all(order, error):
            raise
    finally:
        await close_stream(events)
        if branch.prepare is not None and events is not None:
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await branch.memory.aclose()
    if order.on_end is not None:
        for event in await order.on_end(branch):
            yield event


async def run_at_once(streams: Streams, order: Delegate) -> AsyncGenerator[Event, None]:
    """Merge the events of all branches; each branch waits until its event was read.

    Args:
        streams: Branches and their events.
        order: What to do when one fails or ends, and how many run at once.
    """
    failed: list[Exception] = []  # in order of time
    try:
        async with aclosing(live(partial(_run_all, streams, order, failed))) as items:
            async for event, read in items:
                yield event
                read.set()
    except GeneratorExit:
        if failed:  # while they were closed
            raise failed[0] from None
        raise
    for error in failed:
        if _ends_all(order, error):
            raise error


def _ends_all(order: Delegate, error: Exception) -> bool:
    """Return whether the error of a branch ends the others and the run."""
    return order.on_error == "cancel" or isinstance(error, FinalError)


async def _run_all(
    streams: Streams,
    order: Delegate,
    failed: list[Exception],
    report: Callable[[tuple[Event, anyio.Event]], None],
) -> None:
    async def run_one(one: tuple[Source, AsyncIterator[Event]]) -> None:
        branch, stream = one
        try:
            async with closing(stream):
                async for event in stream:
                    read = anyio.Event()
                    report((event, read))
                    await read.wait()
        except Exception as error:  # kept on the branch, for the state or for the caller
            branch.error = error
            failed.append(error)
            if _ends_all(order, error):
                tasks.cancel_scope.cancel()
        if order.until == "first" and branch.completed:
            tasks.cancel_scope.cancel()
        # no other one begins, and an error may have replaced a cancellation
        await anyio.lowlevel.checkpoint_if_cancelled()

    async with anyio.create_task_group() as tasks:
        if order.beside is not None:
            tasks.start_soon(run_one, streams[0])
            streams = streams[1:]
        await work_off(streams, run_one, at_once=order.max_concurrency)


class BranchRun:
    """Runs a branch, from its beginning or from where an interrupted run has stopped.

    Args:
        branch: The branch, to which the outcome is written.
        inner: The engine of its net.
        outer: The engine of the net around it.
    """

    def __init__(self, branch: Branch, inner: Engine, outer: Engine) -> None:
        self.branch = branch
        self.inner = inner
        self.outer = outer
        same_memory = inner.memory is outer.memory
        self.outside: Control | None = None if same_memory else outer.memory.control

    async def events(self) -> AsyncGenerator[Event, None]:
        """Yield the events of the branch."""
        branch, inner = self.branch, self.inner
        control = inner.memory.control
        set_run_work(family(inner.memory), inner.memory_calls)
        if self.outside is not None:
            control = await self._begin(self.outside)
            if control.status == "waiting":  # nothing that it waits for was decided
                branch.stop_reason = waits_on(control)
                for request in self._requests(control):
                    yield request
                return
        ended = control.ended.get(inner.key)
        if ended is not None:  # before the step of the outer net was interrupted
            branch.answer, branch.stop_reason = ended, StopReason.DONE
            self._hand_back()
            self._note_output()
            return
        timeout = None if branch.limits is None else branch.limits.timeout
        steps = inner.steps() if timeout is None else self._within(timeout)
        try:
            async for event in steps:
                yield event
        except Exception as error:
            branch.error = error
            raise
        except GeneratorExit:
            inner.left = True
            raise
        finally:
            await steps.aclose()
            self._hand_back()
            control.done = False
            branch.answer = await inner.said()
            self._note_output()
            branch.finish_reason = inner.record.finish_reason
            reason = inner.reason or inner.record.report.waits  # left when it had asked
            if branch.error is None and reason is not None and reason in SUSPENDED:
                branch.stop_reason = reason
                if self.outside is not None:
                    await self._wait(reason)
        branch.stop_reason = inner.reason
        branch.own_limit = branch.limits is not None and inner.budget.stopped_by_own()
        if self.outside is not None and inner.over:
            self.outside.count_branch(control.branch)

    async def _within(self, timeout: float) -> AsyncGenerator[Event, None]:
        """Yield the events of the steps, within the time limit of the branch itself."""
        inner = self.inner
        events = relay(inner.steps(), Clock(timeout).wait)
        try:
            async for event in events:
                yield event
        except OutOfTimeError:
            inner.reason = StopReason.TIMEOUT
            inner.budget.stop_own(inner.reason)
            await close_open_calls(inner.memory, inner.reason.clause)
        finally:
            await events.aclose()

    def _note_output(self) -> None:
        branch, inner = self.branch, self.inner
        control = inner.memory.control
        branch.has_output = control.has_output_of(inner.key)
        if self.outside is not None or branch.has_output:
            branch.output = inner.net.restore_output(control.output, control.output_class)

    def _hand_back(self) -> None:
        """Let the memory work for the outer net again; one of a branch may write when closed."""
        if self.outside is None:
            set_run_work(family(self.inner.memory), self.outer.memory_calls)
        else:
            calls, outer = self.inner.memory_calls, self.outer
            calls.record, calls.outgoing = outer.record, outer.outgoing
            calls.budget = self.inner.budget

    async def _begin(self, outside: Control) -> Control:
        """Begin on a memory of its own, or continue what an earlier run had begun there."""
        inner, memory = self.inner, self.inner.memory
        name = outside.branch_name(inner.key)
        if not (memory.resumed and memory.control.is_branch(inner.run_id, name)):
            main, state = inner.budget.control, inner.net.initial.name
            memory.control.begin_branch(inner.run_id, main, name, state)
        elif memory.control.status != "waiting":
            await undo_half_a_step(memory)
            await continue_counts(memory)
        elif memory.control.take_answers(outside) or waits_on(memory.control) not in WAITING:
            await continue_counts(memory)
            memory.control.resume()
        else:
            return memory.control
        if memory.control.dry_run is not inner.budget.control.dry_run:  # as the run is continued
            memory.control.dry_run = inner.budget.control.dry_run
        inner.budget = inner.budget.inside(outside, name, memory.control, self.branch.limits)
        inner.record.budget = inner.budget
        if memory.durable:
            await memory.checkpoint()
        return memory.control

    async def _wait(self, reason: StopReason) -> None:
        """Record that the branch waits."""
        memory = self.inner.memory
        memory.control.wait_in_branch(reason.value)
        memory._keep_branch()
        if memory.durable:
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await memory.checkpoint()

    def _requests(self, control: Control) -> Iterator[Event]:
        """Yield the requests of the branch again, as of the step that it waits in."""
        inner = self.inner
        asked = control.human_requests or HumanRequests()
        state = control.subnets.get(inner.key, control.state)
        at = inner.at = Position(inner.run_id, inner.budget.control.step, state, inner.path)
        if asked.approvals:
            yield ApprovalRequested(tuple(control.waiting_calls()), tuple(asked.uncertain), at=at)
        for key, prompt in asked.questions.items():
            named = key or key_of_branch(control.branch)
            yield InputRequested(prompt, named, asked.schemas.get(key), at=at)


async def continue_counts(memory: Memory) -> None:
    """Count what the branches of an interrupted step have used and stored."""
    if (counts := await memory.branch_counts()) is not None:
        memory.control.take_counts(counts)
