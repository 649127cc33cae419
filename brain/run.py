"""A run: how it starts, and every way it can end.

It claims its memory, then begins a turn with the goal, or continues what the memory holds
(``_start``). Its engine moves the net, and the events pass through ``_drive``. When the net has
ended, or has stopped at a limit, the end is recorded (``_finish``). Errors, cancellations and the
limit of time end the run in ``_ended_by``, which leaves the memory as a resume needs it.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import KW_ONLY, InitVar, dataclass, field, replace
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, Generic, cast

import anyio
from anyio.abc import AsyncResource

from agent_brain.branches import continue_counts
from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.errors import FinalError
from agent_brain.common.ids import ids_of, new_id
from agent_brain.common.models import set_slots_directly
from agent_brain.default_model import models_of_run
from agent_brain.engine import UNOBSERVED, Engine, Reads, drop_branches, error_text, no_state
from agent_brain.errors import BrainUseError, ResumeError
from agent_brain.human_input import Decisions
from agent_brain.limits import CUT_SHORT, Limits, StopReason, waits_on
from agent_brain.memories.base import Memory
from agent_brain.memories.control import SUSPENDED
from agent_brain.memories.errors import STORE_ERRORS
from agent_brain.memories.message import Message
from agent_brain.memories.runs.claim import Claim
from agent_brain.memories.runs.human_requests import open_requests
from agent_brain.memories.runs.turns import answer_of
from agent_brain.memories.runs.work import set_run_work, work_here
from agent_brain.memory_calls import MemoryCalls
from agent_brain.nets.net import Net
from agent_brain.open_calls import (
    close_open_calls,
    open_results,
    take_partial_answer,
    undo_half_a_step,
)
from agent_brain.result import OutputT_co, Result, empty_result
from agent_brain.states.events import (
    AgentEvent,
    Event,
    PartialOutput,
    Position,
    RunFailed,
    RunFinished,
    RunStarted,
    StateExited,
    TextDelta,
    UsageReported,
)
from agent_brain.states.hooks import Hook, RunRequest
from agent_brain.states.pipeline import RUN, Observation, Pipeline, hooks_of
from agent_brain.states.usage import Usage
from agent_brain.steering import Interrupted, Interruption, Steering, needs_scope
from agent_brain.stuck import StuckPolicy
from agent_brain.tool_sources import refresh
from agent_brain.tools.base import BaseTool
from agent_brain.tools.toolset import ToolSource, offered
from agent_brain.usage.budget import Budget

if TYPE_CHECKING:
    from agent_brain.states.model_trace import CallTrace


_new_run_id = ids_of("run")


@dataclass(frozen=True, slots=True)
class RunPlan:
    """What a Brain gives to a run."""

    net: Net
    memory: Memory
    limits: Limits
    stuck: StuckPolicy | None
    last_result: list[Result | None]  # one; None when the run begins
    sources: tuple[ToolSource, ...] = ()
    dry_run: bool = False
    hooks: tuple[Hook, ...] = ()
    pauses: bool = False  # where calls may have taken effect before a crash
    trace: Callable[[Memory], CallTrace] | None = None  # makes what is told of every call
    tools: tuple[BaseTool, ...] = ()  # that the net has besides the memory
    deps: object = None


set_slots_directly(RunPlan)


@dataclass(slots=True, eq=False, repr=False)
class Run(AsyncResource, Generic[OutputT_co]):
    """A run in progress: ``async with brain.stream(task) as run: async for event in run: …``.

    The run continues only when the next event is requested.
    Leaving the ``async with`` block early ends it at once.

    Attributes:
        ended: Whether it has ended.
        run_id: The ID of the run.
    """

    _plan: RunPlan
    _goal: Message | None
    _decisions: Decisions = Decisions()  # noqa: RUF009 - frozen
    _: KW_ONLY
    reads: InitVar[Reads] = True
    ended: bool = field(default=False, init=False)
    run_id: str = field(default_factory=_new_run_id, init=False)
    _reads: Reads = field(init=False)
    _events: AsyncGenerator[Event, None] = field(init=False)
    _steering: Steering | None = field(init=False)
    _hooks: Pipeline | None = field(init=False)
    _observation: Observation = UNOBSERVED  # of the hooks that observe runs
    _budget: Budget = field(init=False)
    _memory_calls: MemoryCalls = field(init=False)
    _outgoing: list[Event] = field(init=False)  # events of the memory and of steps
    _claim: Claim | None = None
    _engine: Engine | None = None
    _tools: ExitStack | None = None  # of this run alone; it has a deque, which is large
    _result: Result[OutputT_co] | None = None
    _began: bool = False  # the memory holds it
    _failed: bool = False
    _said_before: Sequence[Message] = ()  # a partial answer that this run is to complete
    _answered_before: str = ""  # in messages, when it was resumed
    _continues_at: int = 0  # the steps that were completed when it was resumed
    _out_of_time: bool = False  # the time is up, and no scope was cancelled
    _store_failed: bool = False  # for a run that this one is a part of
    _interruption: Interruption = field(default_factory=Interruption)

    def __post_init__(self, reads: Reads) -> None:
        plan, steered = self._plan, reads is True
        self._reads = bool(plan.sources) or reads  # which are read again after each step
        self._steering = Steering() if steered else None
        trace = None if plan.trace is None else plan.trace(plan.memory)
        self._hooks = hooks_of(plan.hooks, plan.net.hooks, trace=trace)
        self._budget = Budget(plan.limits)
        place = Position(self.run_id)
        self._outgoing = list[Event]()
        self._memory_calls = MemoryCalls(
            plan.memory, self._hooks, self._budget, self._outgoing, place, listens=steered
        )
        in_scopes = plan.limits.timeout is not None or (steered and needs_scope())
        self._events = self._drive_in_scopes() if in_scopes else self._drive()

    @property
    def result(self) -> Result[OutputT_co]:
        """The result of the run.

        Raises:
            BrainUseError: The run has not ended yet, or it failed.
        """
        if self._result is None:
            raise BrainUseError("The run has no result: it has not ended yet, or it failed")
        return self._result

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return cast("AsyncIterator[AgentEvent]", self._events)

    async def outputs(self) -> AsyncGenerator[Any, None]:
        """Yield the object of ``output_type`` as it grows, in place of the events.

        ::

            async with brain.stream("Plan a weekend in Bergen.") as run:
                async for trip in run.outputs():
                    print(trip.get("days", []))
            trip = run.result.output

        What is yielded is JSON data, as in :class:`~agent_brain.states.PartialOutput`, and the
        whole object at the end. An object that the model had to correct begins again.
        """
        async for event in self:
            if isinstance(event, PartialOutput) and not event.thought and event.output is not None:
                yield event.output

    def stop(self) -> None:
        """Stop after the current step, with ``stop_reason="stopped"``; ``resume`` continues.

        Tool calls that are requested then, run when it is resumed. A step that runs branches on
        memories of their own is completed first. May be called by any task of the event loop; does
        nothing once the run has ended.
        """
        if self._steering is not None:
            self._steering.stop(StopReason.STOPPED)

    def pause(self) -> None:
        """Stop as soon as no step is half done, with ``stop_reason="paused"``.

        As :meth:`stop`, but branches stop after their current steps too, and the session waits:
        ``resume``, in another process if the memory has a journal, continues all of them. May be
        called by any task of the event loop; does nothing once the run has ended.
        """
        if self._steering is not None:
            self._steering.stop(StopReason.PAUSED)

    def cancel(self) -> None:
        """Cancel the run at once: its events end with ``RunFinished`` and ``"cancelled"``.

        What was finished is kept, and ``resume`` repeats the step. May be called by any task of the
        event loop; does nothing once the run has ended.
        """
        if not self._decided:
            self._interruption.ask(cast("AsyncGeneratorType[Event, None]", self._events))

    def send(self, message: str | Message) -> None:
        """Send the run a message of the user, which it records before its next step.

        Messages are recorded in the order of arrival, and never between a tool call and its result.
        ``MessageReceived`` reports each. Those that arrive during the last step are in
        :attr:`unread` when the run has ended. May be called by any task of the event loop.

        Args:
            message: A text, or a user message.

        Raises:
            BrainUseError: The run has ended, or the message is empty or not from a user.
        """
        if self.ended or self._decided or self._steering is None:
            raise BrainUseError("The run has ended: start another one with the message")
        self._steering.send(message)

    @property
    def _decided(self) -> bool:
        """Whether it is known how the run ends."""
        return self._failed or self._result is not None

    @property
    def unread(self) -> list[Message]:
        """Messages that were sent and not recorded yet."""
        return [] if self._steering is None else [*self._steering.unread]

    async def aclose(self) -> None:
        """End the run if it has not ended; it is then cancelled."""
        await self._events.aclose()
        self.ended = True  # also if it had not begun

    async def to_end(self) -> Result[OutputT_co]:
        """Run to the end and return the result; for a run whose events nobody reads."""
        async for _ in self._events:
            pass
        return self.result

    def note_store_failure(self, error: FinalError) -> None:
        """Write nothing when the run is cancelled: another run beside it has lost the store."""
        self._store_failed = True
        self._plan.memory.note_store_failure(error)

    def abandon(self) -> None:
        """Mark the run as left by its consumer: the next run waits until it is closed."""
        if self._claim is not None:
            self._claim.abandoned = True

    async def _drive(self) -> AsyncGenerator[Event, None]:  # noqa: C901 - every end in one place
        """Yield every event of the run, from its start to its end."""
        interruption, plan, reads = self._interruption, self._plan, self._reads is True
        # without scopes, the task that waits is what can be interrupted
        noting = self._steering is not None and interruption.scope is None
        self._budget.started = anyio.current_time()
        try:
            claim = self._claim = await Claim.take(plan.memory)
        except BaseException:
            self.ended = True
            raise
        plan.last_result[0] = None
        plan.memory.deps = plan.deps
        set_run_work(claim.memories, self._memory_calls)
        try:
            if noting:
                interruption.note_task()
            await self._start()
            if reads:
                resumed = self._goal is None
                yield RunStarted(self._goal, plan.net.name, resumed, at=self._position())
            if (engine := self._engine) is not None:
                steps = engine.steps()
                try:
                    if noting:
                        interruption.note_task()
                    async for event in steps:
                        yield event
                        if noting and (  # for each piece of text, hence not simply note_task()
                            interruption.asked
                            or interruption.current_task() is not interruption.task
                        ):
                            interruption.note_task()
                        if plan.sources and type(event) is StateExited:
                            await refresh(plan.memory, plan.sources)
                except (GeneratorExit, Interrupted):
                    engine.left = interruption.ending = True
                    raise
                finally:
                    await steps.aclose()
                await self._finish(engine.reason or StopReason.DONE)
            if self._observation.entered:  # two calls less for a run without hooks
                await self._observation.end(self._result)
            if noting:
                await interruption.take_back()
            if reads:
                for event in (*self._outgoing, self._finished_event()):
                    yield event
        except BaseException as error:
            last = await self._ended_by(error)
            for event in last:
                yield event
            if not (last and isinstance(last[-1], RunFinished)):
                raise
        finally:
            await self._release(claim)

    async def _release(self, claim: Claim) -> None:
        """Take from the memory what it has for this run, and let the next one use it."""
        self.ended = True
        self._memory_calls.end(claim.memories)
        self._plan.memory.deps = None
        if self._tools is not None:
            self._tools.close()
        await claim.release()

    async def _ended_by(self, error: BaseException) -> Sequence[Event]:
        """End the run for ``error``, which is raised unless the run has ended as it was asked to.

        Returns:
            The last events, if somebody reads them. The last of all is a :class:`RunFinished` if
            the error is not raised.
        """
        interruption, engine = self._interruption, self._engine
        interruption.ending = True
        interrupted = await interruption.explains(error)
        left = engine is not None and engine.left  # and takes no more events
        # a store may fail for having waited until the time was up
        too_late = engine is None and interruption.timed_out
        if isinstance(error, Exception) and not left and not too_late:
            self._failed = True
            await self._cut_short(StopReason.FAILED, error)
            await self._observation.fail(error)
            return [RunFailed(error, at=self._position())]
        if self._result is None:
            out_of_time = self._out_of_time or interruption.timed_out
            timed_out = out_of_time and not interruption.asked
            reason = StopReason.TIMEOUT if timed_out else StopReason.CANCELLED
            await self._cut_short(reason, error)
        await self._observation.end(self._result, cut=True)
        return self._last_events() if interrupted or too_late else []

    def _last_events(self) -> list[Event]:
        """Return the events of a run that was cut short, with those of steps written at its end."""
        lost = self._engine is None or self._reads is not True or self._store_failed
        return [*([] if lost else self._outgoing), self._finished_event()]

    async def _load_models(self) -> None:
        """Load the models before the clock of the run starts, which may take seconds."""
        if self._plan.limits.timeout is not None:
            plan = self._plan
            tools = (*plan.memory.available_tools.values(), *plan.tools)
            for model in models_of_run(plan.net, tools, plan.hooks):
                with suppress(Exception):  # the state that uses it raises it again
                    await model.open()

    async def _drive_in_scopes(self) -> AsyncGenerator[Event, None]:
        """Like :meth:`_drive`, with a time limit. No scope is open while a consumer works."""
        events, interruption = self._drive(), self._interruption
        timeout = self._plan.limits.timeout or math.inf
        try:
            with anyio.CancelScope() as interruption.scope:
                await self._load_models()
            while True:
                left = timeout - self._budget.seconds()
                self._out_of_time = left <= 0
                if (self._out_of_time or interruption.asked) and not self._decided:
                    await events.aclose()  # it did not have to wait
                    if self._result is None:  # it did not begin
                        self._end_without_memory(StopReason.CANCELLED)
                    yield self._finished_event()
                    return
                event: Event | None = None
                deadline = anyio.current_time() + left
                with anyio.CancelScope(deadline=deadline) as interruption.scope:
                    if interruption.asked:
                        interruption.scope.cancel()
                    event = await anext(events, None)
                if interruption.scope.cancelled_caught:
                    for event in self._last_events():
                        yield event
                    return
                if event is None:
                    return
                yield event
        finally:
            await events.aclose()
            self.ended = True  # also if it had not begun

    async def _start(self) -> None:
        """Begin a turn with the goal, or continue the run in the memory.

        A start that fails changes nothing in the memory, except that a run that was killed inside a
        step may be back at the beginning of it.
        """
        plan, memory, over = self._plan, self._plan.memory, False
        await self._prepare(memory)
        dry_run = memory.control.dry_run
        if dry_run is not plan.dry_run:
            memory.control.dry_run = plan.dry_run
        try:
            if self._hooks is not None:
                await self._tell_start(self._hooks)
            if self._goal is None:
                over = await self._continue(memory)
            else:
                await self._begin_turn(memory, self._goal)
        except BaseException:
            memory.control.dry_run = dry_run
            raise
        self._began = True
        place = Position(self.run_id, memory.control.step)
        self._budget.start(place, memory, self._hooks or ())
        for event in self._outgoing:  # before the run had begun
            if isinstance(event, UsageReported):
                self._budget.spend(event.usage, event.purpose)
        if (scope := self._interruption.scope) is not None:  # seconds before a resume count too
            scope.deadline -= memory.control.spent.seconds
        if over:
            reason = StopReason(memory.control.stop_reason or StopReason.DONE)
            self._set_result(await self._make_result(reason))
            return
        self._engine = Engine(
            plan.net,
            self._memory_calls,
            plan.stuck,
            run_id=self.run_id,
            reads=self._reads,
            steering=self._steering,
            outer=self._memory_calls.start,
            resumed=self._goal is None,
            pauses=plan.pauses,
        )

    async def _prepare(self, memory: Memory) -> None:
        """Open the memory, with the tools of the run, and return to the last step of its own."""
        plan = self._plan
        if plan.tools:
            self._tools = ExitStack()
            self._tools.enter_context(offered(memory.available_tools, plan.tools))
        if self._claim is not None:
            await self._claim.acquire()
        await memory.open()
        if plan.sources:
            await refresh(memory, plan.sources)
        if self._goal is None:
            await self._return_to_step(memory)  # first: what hooks write is not part of the rest

    async def _return_to_step(self, memory: Memory) -> None:
        """Return to the last step of a run that was killed inside one, if it can continue here.

        Raises:
            ResumeError: It cannot; nothing has changed.
        """
        if memory.control.status == "running":
            await self._check_resumable(memory)
            self._decisions.write(memory.control)  # which it does not wait for
            await undo_half_a_step(memory)

    async def _begin_turn(self, memory: Memory, goal: Message) -> None:
        control = memory.control
        before: list[Message] = []
        left = control.status != "idle" and control.stop_reason != StopReason.DONE
        if left or control.next_actions:
            before = await open_results(memory, "a new goal was set first")
        beginning = memory.begin(goal, self.run_id, self._plan.net.initial.name, before=before)
        await work_here(self._memory_calls, beginning)
        if left:  # a run that did not come to its end may have left branches
            await drop_branches(memory)

    async def _tell_start(self, hooks: Pipeline) -> None:
        """Tell the hooks that observe runs that this one begins."""
        control = self._plan.memory.control
        run_id = self.run_id if self._goal is not None else control.run_id or self.run_id
        step = 0 if self._goal is not None else control.step
        at = self._memory_calls.start = Position(run_id, step)
        request = RunRequest(
            goal=self._goal, net=self._plan.net.name, at=at, memory=self._plan.memory
        )
        self._observation = Observation(RUN, hooks.run, request)
        await self._observation.begin()

    async def _check_resumable(self, memory: Memory) -> None:
        """Check that ``memory`` holds a run that this net can continue.

        Raises:
            ResumeError: It does not.
        """
        control = memory.control
        if control.run_id is None or control.state is None:
            raise _no_run(memory, "it was never started, or what it waited for was taken away")
        if not await memory.goal():
            raise _no_run(memory, "its goal was removed")
        if self._plan.net.find(control.state) is None:
            raise ResumeError(no_state(self._plan.net, control.state))
        asked = control.human_requests
        if control.status == "waiting" and asked is not None and asked.waits_inside:
            if not await memory.has_branches():
                raise ResumeError(
                    "The run waits in branches that this memory does not have: they are in the "
                    "journal of its session, or in the memory object of the process that ran it. "
                    "Resume it there, or call run(task) to start another one"
                )

    async def _continue(self, memory: Memory) -> bool:
        """Continue the run in ``memory``; return whether it had already ended."""
        await self._check_resumable(memory)
        control = memory.control
        before = control.model_copy(deep=True)
        self._decisions.write(control, memory.available_tools)
        self.run_id = control.run_id or self.run_id
        if control.done and control.status != "running" and control.stop_reason not in CUT_SHORT:
            return True
        try:
            await continue_counts(memory)
            control.resume()
            await memory.checkpoint()
        except BaseException:
            memory.control = before
            raise
        turn = await memory.turn()
        self._said_before = taken = await take_partial_answer(memory, turn)
        self._continues_at = control.moves
        self._answered_before = answer_of([message for message in turn if message not in taken])
        return False

    async def _finish(self, reason: StopReason) -> None:
        memory = self._plan.memory
        control = memory.control
        engine = self._engine
        if engine is not None and reason not in SUSPENDED:
            unfinished = engine.record.report.unfinished
            added = await engine.partial_answer() if unfinished else []
            if not added and control.moves == self._continues_at:  # the partial answer still holds
                said = self._said_before
                added = [each.model_copy(update={"id": new_id("msg")}) for each in said]
                self._answered_before = answer_of(added) or self._answered_before
            if added:  # written with the end of the run
                await work_here(self._memory_calls, memory.update(added), in_step=True)
        control.stop(
            reason.value,
            seconds=self._budget.seconds(),
            reached_end=engine is None or engine.over,
        )
        result = await self._make_result(reason)
        # what of the result its messages do not tell
        if control.finish_reason != result.finish_reason:
            control.finish_reason = result.finish_reason
        control.ended.pop("", None)
        if result.answer != answer_of(result.messages):
            control.ended[""] = result.answer
        await memory.checkpoint()
        self._set_result(result)

    def _set_result(self, result: Result[OutputT_co] | None) -> None:
        self._result = result
        self._plan.last_result[0] = result

    async def _cut_short(self, reason: StopReason, error: BaseException) -> None:
        """Leave the memory in a consistent state; the caller raises the error."""
        memory = self._plan.memory
        self._memory_calls.cut_short = reason
        if not self._began:  # the memory is unchanged: a run that waits for a person still waits
            self._end_without_memory(reason)
            return
        lost = self._store_failed or isinstance(error, STORE_ERRORS)
        if lost and memory.durable and self._claim is not None:
            self._claim.reread()  # as after a kill: the run is where the journal has it
            self._end_without_memory(reason)
            return
        if reason is StopReason.CANCELLED:
            reason = waits_on(memory.control) or reason  # left while it only waited
        if reason is StopReason.FAILED:
            memory.control.failure = error_text(error)
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            try:
                if reason not in SUSPENDED:
                    await close_open_calls(memory, reason.clause)
                await self._finish(reason)
            except Exception as trouble:
                error.add_note(f"Besides, the memory could not be left in order: {trouble!r}")
        if self._result is None or reason is StopReason.FAILED:
            self._end_without_memory(reason)

    def _end_without_memory(self, reason: StopReason) -> None:
        """Set the result of a run that could not begin, or could not be recorded."""
        result: Result[OutputT_co] | None = None
        if reason is not StopReason.FAILED:
            spent = self._plan.memory.control.spent
            usage = Usage.of(spent) if self._began else self._memory_calls.usage()
            said = self._engine.record.answer() if self._engine else ""
            result = empty_result(self.run_id, reason, usage, said)
        self._set_result(result)

    async def _make_result(self, reason: StopReason) -> Result[OutputT_co]:
        control = self._plan.memory.control
        messages = await self._plan.memory.turn()
        answer = self._engine.record.answer() if self._engine else ""
        finish_reason = self._engine.record.finish_reason if self._engine else None
        if not answer and self._goal is None:
            # the run was interrupted after this answer
            before = answer_of(messages) if self._engine is None else self._answered_before
            answer = control.ended.get("", before)
            finish_reason = control.finish_reason
        result: Result[OutputT_co] = Result(
            answer=answer,
            output=self._plan.net.restore_output(control.output, control.output_class),
            stop_reason=reason,
            steps=control.step,
            usage=Usage.of(control.spent),
            messages=messages,
            run_id=self.run_id,
            finish_reason=finish_reason,
            wake_at=control.wake_at,
        )
        if control.human_requests is None:
            return result
        return replace(result, **open_requests(control.human_requests))

    def _finished_event(self) -> RunFinished:
        result = self.result
        return RunFinished(
            result.stop_reason,
            result.answer,
            result.output,
            result.usage,
            result.finish_reason,
            at=Position(self.run_id, result.steps),
        )

    def _position(self) -> Position:
        if self._engine is not None:
            return self._engine.at
        return Position(self.run_id, self._plan.memory.control.step)


def text_only(event: Event) -> bool:
    """Read the text of a run, without thoughts."""
    return type(event) is TextDelta and not event.thought and bool(event.text)


def _no_run(memory: Memory, why: str) -> ResumeError:
    whose = "" if memory.tenant is None else f" of {memory.tenant!r}"
    place = "on this memory" if memory.session is None else f"in session {memory.session!r}{whose}"
    return ResumeError(f"There is no run to resume {place}: {why}. Call run(task) to start one")
