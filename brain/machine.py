"""The machine: moves one net over one memory, step after step."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from enum import Enum

import anyio
from anyio.abc import TaskGroup

from agent_brain.branches import run_at_once
from agent_brain.budget import Budget
from agent_brain.errors import LLMError, ResumeError, ScratchError
from agent_brain.limits import OWN, WAITING, StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Asked
from agent_brain.memories.message import Message, Role
from agent_brain.nets.checks import name_of
from agent_brain.nets.delegate import Branch, Delegate
from agent_brain.nets.errors import TransitionError
from agent_brain.nets.net import Net, Node
from agent_brain.states.events import (
    NOWHERE,
    ActionFinished,
    ActionRequested,
    ApprovalRequested,
    Event,
    InputRequested,
    Position,
    StateEntered,
    StateExited,
    StuckDetected,
    TextDelta,
    UsageReported,
)
from agent_brain.states.llm import Thought
from agent_brain.states.streams import closing
from agent_brain.stuck import StuckPolicy, fingerprint

CLEANUP_SECONDS = 5.0  # how long a step that is cut short may take to leave things in order


class Machine:
    """One net at work over one memory; a delegated branch gets a machine of its own.

    Attributes:
        at: The step it is in.
        reason: Why it stopped, once it has.
    """

    __slots__ = (
        "_aside",
        "_asked",
        "_budget",
        "_cut",
        "_durable",
        "_finished",
        "_group",
        "_memory",
        "_net",
        "_path",
        "_run_id",
        "_said",
        "_stuck",
        "_text",
        "_waits",
        "at",
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
        aside: bool = False,
        group: TaskGroup | None = None,
    ) -> None:
        self._net = net
        self._memory = memory
        self._budget = budget
        self._stuck = stuck
        self._run_id = run_id
        self._path = path
        self._aside = aside  # what is said here is not for the reader
        self._group = group
        self._durable = memory.durable
        self._said: list[str] = []  # in this step
        self._text: list[str] = []  # in the last step that said anything
        self._finished: list[ActionFinished] = []
        self._asked = False
        self._waits: StopReason | None = None
        self._cut: StopReason | None = None  # the limit that stopped a branch of this step
        self.at = NOWHERE
        self.reason: StopReason | None = None

    def answer(self) -> str:
        """What the last step that said anything has said."""
        return "".join(self._said or self._text)

    async def steps(self) -> AsyncGenerator[Event, None]:  # noqa: C901 - one loop, in one place
        """Every event, until the net or a limit says that it is enough."""
        memory = self._memory
        over = memory.control.done and not self._path  # killed between its last step and its end
        node: Node | None = None if over else self._current()
        while node is not None:
            calls = len(memory.control.next_actions)
            if self.reason is None and (reason := self._budget.reached(calls)):
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
                    if isinstance(item, str):
                        yield self._note_text(item, at)
                    elif type(item) is Delegate:
                        async with closing(self._delegate(item)) as events:
                            async for event in events:
                                yield event
                        if self._waits is not None:  # inside of it: it is gone on with there
                            await _close(stream)
                            break
                    else:
                        yield self._note(item, at)
            except BaseException as error:
                await _leave_hurt(node, memory, stream, error)
                raise
            if node.on_exit:
                await node.state.on_exit(memory)
            if self._waits is not None:
                self.reason = self._waits
                return
            if self._cut is None:
                node = await self._move(node)
            else:  # the run stays in this state: it is gone on with inside of it
                node = await self._best_effort(self._cut)
            yield StateExited(node.name if node else None, at=at)
            if node is not None and (stuck := self._look_for_circles()):
                yield stuck
                if stuck.verdict == "stop":
                    node = await self._best_effort(StopReason.STUCK)
        self.reason = self.reason or StopReason.DONE

    def _enter(self, node: Node) -> Position:
        if self._said:
            self._text = self._said
        self._said, self._finished, self._asked, self._cut = [], [], False, None
        self.at = Position(self._run_id, self._budget.control.step, node.name, self._path)
        return self.at

    def _note_text(self, text: str, at: Position) -> TextDelta:
        if type(text) is Thought:
            return TextDelta(text, thought=True, at=at)
        self._said.append(text)
        return TextDelta(text, thought=self._aside, at=at)

    def _note(self, event: Event, at: Position) -> Event:
        """Take notice of an event that a state yielded, and say where it happened."""
        if not isinstance(event, Event):
            raise TypeError(
                f"State {at.state!r} yielded {event!r}: yield text, or an event from "
                "agent_brain.states"
            )
        if event.at is NOWHERE:
            object.__setattr__(event, "at", at)
        if isinstance(event, ActionRequested):
            self._asked = True
        elif isinstance(event, ActionFinished):
            self._finished.append(event)
            vars(self._budget.control.spent)["tool_calls"] += 1  # unvalidated: the hot path
        elif isinstance(event, UsageReported):
            self._budget.spend(event.usage)
        elif isinstance(event, TextDelta) and not event.thought:
            self._said.append(event.text)
        elif isinstance(event, ApprovalRequested):
            self._waits = StopReason.APPROVAL
            self._asks().approvals = [action.id for action in event.actions]
        elif isinstance(event, InputRequested):
            self._waits = StopReason.INPUT
            self._asks().questions[event.id] = event.prompt
        return event

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
            aside=self._aside or order.aside or len(order.branches) > 1,
            group=self._group,
        )
        async with closing(run) as events:
            async for event in events:
                yield event
        for branch in order.branches:
            reason = branch.stop_reason
            if branch.memory is self._memory and reason in WAITING:
                self._waits = StopReason(reason)
            elif reason is not None and reason not in (*OWN, *WAITING):
                self._cut = StopReason(reason)
        if len(order.branches) == 1 and not order.aside:
            self._said.append(order.branches[0].answer)

    async def branch(self, branch: Branch) -> AsyncGenerator[Event, None]:
        """Run as a branch: from its own beginning, or from where a resumed run had left it."""
        control, main = self._memory.control, self._budget.control
        if control is not main:
            control.begin(self._run_id, self._net.initial.name)
            control.branch = f"{'/'.join(self._path)}@{main.step}"
            control.dry_run = main.dry_run
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
        branch.stop_reason = self.reason

    async def _move(self, node: Node) -> Node | None:
        """Check what the state proposes, and move there; None at the end."""
        control = self._memory.control
        target: Enum | None = None
        if self.reason is None:
            target = await node.state.next_state(self._memory)
            if not _is_edge(target, node) and not (target is None and control.done):
                allowed = [name_of(t) if t is not None else "the end (None)" for t in node.targets]
                raise TransitionError(node.name, target, sorted(allowed))
        control.check_notes(node.name)
        if self._stuck is not None:
            self._remember_step(node, self._stuck)
        next_node = None if target is None or control.done else self._net.node(target)
        if control.asked is not None:  # what was asked here was for this state
            control.asked = None
        self._advance(next_node.name if next_node else None)
        if self._durable:
            await self._memory.checkpoint()
        return next_node

    def _advance(self, state: str | None) -> None:
        """Write down where the machine stands now: ``state`` comes next, or nothing."""
        main, own = self._budget.control, self._memory.control
        if not self._path:
            own.advance(state)
            return
        main.step += 1
        if own is not main:
            own.step += 1
        own.hint = None
        if state is None:
            own.frames.pop("/".join(self._path), None)
        else:
            own.frames["/".join(self._path)] = state

    def _current(self) -> Node:
        control = self._memory.control
        if not self._path:
            name = control.state or ""
        else:
            name = control.frames.get("/".join(self._path), self._net.initial.name)
        node = self._net.find(name)
        if node is None:
            raise ResumeError(no_state(self._net, name))
        return node

    def _remember_step(self, node: Node, policy: StuckPolicy) -> None:
        mark = fingerprint(node.name, self._finished, self._said, asked=self._asked)
        if mark is not None:
            recent = self._memory.control.recent
            recent.append(mark)
            del recent[: -policy.keep()]

    def _look_for_circles(self) -> StuckDetected | None:
        policy, control = self._stuck, self._memory.control
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

    async def _best_effort(self, reason: StopReason) -> Node | None:
        """The state that gives the best answer there is, if the net has one and there is time."""
        self.reason = reason
        await close_open_calls(self._memory, f"The call was not run: {reason.value}")
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
    aside: bool,
    group: TaskGroup | None,
) -> AsyncGenerator[Event, None]:
    """The events of every branch, each run by a machine of its own.

    Raises:
        Exception: What a branch raised, if it is the only one or ``on_error`` is ``"cancel"``.
    """

    def stream(branch: Branch) -> AsyncGenerator[Event, None]:
        inside = (*path, branch.name) if branch.name else path
        machine = Machine(
            branch.net,
            branch.memory,
            budget,
            stuck,
            run_id=run_id,
            path=inside,
            aside=aside,
            group=group,
        )
        return machine.branch(branch)

    if len(order.branches) == 1:
        merged = stream(order.branches[0])
    else:
        streams = [(branch, stream(branch)) for branch in order.branches]
        merged = run_at_once(streams, on_error=order.on_error, group=group)
    try:
        async with closing(merged) as events:
            async for event in events:
                yield event
    except Exception as error:  # of a single branch: several report theirs themselves
        if order.on_error == "cancel" or error is not order.branches[0].error:
            raise


def _is_edge(target: object, node: Node) -> bool:
    try:
        return target in node.targets
    except TypeError:  # not even hashable
        return False


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
                finished = memory.control.pending  # by calls of a round in which another one waits
                results = [
                    (call.id in finished and finished[call.id].result)
                    or Message.tool(why, call, is_error=True)
                    for call in open_calls
                ]
                await memory.update(results)
            break
    memory.control.next_actions = []
    memory.control.pending = {}
    memory.control.asked = None


def no_state(net: Net, name: str) -> str:
    """That a run cannot go on in ``net``, in words."""
    return (
        f"The run stands in state {name!r}, which the net {net.name!r} does not have: resume it "
        "with the net that it was started with"
    )


async def _close(stream: object) -> None:
    aclose = getattr(stream, "aclose", None)
    if aclose is not None:
        await aclose()


async def _leave_hurt(node: Node, memory: Memory, stream: object, error: BaseException) -> None:
    """Leave a state that did not come to its end, and say in which state the error happened."""
    with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
        await _close(stream)
        if node.on_exit:
            await node.state.on_exit(memory)
    if isinstance(error, LLMError | ScratchError):
        error.state = error.state or node.name
    elif isinstance(error, Exception):
        error.add_note(f"Raised in state {node.name!r} ({type(node.state).__name__})")
