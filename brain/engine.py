"""The machine: moves one net over one memory, step after step."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from enum import Enum

import anyio

from agent_brain.branches import Source, run_at_once
from agent_brain.budget import Budget
from agent_brain.errors import LLMError, ResumeError, ScratchError, StateCancelledError
from agent_brain.limits import OWN, SPENDING, WAITING, StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Asked
from agent_brain.nets.delegation import Branch, Delegate
from agent_brain.nets.errors import TransitionError
from agent_brain.nets.net import Net, Node
from agent_brain.nets.validation import name_of
from agent_brain.open_calls import close_open_calls
from agent_brain.states.aclosing import closing
from agent_brain.states.answering import best_words
from agent_brain.states.events import (
    NOWHERE,
    ActionFinished,
    ActionRequested,
    ApprovalRequested,
    Event,
    InputRequested,
    Position,
    ResponseStarted,
    StateEntered,
    StateExited,
    StuckDetected,
    TextDelta,
    UsageReported,
)
from agent_brain.states.models.llm import Thought
from agent_brain.states.usage import Usage
from agent_brain.states.work import Resumed, within_time
from agent_brain.stuck import StuckPolicy, Verdict, fingerprint
from agent_brain.tools.calling import is_being_cancelled

CLEANUP_SECONDS = 5.0  # how long a step that is cut short may take to leave things in order


class Machine:
    """One net at work over one memory; a delegated branch gets a machine of its own.

    Attributes:
        at: The step it is in.
        finish_reason: Why the model response that gave the answer ended, if one did.
        over: The net has come to its end.
        reason: Why it stopped, once it has.
    """

    __slots__ = (
        "_answered_by",
        "_aside",
        "_asked",
        "_budget",
        "_called",
        "_cut",
        "_delegated",
        "_durable",
        "_failed",
        "_finished",
        "_key",
        "_memory",
        "_net",
        "_path",
        "_run_id",
        "_said",
        "_stuck",
        "_text",
        "_verdict",
        "_waits",
        "at",
        "finish_reason",
        "over",
        "reason",
    )

    def __init__(
        self,
        net: Net,
        memory: Memory,
        budget: Budget,
        stuck: StuckPolicy | None,
        *,
        run_id: str,
        path: tuple[str, ...] = (),
        key: str = "",
        aside: bool = False,
    ) -> None:
        self._net = net
        self._memory = memory
        self._budget = budget
        self._stuck = stuck
        self._run_id = run_id
        self._path = path
        self._key = key  # under which the memory keeps where it is, if it is a subnet
        self._aside = aside  # what is said here is not for the reader
        self._durable = memory.durable
        self._said: list[str] = []  # in this step
        self._text: list[str] = []  # in the last step that said anything
        self._finished: list[ActionFinished] = []
        self._asked = False
        self._delegated: Counter[str] = Counter()  # branches of this step, by name
        self._failed: Exception | None = None  # in the work that the state waits for
        self._called: set[str | None] = set()  # model responses that have not ended
        self._answered_by: str | None = None  # the model response that the last text is from
        self._verdict: Verdict | None = None  # on the step just left
        self._waits: StopReason | None = None
        self._cut: StopReason | None = None  # the limit that stopped a branch of this step
        self.at = NOWHERE
        self.finish_reason: str | None = None
        self.over = memory.control.done and not path  # killed between its last step and its end
        self.reason: StopReason | None = None

    def answer(self) -> str:
        """What the last step that said anything has said."""
        return "".join(self._said or self._text)

    async def steps(self) -> AsyncGenerator[Event, None]:  # noqa: C901 - one loop, in one place
        """Every event, until the net or a limit says that it is enough."""
        memory = self._memory
        node: Node | None = None if self.over else self._current()
        while node is not None:
            if self.reason is None and (reason := self._limit_reached()):
                # An answer that is there already is passed on: the call that gave it may have been
                # the one that reached the limit.
                if reason not in SPENDING or not await node.state.costs_nothing(memory):
                    node = await self._best_effort(reason)
                    continue
            at = self._enter(node)
            yield StateEntered(at=at)
            stream: AsyncIterator[str | Event] | None = None
            items: AsyncIterator[str | Event] | None
            try:
                if node.on_enter:
                    await node.state.on_enter(memory)
                items = stream = node.state.run(memory)
                while items is not None:
                    current, items = items, None
                    async for item in current:
                        if isinstance(item, str):
                            yield self._note_text(item, at)
                        elif type(item) is not Delegate:
                            yield self._note(item, at)
                        else:
                            async with closing(self._delegate(item)) as events:
                                async for event in events:
                                    yield event
                            if self._waits is not None:  # the run continues inside the subnet
                                await _close(stream)
                                break
                            if self._failed is not None:
                                items = Resumed(stream, self._failed)
                                break
            except BaseException as error:
                await self._leave_hurt(node, stream, error)
                raise
            if node.on_exit:
                await node.state.on_exit(memory)
            if self._waits is not None:
                self.reason = self._waits
                return
            if self._cut is None:
                node = await self._move(node)
            else:  # the run stays in this state, and continues inside the subnet
                node = await self._best_effort(self._cut)
            yield StateExited(node.name if node else None, at=at)
            if node is not None and (verdict := self._verdict) is not None:
                yield StuckDetected(*verdict, at=self.at)
                if verdict.action == "stop":
                    node = await self._best_effort(StopReason.STUCK)
                    if node is None and not self.answer():
                        yield self._note_text(await best_words(memory), at)
        self.reason = self.reason or StopReason.DONE

    def _limit_reached(self) -> StopReason | None:
        return self._budget.reached(len(self._memory.control.next_actions))

    def _enter(self, node: Node) -> Position:
        if self._said:
            self._text = self._said
        self._said, self._finished, self._asked, self._cut = [], [], False, None
        if self._delegated:
            self._delegated.clear()
        if self._called:
            self._count_cut_calls()
        self.at = Position(self._run_id, self._budget.control.step, node.name, self._path)
        return self.at

    def _note_text(self, text: str, at: Position) -> TextDelta:
        if type(text) is Thought:
            return TextDelta(text, thought=True, at=at)
        self._say(text, None)
        return TextDelta(text, thought=self._aside, at=at)

    def _say(self, text: str, response_id: str | None) -> None:
        """Keep text for the reader; ``response_id`` names the model response that it is from."""
        self._said.append(text)
        if response_id is None or response_id != self._answered_by:
            self._answered_by, self.finish_reason = response_id, None

    def _note(self, event: Event, at: Position) -> Event:
        """Take notice of an event that a state yielded, and say where it happened."""
        if not isinstance(event, Event):
            raise TypeError(
                f"State {at.state!r} yielded {event!r}: yield text, or an event from "
                "agent_brain.states"
            )
        if event.at is NOWHERE:
            object.__setattr__(event, "at", at)
        if isinstance(event, TextDelta):
            return self._note_delta(event)
        if isinstance(event, ActionRequested):
            self._asked = True
        elif isinstance(event, ActionFinished):
            self._finished.append(event)
            self._budget.control.spent.tool_calls += 1
        elif isinstance(event, ResponseStarted):
            self._called.add(event.response_id)
        elif isinstance(event, UsageReported):
            self._called.discard(event.response_id)
            self._budget.spend(event.usage)
            if event.response_id is not None and event.response_id == self._answered_by:
                self.finish_reason = event.finish_reason
        elif isinstance(event, ApprovalRequested):
            self._waits = StopReason.APPROVAL
            self._asks().approvals = [action.id for action in event.actions]
        elif isinstance(event, InputRequested):
            self._waits = StopReason.INPUT
            self._asks().questions[event.id] = event.prompt
        return event

    def _note_delta(self, event: TextDelta) -> TextDelta:
        if event.thought:
            return event
        self._say(event.text, event.response_id)
        return dataclasses.replace(event, thought=True) if self._aside else event

    async def _leave_hurt(self, node: Node, stream: object, error: BaseException) -> None:
        """Leave a state that did not come to its end; note in ``error`` which state it was.

        Raises:
            StateCancelledError: ``error`` is a cancellation that is not meant for the run.
        """
        failure = _failure(error, node)
        self._count_cut_calls()
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            await _close(stream)
            if node.on_exit:
                await node.state.on_exit(self._memory)
        if isinstance(failure, LLMError | ScratchError):
            failure.state = failure.state or node.name
        elif isinstance(failure, Exception):
            failure.add_note(f"Raised in state {node.name!r} ({type(node.state).__name__})")
        if failure is not error:
            raise failure from error

    def _count_cut_calls(self) -> None:
        """Count the model calls that are closed or cancelled before they could report their use."""
        for _ in self._called:
            self._budget.spend(Usage())
        self._called.clear()

    def _asks(self) -> Asked:
        """What a person is asked, to be written down: the run may go on in another process."""
        control = self._memory.control
        if control.asked is None:
            control.asked = Asked()
        return control.asked

    async def _delegate(self, order: Delegate) -> AsyncGenerator[Event, None]:
        """Run the branches that the state asks for; a single one may speak for it."""
        run = run_branches(
            order,
            self._budget,
            self._stuck,
            run_id=self._run_id,
            path=(*self._path, self.at.state or ""),
            within="/".join(filter(None, (self._key, self.at.state))),
            seen=self._delegated,
            aside=self._aside or order.aside or len(order.branches) > 1,
        )
        self._failed = None
        try:
            async with closing(run) as events:
                async for event in events:
                    yield event if event.at is not NOWHERE else self._note(event, self.at)
        except Exception as error:  # raised where the state waits
            self._failed = error
            return
        for branch in order.branches:
            reason = branch.stop_reason
            if branch.memory is self._memory and reason in WAITING:
                self._waits = StopReason(reason)
            elif reason is not None and reason not in (*OWN, *WAITING):
                self._cut = StopReason(reason)
        if len(order.branches) == 1 and not order.aside:
            self._say(order.branches[0].answer, None)
            self.finish_reason = order.branches[0].finish_reason

    async def branch(self, branch: Branch) -> AsyncGenerator[Event, None]:
        """Run as a branch: from its own beginning, or from where a resumed run had left it."""
        control, main = self._memory.control, self._budget.control
        if control is not main:
            control.begin(self._run_id, self._net.initial.name)
            control.branch = f"{'/'.join(self._path)}@{main.step}"
            control.dry_run = main.dry_run
        ended = control.ended.get(self._key)
        if ended is not None:  # before the step of the outer net was interrupted
            branch.answer, branch.stop_reason = ended, StopReason.DONE
            return
        try:
            async with closing(self.steps()) as events:
                async for event in events:
                    yield event
        except Exception as error:
            branch.error = error
            raise
        finally:
            control.done = False
            branch.answer = self.answer()
            branch.finish_reason = self.finish_reason
        branch.stop_reason = self.reason

    async def _move(self, node: Node) -> Node | None:
        """Check what the state proposes, and move there; None at the end."""
        control = self._memory.control
        target: Enum | None = None
        if self.reason is None:
            try:
                target = await node.state.next_state(self._memory)
            except BaseException as error:
                if (failure := _failure(error, node)) is error:
                    raise
                raise failure from error
            if not _is_edge(target, node) and not (target is None and control.done):
                allowed = [name_of(t) if t is not None else "the end (None)" for t in node.targets]
                raise TransitionError(node.name, target, sorted(allowed))
        control.check_notes(node.name)
        next_node = None if target is None or control.done else self._net.node(target)
        if control.asked is not None:  # what was asked here was for this state
            control.asked = None
        self._advance(next_node.name if next_node else None)
        self._verdict = None if self._stuck is None else self._look_for_circles(node, self._stuck)
        if self._durable:
            await self._memory.checkpoint()
        return next_node

    def _advance(self, state: str | None) -> None:
        """Write down where the machine stands now: ``state`` comes next, or nothing."""
        main, own = self._budget.control, self._memory.control
        self.over = state is None
        if not self._path:
            own.advance(state)
            return
        main.step += 1
        if own is not main:
            own.step += 1
        own.advance_subnet(self._key, state, self.answer())

    def _current(self) -> Node:
        control = self._memory.control
        if not self._path:
            name = control.state or ""
        else:
            name = control.frames.get(self._key, self._net.initial.name)
        node = self._net.find(name)
        if node is None:
            raise ResumeError(no_state(self._net, name))
        return node

    def _look_for_circles(self, node: Node, policy: StuckPolicy) -> Verdict | None:
        tools = self._memory.available_tools
        mark = fingerprint(node.name, self._finished, self._said, asked=self._asked, tools=tools)
        return None if mark is None else policy.look(self._memory.control, mark)

    async def _best_effort(self, reason: StopReason) -> Node | None:
        """The state that gives the best answer there is, if the net has one and there is time."""
        self.reason = reason
        await close_open_calls(self._memory, reason.clause)
        fallback = self._net.fallback
        if fallback is None or reason is StopReason.TIMEOUT:
            return None
        return self._net.node(fallback)


async def run_branches(
    order: Delegate,
    budget: Budget,
    stuck: StuckPolicy | None,
    *,
    run_id: str,
    path: tuple[str, ...],
    within: str,
    aside: bool,
    seen: Counter[str],
) -> AsyncGenerator[Event, None]:
    """Yield the events of every branch, each run by a machine of its own.

    Args:
        order: The branches.
        budget: What the whole run shares.
        stuck: The policy of the run.
        run_id: The run.
        path: The states and branches around the branches.
        within: The key of the net around them, and its state.
        aside: What they say is not for the reader.
        seen: How often the step has delegated to a branch of a name; counted on here.

    Raises:
        Exception: What a branch raised, if it is the only one or ``on_error`` is ``"cancel"``.
    """

    def machine_for(branch: Branch) -> Machine:
        inside = (*path, branch.name) if branch.name else path
        seen[branch.name] += 1
        again = f"#{seen[branch.name]}" if seen[branch.name] > 1 else ""
        return Machine(
            branch.net,
            branch.memory,
            budget,
            stuck,
            run_id=run_id,
            path=inside,
            key=f"{within}/{branch.name}{again}" if branch.name else within + again,
            aside=aside,
        )

    async def stream(branch: Branch, machine: Machine) -> AsyncGenerator[Event, None]:
        try:
            async with closing(machine.branch(branch)) as events:
                async for event in events:
                    yield event
        except Exception:
            if order.on_error == "cancel":
                raise
        if order.on_end is not None:
            for event in await order.on_end(branch):
                yield event

    streams: list[tuple[Source, AsyncIterator[Event]]] = [
        (branch, stream(branch, machine_for(branch))) for branch in order.branches
    ]
    beside = _Beside()
    if order.beside is not None:
        streams.append((beside, order.beside))
    merged = (
        streams[0][1]
        if len(streams) == 1
        else run_at_once(streams, on_error=order.on_error, until=order.until)
    )
    timed = merged if order.clock is None else within_time(merged, order.clock)
    async with closing(timed) as events:
        async for event in events:
            yield event
    if beside.error is not None:
        raise beside.error


class _Beside:
    """The stream of a state's own events beside those of its branches."""

    error: Exception | None = None
    ended = False


def _is_edge(target: object, node: Node) -> bool:
    try:
        return target in node.targets
    except TypeError:  # not even hashable
        return False


def no_state(net: Net, name: str) -> str:
    """That a run cannot go on in ``net``, in words."""
    return (
        f"The run stands in state {name!r}, which the net {net.name!r} does not have: resume it "
        "with the net that it was started with"
    )


def _failure(error: BaseException, node: Node) -> BaseException:
    """Return ``error``, or what to raise for a cancellation that is not meant for the run."""
    import asyncio  # 20 ms that trio and a mere import do not need

    if isinstance(error, asyncio.CancelledError) and not is_being_cancelled():
        return StateCancelledError(node.name, type(node.state).__name__)
    return error


async def _close(stream: object) -> None:
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        await aclose()
