"""The engine: moves one net over one memory, step after step.

Before a step it looks at the limits, and at what is asked of the run. It enters the state, whose
``run`` yields text, events and work; it does the work, and records what is reported. Then it leaves
the state. ``next_state`` proposes, ``_choose`` checks the proposal against the edges, and the
registers of the run advance. The step is written, at once or with what comes next, and then its
last event is yielded.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, InitVar, dataclass, field
from functools import partial
from typing import Any, NoReturn, TypeAlias, TypeVar

import anyio

from agent_brain.branches import run_branches
from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.secrets import get_logger, scrub
from agent_brain.common.text import to_compact_json
from agent_brain.errors import (
    BrainDefinitionError,
    BrainUseError,
    FinalError,
    LimitReachedError,
    LLMError,
    NetDefinitionError,
    ResumeError,
    ScratchError,
    StateCancelledError,
    StateDefinitionError,
    StateMutationError,
    TransitionError,
)
from agent_brain.limits import SPENDING, StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.control import SUSPENDED
from agent_brain.memories.errors import STORE_ERRORS
from agent_brain.memories.message import PARTIAL, Message
from agent_brain.memories.runs.turns import answer_of
from agent_brain.memories.runs.work import Here, here, work_here
from agent_brain.memory_calls import MemoryCalls
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.nets.net import Net, Node
from agent_brain.nets.validation import name_of
from agent_brain.open_calls import close_open_calls
from agent_brain.recorder import StepRecorder, StepReport
from agent_brain.states.answering import best_words
from agent_brain.states.concurrency import failure_of
from agent_brain.states.events import (
    NOWHERE,
    Event,
    MessageReceived,
    Position,
    StateEntered,
    StateExited,
    StuckDetected,
)
from agent_brain.states.hooks import StateRequest
from agent_brain.states.model_call import ModelCall
from agent_brain.states.pipeline import STATE, Observation, Pipeline, hooks_of, surrounded
from agent_brain.states.work import (
    Pace,
    StreamItem,
    Work,
    close_stream,
    next_item,
    perform,
)
from agent_brain.steering import Steering
from agent_brain.stuck import Paraphrases, StuckPolicy, Verdict, fingerprint
from agent_brain.usage.budget import Budget

log = get_logger(__name__)

Reads: TypeAlias = bool | Callable[[Event], bool]

T = TypeVar("T")

FINAL = (
    BrainDefinitionError,
    BrainUseError,
    FinalError,
    NetDefinitionError,
    StateCancelledError,
    StateDefinitionError,
    StateMutationError,
    TransitionError,
)
"""Errors that end the run even where the net has an edge for the errors of a state."""

UNOBSERVED = Observation(STATE, (), None)  # tells nobody


@dataclass(slots=True, eq=False, repr=False)
class Engine:
    """Runs one net over one memory; each branch of the run has an engine of its own.

    Attributes:
        around: The memory of the net around, if the memory was made from it.
        as_thoughts: Whether text is streamed as thoughts.
        asks: Whether the net can wait for a person: its memory is found again.
        at: The current step.
        budget: Counts what is used.
        call_id: The tool call that runs the net, if one does.
        hooks: The hooks of the run, if there are any.
        key: The names of the states and branches around the net; empty for the run's own. The
            memory keeps the state of a subnet under it.
        left: Whether the consumer has closed the stream, so that no event can be yielded.
        memory: The memory.
        memory_calls: Makes what the memory needs in the run.
        net: The net.
        outgoing: Events of steps and of the memory, to be yielded when the last step is written.
        outer: The run, or the step that runs the net.
        path: The states and branches around the net.
        pauses: Whether a person is asked about calls that may have taken effect before a crash.
        over: Whether the net has ended.
        record: Records what the steps report.
        reads: Whether the consumer reads an event of a state: every one, none, or what a function
            says. The others are recorded and not yielded.
        reason: Why it stopped; None before that. While it is set and the loop continues, the
            fallback state runs, to which no limit applies.
        run_id: The ID of the run.
        sink: Takes the events of tool calls that nobody reads as they happen; None: they are read.
        steering: What is asked of a run that can be asked to stop.
        stuck: When the run repeats itself.
        watched: Whether somebody reads all events of the run.
    """

    net: Net
    memory_calls: MemoryCalls
    stuck: StuckPolicy | None
    _: KW_ONLY
    run_id: str
    path: tuple[str, ...] = ()
    key: str = ""
    as_thoughts: bool = False
    reads: Reads = True
    steering: Steering | None = None
    outer: Position = NOWHERE
    call_id: str = ""
    resumed: InitVar[bool] = False  # whether the run was
    pauses: bool = False
    asks: bool = True
    around: Memory | None = None
    at: Position = field(init=False)
    budget: Budget = field(init=False)
    hooks: Pipeline | None = field(init=False)
    left: bool = False
    memory: Memory = field(init=False)
    outgoing: list[Event] = field(init=False)
    over: bool = False
    reason: StopReason | None = None
    sink: Callable[[StreamItem], Event] | None = None
    watched: bool = field(init=False)
    _working: Here = field(init=False)  # where the code of states works
    _continues: bool = field(init=False)  # a net inside, where an interrupted run has stopped
    _durable: bool = field(init=False)
    _has_branches: bool = field(init=False)  # on memories of their own: this step has, or had, any
    _observation: Observation = UNOBSERVED  # of the hooks that observe states
    _pace: Pace | None = None  # where it may never wait
    _paraphrases: Paraphrases | None = None
    record: StepRecorder = field(init=False)
    _written: bool = True  # the last step is; otherwise it is written with what comes next

    def __post_init__(self, resumed: bool) -> None:
        calls, stuck = self.memory_calls, self.stuck
        self.memory, self.hooks, self.budget = calls.memory, calls.hooks, calls.budget
        self.outgoing, self.watched = calls.outgoing, calls.listens
        if stuck is not None and stuck.similar is not None:
            self._paraphrases = Paraphrases(stuck)
        at = self.at = Position(self.run_id, self.budget.control.step, None, self.path)
        calls.record = self.record = StepRecorder(
            self.memory, self.budget, at, as_thoughts=self.as_thoughts, asks=self.asks
        )
        self._working = Here(calls, in_step=True)
        self._durable = self.memory.durable
        self._has_branches = resumed or self.memory.resumed
        begun = bool(self.path) and self.key in self.memory.control.subnets
        self._continues = begun or self.memory.resumed
        if self.reads is not True:
            self.sink = self.record.note
            self._pace = None if self.budget.limits.timeout is None else Pace()
        # Between the last step and the end of the run, the process may have ended.
        self.over = self.memory.control.done and not self.path

    async def partial_answer(self) -> list[Message]:
        """Return what was said in a step that is unfinished, if no message has it."""
        report = self.record.report
        if report.partial is not None:
            self.record.say(to_compact_json(report.partial), None)
        text = self.record.unrecorded(await self.memory.turn())
        if not text:
            return []
        node = self.net.find(self.at.state or "")
        state = None if node is None else node.state
        kind, sender = type(state).__name__, getattr(state, "sent_from", None)
        metadata = {PARTIAL: True}
        return [Message.assistant(text, cause_by=kind, sent_from=sender, metadata=metadata)]

    async def steps(self) -> AsyncGenerator[Event, None]:  # noqa: C901, PLR0915 - one loop
        """Yield events until the net ends or a limit is reached."""
        memory, record, outgoing, hooks = self.memory, self.record, self.outgoing, self.hooks
        note, reads, pace, working = record.note, self.reads, self._pace, self._working
        steering, control, free = self.steering, self.budget.control, self.budget.free_steps
        # outgoing is the list itself, which is only changed in place
        node = None if self.over else self._current()
        while node is not None:
            asked = steering is not None and (steering.unread or steering.stopping)
            if self.reason is None and (asked or control.step >= free):
                reached = await self._reason_to_stop(node)
                if reached is not None:
                    node = await self._stop(reached)
                    continue
            self._begin_step(node)
            while outgoing and self._written:
                yield outgoing.pop(0)
            stream: AsyncIterator[StreamItem] | None = None
            failed: Exception | None = None  # the work, whose error is raised at the yield
            inside = True
            try:
                opens = hooks is not None or node.on_enter
                stream = await self._open(node) if opens else node.state.run(memory)
                while True:
                    token = here.set(working)
                    try:
                        ahead = anext(stream) if failed is None else next_item(stream, failed)
                        item = await ahead
                    except StopAsyncIteration:
                        break
                    finally:
                        here.reset(token)
                    failed = None
                    if not isinstance(item, Work):
                        noted = note(item)
                        if reads is True or (reads and reads(noted)):
                            yield noted
                        elif pace is not None:
                            await pace.keep()
                        continue
                    while outgoing and self._written:
                        yield outgoing.pop(0)
                    events = perform(item, self) if item.clock else item.events(self)
                    if hooks is not None and hooks.around:
                        events = surrounded(events, partial(self._inside, node))
                    try:
                        async for piece in events:
                            self._written = True  # before the first event of a round
                            while outgoing:
                                yield outgoing.pop(0)
                            noted = note(piece)
                            if reads is True or (reads and reads(noted)):
                                yield noted
                            elif pace is not None:
                                await pace.keep()
                    except FinalError:  # which is not the state's to handle
                        raise
                    except Exception as error:
                        failed = error
                    finally:
                        await events.aclose()
                    if failed is None and record.report.waits is not None:
                        break
                if self.memory_calls.unyielded:
                    _name_unyielded(node, self.memory_calls.unyielded)
                inside = False
                if node.on_exit or record.report.waits is not None:
                    await self._exit(node, stream)
            except BaseException as error:
                last = await self._leave_hurt(node, stream, error, inside=inside)
                if last is not None:
                    while last:
                        yield last.pop(0)
                    raise
            node = await (self._close_step(node) if hooks is None else self._leave(node))
            while outgoing and self._written:
                yield outgoing.pop(0)
            if self.memory_calls.error is not None:
                raise self.memory_calls.error
        while outgoing and self._written:
            yield outgoing.pop(0)
        self.reason = self.reason or StopReason.DONE

    def _begin_step(self, node: Node) -> None:
        """Begin a step, with another report if the last one has used its own."""
        record = self.record
        place = self.run_id, self.budget.control.step, node.name, self.path
        self.at = record.at = tuple.__new__(Position, place)  # half the time of Position(…)
        if record.used:
            record.report, record.used = StepReport(record.report), False
        if self.reads is True:
            self.outgoing.append(StateEntered(at=self.at))
        if self.memory_calls.unyielded:  # of states that failed
            self.memory_calls.unyielded.clear()

    async def _reason_to_stop(self, node: Node) -> StopReason | None:
        """Read what was sent to the run; return why it stops before ``node``, if it does."""
        steering, reached = self.steering, self.budget.reached(self.memory.control)
        if steering is not None and steering.unread:
            await self._receive(steering)
        if reached in SPENDING and await node.state.costs_nothing(self.memory):
            reached = None
        return reached or (None if steering is None else steering.stopping)

    def _inside(self, node: Node) -> AbstractContextManager[object]:
        """Return what hooks put around the state."""
        hooks = self.hooks
        return hooks.at_work(self._request(node)) if hooks and hooks.around else nullcontext()

    def _request(self, node: Node) -> StateRequest:
        kind = type(node.state).__name__
        return StateRequest(
            kind=kind, outer=self.outer, call_id=self.call_id, at=self.at, memory=self.memory
        )

    async def _receive(self, steering: Steering) -> None:
        """Record the messages that were sent to the run."""
        received = await work_here(self.memory_calls, steering.record(self.memory))
        if received:
            self.memory.control.fingerprints.clear()  # they may lead to something else
            if self._durable:
                await self.memory.checkpoint()
        at = Position(self.run_id, self.budget.control.step, None, self.path)
        self.outgoing += [MessageReceived(message, at=at) for message in received]

    async def _open(self, node: Node) -> AsyncIterator[StreamItem]:
        """Return the stream of a state that hooks look at, or that is entered with a method."""
        hooks, state = self.hooks, node.state
        if hooks is not None and hooks.state:
            self._observation = Observation(STATE, hooks.state, self._request(node))
            await self._observation.begin()
        if node.on_enter and self.key not in self.memory.control.entered:
            with self._inside(node):
                entering = self._watched(node, state.on_enter(self.memory))
                await work_here(self.memory_calls, entering, in_step=True)
        stream = state.run(self.memory)
        if hooks is not None and hooks.debug is not None:
            stream = hooks.debug.watch(stream, state, node.name)
        if hooks is not None and hooks.around:
            stream = surrounded(stream, partial(self._inside, node))
        return stream

    def _watched(self, node: Node, call: Coroutine[Any, Any, T]) -> Coroutine[Any, Any, T]:
        debug = None if self.hooks is None else self.hooks.debug
        return call if debug is None else debug.watch_call(call, node.state, node.name)

    async def _exit(self, node: Node, stream: object) -> None:
        """Close the stream of a state, which may not be exhausted, and call ``on_exit``.

        A state that waits is not left: it runs again when the run is resumed.
        """
        try:
            await work_here(self.memory_calls, close_stream(stream), in_step=True)
        finally:
            entered = self.memory.control.entered
            if self.record.report.waits is not None:
                if node.on_enter and self.key not in entered:
                    entered.append(self.key)
            elif node.on_exit:
                try:
                    leaving = self._watched(node, node.state.on_exit(self.memory))
                    await work_here(self.memory_calls, leaving, in_step=True)
                except LimitReachedError as error:
                    if self._note_refusal(error) is None:
                        raise

    async def _leave_hurt(
        self, node: Node, stream: object, error: BaseException, *, inside: bool
    ) -> list[Event] | None:
        """Leave a state that raised; note in ``error`` which state it was.

        Args:
            node: The state.
            stream: What its ``run`` has returned.
            error: What it has raised.
            inside: Whether its ``on_exit`` was not called yet.

        Returns:
            None if the net or the run continues, so that the error is not raised. Otherwise the
            events to be yielded before it is: those of the last step, if it was not yet written.

        Raises:
            StateCancelledError: ``error`` is a cancellation that is not meant for the run.
        """
        failure = failure_of(error, node.name, type(node.state).__name__)
        report = self.record.report
        if isinstance(error, STORE_ERRORS):  # before the memories of branches are closed
            self.memory.note_store_failure(error)
        try:
            if inside:
                with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                    await self._exit(node, stream)
        except Exception as trouble:
            if not isinstance(error, Exception):
                raise
            failure = trouble
        finally:
            report.unfinished = True
            if report.inner:
                self.record.say(report.inner, None)
            self.record.count_open_responses()
            await self._observation.fail(failure)
        if isinstance(failure, LLMError | ScratchError):
            failure.state = failure.state or node.name
        elif isinstance(failure, Exception):
            failure.add_note(f"Raised in state {node.name!r} ({type(node.state).__name__})")
        # a call that was refused ends the run with the step
        if self._note_refusal(failure) is not None or await self._fail(node, failure):
            return None
        if failure is not error:
            raise failure from error
        lost = self.left or not isinstance(error, Exception) or isinstance(error, STORE_ERRORS)
        if self._written or lost:
            return []
        await self._write_last()
        return self.outgoing

    def _note_refusal(self, error: BaseException) -> StopReason | None:
        """Return the limit that has refused a call of the step, if ``error`` says that."""
        if not isinstance(error, LimitReachedError) or self.left:
            return None
        self.record.used = True
        report = self.record.report
        report.cut = report.cut or self.budget.refusal()
        return report.cut

    async def _fail(self, node: Node, error: BaseException) -> bool:
        """Record an error that leads to another state; return whether the net has such an edge."""
        if node.on_error is None or self.left:
            return False
        if not isinstance(error, Exception) or isinstance(error, FINAL):
            return False
        report, self.record.used = self.record.report, True
        report.waits = report.cut = None
        report.unfinished, report.error = False, error
        if self.memory.control.next_actions:
            await close_open_calls(self.memory, f"state {node.name!r} failed")
        return True

    async def _leave(self, node: Node) -> Node | None:
        """End a step, as :meth:`_close_step` does, and tell the hooks that observe states."""
        observation = self._observation
        try:
            with self._inside(node):
                following = await self._close_step(node)
        except BaseException as error:
            await observation.fail(error)
            raise
        if (failed := self.record.report.error) is not None:
            await observation.fail(failed, cut=False)
        await observation.end(None if following is None else following.name)
        return following

    async def _close_step(self, node: Node) -> Node | None:
        """End a step: choose the next state, and write the step; return the state."""
        record, report, control = self.record, self.record.report, self.memory.control
        if record.open_responses:
            record.count_open_responses()
        following = None
        if report.waits is report.cut is self.reason is None:  # the fallback state is the last
            following = await self._choose(node)
        if (reason := report.waits or report.cut) is not None:  # it runs again on resume
            return await self._stop_within(reason)
        self.over = following is None
        name = None if following is None else following.name
        mark = verdict = None
        if self.stuck and (report.finished or report.said or report.thought or report.error):
            # Before advance(), which drops the requests that are a part of the fingerprint.
            mark = fingerprint(node.name, report, self.memory)
            if mark and self._paraphrases is not None and not self.over:
                mark = await self._paraphrases.mark(mark, node.name, report, self.memory)
        if node.on_enter and self.key in control.entered:
            control.entered.remove(self.key)
        failed = None if report.error is None else error_text(report.error)
        if self.path:
            await self._advance_inside(node, name, failed)
        else:
            control.advance(name, left=node.name, error=failed)
        if mark and self.stuck:  # after advance(), which would drop the hint that may be given
            verdict = self.stuck.look(control, mark)
        if self._durable or self._has_branches:
            await self._write_step(following)
        if self.reads is True:
            self.outgoing.append(StateExited(name, report.error, at=self.at))
        if verdict is not None and following is not None:
            following = await self._note_cycle(verdict, following)
        return following

    async def _choose(self, node: Node) -> Node | None:
        """Return the state that comes next; the report says if choosing it fails or is refused."""
        report, memory = self.record.report, self.memory
        if report.error is not None:
            return node.on_error
        try:
            deciding = node.state.next_state(memory)
            if self.hooks is not None:
                deciding = self._watched(node, deciding)
            token = here.set(self._working) if node.decides else None
            try:
                target = await deciding
            finally:
                if token is not None:
                    here.reset(token)
            following, done = node.following.get(id(target)), memory.control.done
            if following is None and not (target is None and (done or None in node.targets)):
                allowed = [name_of(t) if t is not None else "the end (None)" for t in node.targets]
                raise TransitionError(node.name, target, sorted(allowed))
            return None if done else following  # whatever the state proposes
        except BaseException as error:
            if self._note_refusal(error) is None and not await self._fail(node, error):
                report.unfinished = True
                raise failure_of(error, node.name, type(node.state).__name__)  # noqa: B904
            return node.on_error

    async def _advance_inside(self, node: Node, name: str | None, failed: str | None) -> None:
        """Complete a step of a net inside the current state of the run."""
        control = self.memory.control
        control.check_notes(node.name)
        control.advance_subnet(self.key, name, "" if name else await self.said(), error=failed)
        self.budget.count_step()
        if name and self.record.report.said:
            await self._note_said()

    async def _stop_within(self, reason: StopReason) -> Node | None:
        """Stop the run in a step, which is repeated when it is resumed; see :meth:`_close_step`."""
        if reason in SUSPENDED:
            self.reason = reason
            return None
        self.record.report.unfinished = True
        following = await self._stop(reason)
        name = None if following is None else following.name
        if self.reads is True:
            self.outgoing.append(StateExited(name, at=self.at))
        return following

    async def said(self) -> str:
        """Return the answer so far, also one that was given before the run was interrupted."""
        said = self.record.answer() or self.memory.control.said_in(self.key) or ""
        if said or not self._continues:
            return said
        turn, around = await self.memory.turn(), self.around
        known = set() if around is None else {each.id for each in await around.turn()}
        return answer_of([message for message in turn if message.id not in known])

    async def _note_said(self) -> None:
        """Keep what the step has said if no message holds it."""
        lost = self.record.unrecorded(await self.memory.turn())
        self.memory.control.note_said(self.key, self.record.answer() if lost else None)

    async def _write_step(self, following: Node | None) -> None:
        """Record that a step is complete; what its branches have written is not needed any more.

        Where the run ends, or tool calls begin, the step is written with that. What the step has
        said, and no message holds, is kept for a run that continues.
        """
        if following is None:
            with_next = not self.path  # with the end of the run
        else:
            calls = bool(self.memory.control.next_actions) and not following.on_enter
            with_next = calls and getattr(type(following.state).run, "begins_with_record", False)
        if self._durable and not self.memory.control.branch:  # the time of a branch is the run's
            now = anyio.current_time()
            self.memory.control.spent.seconds = now - self.budget.started
        if self.record.report.said and not self.path and self._durable:
            await self._note_said()
        self._written = not (with_next and self._durable) or self._has_branches
        if not self._written:
            writing = self.memory._checkpoint_later()
            await work_here(self.memory_calls, writing, in_step=True)
        elif self._durable:
            await self.memory.checkpoint()
        if self._has_branches:
            await drop_branches(self.memory)
            self._has_branches = False

    async def _write_last(self) -> None:
        """Write the last step, which was to be written with what comes next."""
        await self.memory.checkpoint()
        self._written = True

    async def _note_cycle(self, verdict: Verdict, following: Node) -> Node | None:
        """Report that the run repeats itself; return the next state."""
        self.outgoing.append(StuckDetected(*verdict, at=self.at))
        if verdict.action != "stop":  # a hint was given
            return following
        fallback = await self._stop(StopReason.STUCK)
        if fallback is None and not self.record.answer():
            self.outgoing.append(self.record.note(await best_words(self.memory)))
        return fallback

    def _current(self) -> Node:
        control = self.memory.control
        name = control.state or ""
        if self.path:
            name = control.subnets.get(self.key, self.net.initial.name)
        node = self.net.find(name)
        if node is None:
            raise ResumeError(no_state(self.net, name))
        return node

    async def _stop(self, reason: StopReason) -> Node | None:
        """Stop the run; return the fallback state, if there is one and time is left."""
        self.reason = reason
        fallback = None
        if reason not in (StopReason.STOPPED, StopReason.PAUSED):  # open calls run on resume
            await close_open_calls(self.memory, reason.clause)
            if reason not in (StopReason.TIMEOUT, StopReason.BUDGET):
                fallback = self.net.fallback
        if not self._written and (self.path or fallback is not None):  # the run does not end here
            await self._write_last()
        return None if fallback is None else self.net.node(fallback)

    def delegate(self, order: Delegate, *, part: bool = False) -> AsyncGenerator[Event, None]:
        """Run the nets of ``order``; see :func:`run_branches`."""
        return run_branches(order, self, part=part)

    def count_unread(self, event: Event) -> None:
        """Count the model calls in an ``event`` that nobody reads any more."""
        self.record.note_unread(event)

    def check_budget(self) -> None:
        """Check that another model call may begin; if not, the run ends after this step.

        Raises:
            LimitReachedError: A limit of tokens or cost is reached, or a budget is used up.
        """
        if self.budget.only_steps and not self.budget.payers:
            return
        found = self.budget.refusal()
        if found is not None and (self.reason is None or found is StopReason.BUDGET):
            self._refuse(found)

    def reserve_calls(self) -> bool:
        """Take places for the requested tool calls; if there are too few, the run ends.

        Returns:
            Whether :meth:`release_calls` must be called.

        Raises:
            LimitReachedError: The limit of tool calls is reached.
        """
        if self.budget.only_steps:
            return False
        found = self.budget.reserve_calls(self.memory.control)
        if found is not None and self.reason is None:
            self._refuse(found)
        return True

    def release_calls(self) -> None:
        """Give back the places of tool calls that did not come to their ends."""
        self.budget.release_calls(self.memory.control)

    def _refuse(self, reason: StopReason) -> NoReturn:
        self.record.used = True
        self.record.report.cut = reason
        raise LimitReachedError(reason.clause)

    def engine_for(self, branch: Branch, *, as_thoughts: bool) -> Engine:
        """Return the engine of a branch."""
        report = self.record.report
        begun = report.branches = report.branches or {}
        count = begun[branch.name] = begun.get(branch.name, 0) + 1
        branch.memory.deps = self.memory.deps
        same_memory = branch.memory is self.memory
        asks = self.asks and (same_memory or branch.memory._is_branch_of(self.memory))
        steering = self.steering
        if not same_memory:
            self._has_branches = True
            steering = Steering(steering) if steering is not None and asks else None
        inside = tuple(filter(None, (self.at.state, branch.name)))
        again = f"#{count}" if count > 1 else ""
        brought = (*branch.hooks, *branch.net.hooks)  # behind the outer ones
        hooks = hooks_of(brought) if self.hooks is None else self.hooks.then(brought)
        counted = self.budget if hooks is self.hooks else self.budget.counted_by(hooks or ())
        return Engine(
            branch.net,
            MemoryCalls(branch.memory, hooks, counted, listens=self.watched),
            self.stuck,
            run_id=self.run_id,
            path=(*self.path, *inside),
            key="/".join(filter(None, (self.key, *inside))) + again,
            as_thoughts=as_thoughts,
            steering=steering,
            outer=self.at,
            call_id=branch.call_id,
            pauses=self.pauses,
            asks=asks,
            around=None if same_memory else self.memory,
        )


def _name_unyielded(node: Node, calls: Iterable[ModelCall]) -> None:
    """Log which model calls a state has made and not yielded."""
    log.warning(
        "State %r (%s) has made a %s and not yielded it, so the model was not called: write "
        "'yield call' in its run() or function",
        node.name,
        type(node.state).__name__,
        ", ".join(sorted({type(call).__name__ for call in calls})),
    )


async def drop_branches(memory: Memory) -> None:
    """Drop the branches of earlier steps of a memory."""
    await memory.drop_branches()
    memory._drop_kept_branches()


def no_state(net: Net, name: str) -> str:
    """Return the message of the error for a run in a state that ``net`` does not have."""
    return (
        f"The run is in state {name!r}, which the net {net.name!r} does not have: resume it with "
        "the net that it was started with"
    )


def error_text(error: BaseException) -> str:
    """Return the text of an error for the registers of the run, without secrets."""
    return scrub(f"{type(error).__name__}: {error}")
