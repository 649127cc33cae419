"""One run: how it begins, and every way it can end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, Self, cast

import anyio
from anyio.abc import TaskGroup

from agent_brain.budget import Budget
from agent_brain.decisions import Decisions
from agent_brain.errors import BrainUseError, MemoryBusyError, ResumeError
from agent_brain.limits import WAITING, Limits, StopReason
from agent_brain.machine import CLEANUP_SECONDS, Machine, close_open_calls, no_state
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.nets.net import Net
from agent_brain.result import OutputT_co, Result
from agent_brain.sources import refresh
from agent_brain.states.answering import last_answer
from agent_brain.states.events import (
    AgentEvent,
    Event,
    Position,
    RunFailed,
    RunFinished,
    RunStarted,
    StateExited,
)
from agent_brain.stuck import StuckPolicy
from agent_brain.tools.ids import new_id
from agent_brain.tools.source import ToolSource


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run needs of its Brain."""

    net: Net
    memory: Memory
    limits: Limits
    stuck: StuckPolicy | None
    sources: tuple[ToolSource, ...] = ()
    dry_run: bool = False


class Run(Generic[OutputT_co]):
    """A run under way: ``async with brain.stream(task) as run: async for event in run: …``.

    Nothing happens ahead of the consumer: each event is made when it is asked for. Leaving the
    ``async with`` block early ends the run at once.
    """

    __slots__ = (
        "_budget",
        "_decisions",
        "_events",
        "_goal",
        "_group",
        "_machine",
        "_plan",
        "_result",
        "_scope",
        "run_id",
    )

    def __init__(
        self,
        plan: Plan,
        goal: Message | None,
        decisions: Decisions = Decisions(),  # noqa: B008 - frozen
    ) -> None:
        self._plan = plan
        self._decisions = decisions
        self._goal = goal
        self._result: Result[OutputT_co] | None = None
        self._scope: anyio.CancelScope | None = None
        self._group: TaskGroup | None = None
        self._budget = Budget(plan.limits)
        self._machine: Machine | None = None
        self.run_id = new_id("run")
        self._events = self._drive() if plan.limits.timeout is None else self._drive_timed()

    @property
    def result(self) -> Result[OutputT_co]:
        """What came of the run.

        Raises:
            BrainUseError: The run has not ended yet, or it failed.
        """
        if self._result is None:
            raise BrainUseError("The run has no result: it has not ended yet, or it failed")
        return self._result

    async def __aenter__(self) -> Self:
        tools = self._plan.memory.available_tools.values()
        if self._plan.net.parallel or any(tool.nested for tool in tools):
            # Branches that stream while their consumer works need a home that outlives one event.
            self._group = anyio.create_task_group()
            await self._group.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        try:
            await self.aclose()
        finally:
            if self._group is not None:
                self._group.cancel_scope.cancel()
                await self._group.__aexit__(None, None, None)

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return cast("AsyncIterator[AgentEvent]", self._events)

    async def aclose(self) -> None:
        """End the run now if it has not ended; it then counts as cancelled."""
        await self._events.aclose()

    async def _drive(self) -> AsyncGenerator[Event, None]:
        """Every event of the run, from its start to its end."""
        memory, sources = self._plan.memory, self._plan.sources
        _claim(memory)
        try:
            yield await self._start()
            machine = self._machine = self._make_machine()
            steps = machine.steps()
            try:
                async for event in steps:
                    yield event
                    if sources and type(event) is StateExited:
                        await refresh(memory, sources)
            finally:
                await steps.aclose()
            await self._finish(machine.reason or StopReason.DONE)
            yield self._finished_event()
        except Exception as error:
            await self._cut_short(StopReason.FAILED, error)
            yield RunFailed(error, at=self._position())
            raise
        except BaseException as error:
            if self._result is None:
                late = self._scope is not None and self._scope.cancel_called
                reason = StopReason.TIMEOUT if late else StopReason.CANCELLED
                await self._cut_short(reason, error)
            raise
        finally:
            memory.busy = False

    async def _drive_timed(self) -> AsyncGenerator[Event, None]:
        """As :meth:`_drive`, within the limit of time. No scope is open while a consumer works."""
        timeout = self._plan.limits.timeout
        assert timeout is not None
        events = self._drive()
        try:
            while True:
                event: Event | None = None
                deadline = anyio.current_time() + timeout - self._budget.seconds()
                with anyio.CancelScope(deadline=deadline) as self._scope:
                    event = await anext(events, None)
                if self._scope.cancelled_caught:
                    yield self._finished_event()
                    return
                if event is None:
                    return
                yield event
        finally:
            await events.aclose()

    def _make_machine(self) -> Machine:
        plan = self._plan
        return Machine(
            plan.net, plan.memory, self._budget, plan.stuck, run_id=self.run_id, group=self._group
        )

    async def _start(self) -> RunStarted:
        """Begin a turn with the goal, or take up the run that the memory stands in."""
        memory, net = self._plan.memory, self._plan.net
        await memory.open()
        await refresh(memory, self._plan.sources)
        if self._goal is None:
            await self._take_up(memory)
        else:
            if memory.control.next_actions or memory.control.status in ("running", "waiting"):
                await close_open_calls(memory, "The call was not run: a new goal was set first")
            await memory.set_goal(self._goal)
            memory.control.begin(self.run_id, net.initial.name)
        memory.control.dry_run = self._plan.dry_run
        self._budget.start(memory.control)
        await memory.checkpoint()
        return RunStarted(self._goal, net.name, self._goal is None, at=self._position())

    async def _take_up(self, memory: Memory) -> None:
        if memory.control.status == "running":
            await memory.rollback()
        control = memory.control
        finished = control.done and control.status != "running"  # or killed just before its end
        if control.run_id is None or control.state is None or finished:
            raise ResumeError(
                "There is no run to resume on this memory: it "
                + ("has already reached its goal" if finished else "was never started")
                + ". Call run(task) to start one"
            )
        if self._plan.net.find(control.state) is None:
            raise ResumeError(no_state(self._plan.net, control.state))
        self._decisions.write(control)
        self.run_id = control.run_id
        control.status = "running"
        control.stop_reason = None

    async def _finish(self, reason: StopReason) -> None:
        control = self._plan.memory.control
        control.status = "waiting" if reason in WAITING else "ended"
        control.stop_reason = reason.value
        control.spent.seconds = self._budget.seconds()
        await self._plan.memory.checkpoint()
        self._result = await self._make_result(reason)

    async def _cut_short(self, reason: StopReason, error: BaseException) -> None:
        """Leave the memory in order, whatever happened; the error itself goes on."""
        memory = self._plan.memory
        if self._machine is None and isinstance(error, ResumeError):
            return  # nothing was taken up: what waits goes on waiting
        if reason is StopReason.CANCELLED and (asked := memory.control.asked) is not None:
            if asked.approvals or asked.questions:  # left when it had nothing to do but wait
                reason = StopReason.APPROVAL if asked.approvals else StopReason.INPUT
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            try:
                if reason not in WAITING:
                    why = f"The call was not run: the run was {reason.value}"
                    await close_open_calls(memory, why)
                await self._finish(reason)
            except Exception as trouble:
                error.add_note(f"Besides, the memory could not be left in order: {trouble!r}")
        if reason is StopReason.FAILED:
            self._result = None

    async def _make_result(self, reason: StopReason) -> Result[OutputT_co]:
        control = self._plan.memory.control
        messages = await self._plan.memory.turn()
        answer = self._machine.answer() if self._machine else ""
        if not answer and self._goal is None:
            answer = await last_answer(self._plan.memory)  # said before the run was cut off
        return Result(
            answer=answer,
            output=control.output,
            stop_reason=reason,
            steps=control.step,
            usage=self._budget.usage(),
            messages=messages,
            run_id=self.run_id,
        )

    def _finished_event(self) -> RunFinished:
        result = self.result
        at = Position(self.run_id, result.steps)
        return RunFinished(result.stop_reason, result.answer, result.output, result.usage, at=at)

    def _position(self) -> Position:
        if self._machine is not None:
            return self._machine.at
        return Position(self.run_id, self._plan.memory.control.step)


def _claim(memory: Memory) -> None:
    if memory.busy:
        raise MemoryBusyError(
            "A run is already going on over this memory. Wait for it to end, or give each run a "
            "memory of its own (a Brain each, or memory.fork())"
        )
    memory.busy = True
