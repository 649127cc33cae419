"""One run: the loop that moves a net over a memory, and every way it can end."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from enum import Enum
from types import TracebackType
from typing import Self

import anyio

from agent_brain.errors import BrainUseError, LLMError, MemoryBusyError, ResumeError
from agent_brain.limits import Limits, StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role
from agent_brain.nets.checks import name_of
from agent_brain.nets.errors import TransitionError
from agent_brain.nets.net import Net, Node
from agent_brain.result import Result
from agent_brain.states.events import (
    NOWHERE,
    ActionFinished,
    ActionRequested,
    Event,
    Position,
    RunFailed,
    RunFinished,
    RunStarted,
    StateEntered,
    StateExited,
    StuckDetected,
    TextDelta,
    UsageReported,
)
from agent_brain.states.llm import Thought
from agent_brain.states.usage import Usage
from agent_brain.stuck import StuckPolicy, fingerprint
from agent_brain.tools.ids import new_id

CLEANUP_SECONDS = 5.0  # how long a run that is cut short may take to leave its memory in order


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run needs of its Brain."""

    net: Net
    memory: Memory
    limits: Limits
    stuck: StuckPolicy | None


class Run:
    """A run under way: ``async with brain.stream(task) as run: async for event in run: …``.

    Nothing happens ahead of the consumer: each event is made when it is asked for. Leaving the
    ``async with`` block early ends the run at once.
    """

    __slots__ = (
        "_asked",
        "_durable",
        "_events",
        "_finished",
        "_goal",
        "_plan",
        "_result",
        "_said",
        "_scope",
        "_started",
        "_text",
        "at",
        "run_id",
    )

    def __init__(self, plan: Plan, goal: Message | None) -> None:
        self._plan = plan
        self._goal = goal
        self._durable = plan.memory.durable
        self._result: Result | None = None
        self._started = 0.0
        self._scope: anyio.CancelScope | None = None
        self._said: list[str] = []  # in this step
        self._text: list[str] = []  # in the last step that said anything
        self._finished: list[ActionFinished] = []
        self._asked = False
        self.run_id = new_id("run")
        self.at = NOWHERE
        self._events = self._drive() if plan.limits.timeout is None else self._drive_timed()

    @property
    def result(self) -> Result:
        """What came of the run.

        Raises:
            BrainUseError: The run has not ended yet, or it failed.
        """
        if self._result is None:
            raise BrainUseError("The run has no result: it has not ended yet, or it failed")
        return self._result

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events

    async def aclose(self) -> None:
        """End the run now if it has not ended; it then counts as cancelled."""
        await self._events.aclose()

    async def _drive(self) -> AsyncGenerator[Event, None]:
        """Every event of the run: step after step, until the net or a limit says it is enough."""
        memory = self._plan.memory
        reason: StopReason | None = None
        _claim(memory)
        try:
            yield await self._start()
            node: Node | None = self._current()
            while node is not None:
                if reason is None and (reason := self._limit_reached()):
                    node = await self._best_effort(reason)
                    continue
                at = self._enter(node)
                yield StateEntered(at=at)
                stream: AsyncIterator[str | Event] | None = None
                try:
                    if node.on_enter:
                        await node.state.on_enter(memory)
                    stream = node.state.run(memory)
                    async for item in stream:
                        yield self._note_text(item, at) if isinstance(item, str) else (
                            self._note(item, at)
                        )
                except BaseException as error:
                    await _leave_hurt(node, memory, stream, error)
                    raise
                if node.on_exit:
                    await node.state.on_exit(memory)
                node = await self._move(node, final=reason is not None)
                yield StateExited(node.name if node else None, at=at)
                if node is not None and (stuck := self._look_for_circles()):
                    yield stuck
                    if stuck.verdict == "stop":
                        reason = StopReason.STUCK
                        node = await self._best_effort(reason)
            await self._finish(reason or StopReason.DONE)
            yield self._finished_event()
        except Exception as error:
            await self._cut_short(StopReason.FAILED, error)
            yield RunFailed(error, at=self.at)
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
                deadline = anyio.current_time() + timeout - self._seconds()
                with anyio.CancelScope(deadline=deadline) as self._scope:
                    try:
                        event = await anext(events)
                    except StopAsyncIteration:
                        return
                if self._scope.cancelled_caught:
                    yield self._finished_event()
                    return
                yield event
        finally:
            await events.aclose()

    async def _start(self) -> RunStarted:
        """Begin a turn with the goal, or take up the run that the memory stands in."""
        plan, memory = self._plan, self._plan.memory
        await memory.open()
        control = memory.control
        if self._goal is not None:
            if control.next_actions or control.status in ("running", "waiting"):
                await close_open_calls(memory, "The call was not run: a new goal was set first")
            await memory.set_goal(self._goal)
            control.begin(self.run_id, plan.net.initial.name)
        else:
            if control.status == "running":
                await memory.rollback()
                control = memory.control
            if control.run_id is None or control.state is None or control.done:
                raise ResumeError(
                    "There is no run to resume on this memory: it "
                    + ("has already reached its goal" if control.done else "was never started")
                    + ". Call run(task) to start one"
                )
            self.run_id = control.run_id
            control.status = "running"
            control.stop_reason = None
        self._started = anyio.current_time() - control.spent.seconds
        self.at = Position(self.run_id, control.step)
        await memory.checkpoint()
        return RunStarted(self._goal, plan.net.name, self._goal is None, at=self.at)

    def _enter(self, node: Node) -> Position:
        self._said, self._finished, self._asked = [], [], False
        self.at = Position(self.run_id, self._plan.memory.control.step, node.name)
        return self.at

    def _note_text(self, text: str, at: Position) -> TextDelta:
        if type(text) is Thought:
            return TextDelta(text, True, at=at)
        self._said.append(text)
        return TextDelta(text, at=at)

    def _note(self, event: Event, at: Position) -> Event:
        """Take notice of an event that a state yielded, and say where it happened."""
        if not isinstance(event, Event):
            raise TypeError(
                f"State {at.state!r} yielded {event!r}: yield text, or an event from "
                "agent_brain.states"
            )
        if event.at is NOWHERE:
            object.__setattr__(event, "at", at)
        kind = type(event)
        if kind is ActionRequested:
            self._asked = True
        elif isinstance(event, ActionFinished):
            self._finished.append(event)
        elif isinstance(event, UsageReported):
            self._spend(event.usage)
        elif isinstance(event, TextDelta) and not event.thought:
            self._said.append(event.text)
        return event

    def _spend(self, usage: Usage) -> None:
        spent = self._plan.memory.control.spent
        spent.input_tokens += usage.input_tokens
        spent.output_tokens += usage.output_tokens
        spent.cost += usage.cost
        spent.requests += usage.requests

    async def _move(self, node: Node, *, final: bool) -> Node | None:
        """Check what the state proposes, and move there; None at the end."""
        plan, control = self._plan, self._plan.memory.control
        if self._said:
            self._text = self._said
        target: Enum | None = None
        if not final:
            target = await node.state.next_state(plan.memory)
            if target not in node.targets and not (target is None and control.done):
                allowed = [name_of(t) if t is not None else "the end (None)" for t in node.targets]
                raise TransitionError(node.name, target, sorted(allowed))
        if plan.stuck is not None:
            self._remember_step(node, plan.stuck)
        next_node = None if target is None or control.done else plan.net.node(target)
        control.advance(next_node.name if next_node else None)
        if self._durable:
            await plan.memory.checkpoint()
        return next_node

    def _remember_step(self, node: Node, policy: StuckPolicy) -> None:
        mark = fingerprint(node.name, self._finished, self._said, self._asked)
        if mark is not None:
            recent = self._plan.memory.control.recent
            recent.append(mark)
            del recent[: -policy.keep()]

    def _look_for_circles(self) -> StuckDetected | None:
        policy, control = self._plan.stuck, self._plan.memory.control
        if policy is None or not (self._finished or self._said) or self._asked:
            return None  # nothing that could repeat, or the results will tell
        reason = policy.repeated(control.recent)
        if reason is None:
            control.hints = 0
            return None
        if control.hints >= policy.hints:
            return StuckDetected(reason, "stop", at=self.at)
        control.hints += 1
        control.hint = policy.prompt.replace("{reason}", reason)
        return StuckDetected(reason, "hint", at=self.at)

    def _current(self) -> Node:
        name = self._plan.memory.control.state
        node = self._plan.net.find(name or "")
        if node is None:
            raise ResumeError(
                f"The run stands in state {name!r}, which the net {self._plan.net.name!r} does not "
                "have: resume it with the net that it was started with"
            )
        return node

    def _limit_reached(self) -> StopReason | None:
        if self._time_is_up():
            return StopReason.TIMEOUT
        return self._plan.limits.reached(self._plan.memory.control)

    async def _best_effort(self, reason: StopReason) -> Node | None:
        """The state that gives the best answer there is, if the net has one and there is time."""
        await close_open_calls(self._plan.memory, f"The call was not run: {reason.value}")
        fallback = self._plan.net.fallback
        if fallback is None or reason is StopReason.TIMEOUT:
            return None
        return self._plan.net.node(fallback)

    async def _finish(self, reason: StopReason) -> None:
        control = self._plan.memory.control
        control.status = "ended"
        control.stop_reason = reason.value
        control.spent.seconds = self._seconds()
        await self._plan.memory.checkpoint()
        self._result = await self._make_result(reason)

    async def _cut_short(self, reason: StopReason, error: BaseException) -> None:
        """Leave the memory in order, whatever happened; the error itself goes on."""
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            try:
                await close_open_calls(
                    self._plan.memory, f"The call was not run: the run was {reason.value}"
                )
                if reason is StopReason.FAILED:
                    self._plan.memory.control.stop_reason = reason.value
                    self._plan.memory.control.status = "ended"
                    await self._plan.memory.checkpoint()
                else:
                    await self._finish(reason)
            except Exception as trouble:
                error.add_note(f"Besides, the memory could not be left in order: {trouble!r}")

    async def _make_result(self, reason: StopReason) -> Result:
        control = self._plan.memory.control
        return Result(
            answer="".join(self._said or self._text),
            output=control.output,
            stop_reason=reason,
            steps=control.step,
            usage=self._usage(),
            messages=await self._plan.memory.turn(),
            run_id=self.run_id,
        )

    def _usage(self) -> Usage:
        spent = self._plan.memory.control.spent
        return Usage(spent.input_tokens, spent.output_tokens, spent.cost, spent.requests)

    def _finished_event(self) -> RunFinished:
        result = self.result
        at = Position(self.run_id, result.steps)
        return RunFinished(result.stop_reason, result.answer, result.output, result.usage, at=at)

    def _seconds(self) -> float:
        return anyio.current_time() - self._started if self._started else 0.0

    def _time_is_up(self) -> bool:
        timeout = self._plan.limits.timeout
        return timeout is not None and self._seconds() >= timeout


async def close_open_calls(memory: Memory, why: str) -> None:
    """Answer the calls of the last assistant message that have no result yet with ``why``."""
    messages = await memory.dump()
    answered: set[str | None] = set()
    for message in reversed(messages):
        if message.role is Role.TOOL:
            answered.add(message.tool_call_id)
        elif message.role is Role.ASSISTANT:
            open_calls = [call for call in message.tool_calls if call.id not in answered]
            if open_calls:
                results = [Message.tool(why, call, is_error=True) for call in open_calls]
                await memory.update(results)
            break
    memory.control.next_actions = []
    memory.control.pending = {}


def _claim(memory: Memory) -> None:
    if memory.busy:
        raise MemoryBusyError(
            "A run is already going on over this memory. Wait for it to end, or give each run a "
            "memory of its own (a Brain each, or memory.fork())"
        )
    memory.busy = True


async def _leave_hurt(
    node: Node, memory: Memory, stream: object, error: BaseException
) -> None:
    """Leave a state that did not come to its end, and say in which state the error happened."""
    with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
        aclose = getattr(stream, "aclose", None)
        if aclose is not None:
            await aclose()
        if node.on_exit:
            await node.state.on_exit(memory)
    if isinstance(error, LLMError):
        error.state = error.state or node.name
    elif isinstance(error, Exception):
        error.add_note(f"Raised in state {node.name!r} ({type(node.state).__name__})")
