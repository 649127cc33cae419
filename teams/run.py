"""A task of a team in progress: rounds of turns, and every way it can end."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
from anyio.abc import AsyncResource

from agent_brain.brain import Brain
from agent_brain.branches import run_at_once
from agent_brain.common.aio import CLEANUP_SECONDS
from agent_brain.common.secrets import get_logger
from agent_brain.errors import BrainUseError, ResumeError
from agent_brain.human_input import Decisions
from agent_brain.limits import OWN, WAITING, Limits, StopReason
from agent_brain.memories.errors import STORE_ERRORS
from agent_brain.memories.journal.lease import Lease
from agent_brain.memories.message import Message
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.memories.sharing.shared import TASK, SharedMemory
from agent_brain.memories.store.session import session_key
from agent_brain.nets.delegation import Delegate
from agent_brain.run import Run
from agent_brain.states.events import (
    AgentEvent,
    Event,
    Position,
    RunFailed,
    RunFinished,
    RunStarted,
)
from agent_brain.states.usage import Usage
from agent_brain.teams.decisions import by_agent, waiting, what_waits
from agent_brain.teams.notes import TeamLimits, note_next_turn, used_by, works_on
from agent_brain.teams.rounds import Rounds, Turn, check_agents, is_over
from agent_brain.teams.tools import ending_id

logger = get_logger(__name__)

MAX_ROUNDS = "max_rounds"


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamResult:
    """The result of a task of a team.

    Attributes:
        answer: What ``finish_task`` was called with, or else the last message of an agent.
        stop_reason: Why the task ended: one of :class:`StopReason`, or ``"max_rounds"``.
        rounds: Number of rounds.
        steps: Number of steps of all turns.
        usage: Tokens and cost of all model calls.
        messages: The task and what is in the record behind it.
        waiting: The agents that wait for a person.
        task_id: The ID of the task.
    """

    answer: str
    stop_reason: str
    rounds: int
    steps: int
    usage: Usage
    messages: list[Message] = field(repr=False)
    waiting: tuple[str, ...] = ()
    task_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamPlan:
    """What a team gives to its runs.

    Attributes:
        brains: The brains by the names of the agents.
        members: Their memories.
        shared: The record.
        limits: Limits on all turns together.
        max_rounds: Rounds.
        order: How the turns of a round run at once.
    """

    brains: Mapping[str, Brain[Any]]
    members: Mapping[str, MemberMemory]
    shared: SharedMemory
    limits: Limits
    max_rounds: int | None
    order: Delegate


class TeamRun(AsyncResource):
    """A task in progress: ``async with team.stream(task) as run: async for event in run: …``.

    The agents continue only while events are read. Leaving the ``async with`` block early ends
    their turns at once.
    """

    def __init__(
        self,
        plan: TeamPlan,
        task: Message | None,
        decisions: Decisions = Decisions(),  # noqa: B008 - frozen
        *,
        deps: object = None,
    ) -> None:
        self._plan = plan
        self._task = task
        self._resumed = task is None
        self._decisions = decisions
        self._deps = deps
        self._result: TeamResult | None = None
        self._ended: str | None = None  # the reason, once it is known
        self._stopping: str | None = None  # why the turns end after their steps
        self._active: dict[str, Run[Any]] = {}
        self._round = 0
        self._events = self._drive()

    @property
    def result(self) -> TeamResult:
        """The result; after the block was left early, what there is, as ``"cancelled"``.

        Raises:
            BrainUseError: The task has not ended yet, or it failed.
        """
        if self._result is None:
            raise BrainUseError("There is no result: the task has not ended yet, or it failed")
        return self._result

    def __aiter__(self) -> AsyncIterator[AgentEvent]:
        return cast("AsyncIterator[AgentEvent]", self._events)

    async def aclose(self) -> None:
        """End the turns that are in progress."""
        await self._events.aclose()

    async def to_end(self) -> TeamResult:
        """Run to the end and return the result."""
        async with self:
            async for _ in self._events:
                pass
        return self.result

    def stop(self) -> None:
        """Stop after the current steps, with ``stop_reason="stopped"``; ``resume`` continues.

        May be called by any task of the event loop.
        """
        self._stop(StopReason.STOPPED)

    def _stop(self, reason: str) -> None:
        self._stopping = self._stopping or reason
        for run in self._active.values():
            run.stop()

    async def _drive(self) -> AsyncGenerator[Event, None]:
        """Yield every event of the task."""
        lease: Lease | None = None
        try:
            lease = await self._acquire()
            yield await self._start()
            async with aclosing(self._all_rounds()) as events:
                async for event in events:
                    yield event
            self._result = result = await self._make_result()
            at = Position(result.task_id, result.steps)
            yield RunFinished(result.stop_reason, result.answer, None, result.usage, at=at)
        except Exception as error:
            yield RunFailed(error, at=self._at())
            raise
        except BaseException:
            if self._result is None:
                await self._cut_short()
            raise
        finally:
            if lease is not None:
                with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                    await self._journal._give_back(lease)

    async def _cut_short(self) -> None:
        """Make the result of a task that was left or cancelled."""
        self._ended = StopReason.CANCELLED
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            try:
                self._result = await self._make_result()
            except Exception:
                logger.exception("The result of the task %r could not be read", self._task_id)

    @property
    def _journal(self) -> Any:
        return self._plan.shared.journal

    async def _acquire(self) -> Lease | None:
        """Get the lease of the team: that of a session that no member has."""
        if not self._journal.has_leases:
            return None
        shared = self._plan.shared
        key = session_key(f"{shared.session}/", shared.tenant)
        return cast("Lease", await self._journal.acquire(key))

    async def _start(self) -> RunStarted:
        """Add the task to the record, or find the last one."""
        shared = self._plan.shared
        if self._task is None:
            found = await shared.messages(last=1, tags=TASK)
            if not found:
                raise ResumeError(
                    "There is no task to resume: the record has none. Call run(task) to start one"
                )
            self._task = found[-1]
            await check_agents(shared, self._plan.members, self._task.id)
        else:
            await shared.send(self._task)
        members = self._plan.members.values()
        for member in members:
            await member.open()
        self._limits = TeamLimits(self._plan.limits, members, self._task.id)
        return RunStarted(
            None if self._resumed else self._task, "team", self._resumed, at=self._at()
        )

    @property
    def _task_id(self) -> str:
        return "" if self._task is None else self._task.id

    def _at(self) -> Position:
        used = used_by(self._plan.members.values(), self._task_id)
        return Position(self._task_id, used.step)

    async def _all_rounds(self) -> AsyncGenerator[Event, None]:
        """Run rounds until the task ends; yield the events of all agents."""
        mine = self._working()
        given = by_agent(self._decisions, mine)
        told = self._resumed
        self._rounds = rounds = Rounds(self._plan.members, self._plan.shared, self._task_id)
        self._round = rounds.number
        while self._ended is None:
            turns = await rounds.due(given)
            if await self._ending() is not None:
                turns = [turn for turn in turns if turn.goal is None]
            if not turns and told and not given and waiting(mine):
                raise ResumeError(f"Agents wait for a person: {what_waits(mine)}")
            given, told = {}, False
            self._ended = await self._reason_to_end(turns)
            if self._ended is not None:
                return
            rounds.number = self._round
            streams = [(turn, self._play(turn)) for turn in turns]
            async with aclosing(run_at_once(streams, self._plan.order)) as events:
                async for event in events:
                    yield event
            self._ended = self._stopping or _reason_of(turns)
            if self._ended == StopReason.STUCK and await self._ending() is not None:
                self._ended = None  # the task is done

    async def _reason_to_end(self, turns: list[Turn]) -> str | None:
        """Return why the task ends before a round, if it does."""
        if self._stopping is not None:
            return self._stopping
        if not turns and await self._ending() is not None:
            return StopReason.DONE
        if not turns:
            return _reason_of_waiting(self._working())
        if (reason := self._limits.reached()) is not None:
            return reason
        number, most = max(turn.round for turn in turns), self._plan.max_rounds
        if most is not None and number > most:
            return MAX_ROUNDS
        self._round = number
        return None

    async def _play(self, turn: Turn) -> AsyncGenerator[Event, None]:
        """Run a turn, and send its answer; yield its events with the name of the agent."""
        if self._stopping is not None:  # before it had begun
            return
        run = self._active[turn.name] = self._run_of(turn)
        try:
            async with run:
                async for event in run:
                    if (reason := self._limits.reached_by(event)) is not None:
                        self._stop(reason)
                    path = (turn.name, *event.path)
                    yield dataclasses.replace(event, at=event.at._replace(path=path))
            turn.result = run.result
            if turn.result.stop_reason in OWN:
                await self._rounds.send(turn.name, turn.result)
        except STORE_ERRORS as error:
            for other in self._active.values():
                other.note_store_failure(error)
            raise
        finally:
            del self._active[turn.name]
        turn.completed = True

    def _run_of(self, turn: Turn) -> Run[Any]:
        brain = self._limits.in_time(self._plan.brains[turn.name])
        if turn.goal is not None:
            member = self._plan.members[turn.name]
            note_next_turn(member, self._task_id, turn.round, turn.upto)
            return brain.stream(turn.goal, deps=self._deps)
        turn.over = is_over(self._plan.members[turn.name])
        given = turn.decisions
        return brain.stream_resume(
            approve=given.approve,
            deny=given.deny,
            edit=given.edit,
            input=given.input,
            deps=self._deps,
        )

    async def _ending(self) -> Message | None:
        """Return the message of the agent that has ended the task, if one has."""
        return await self._plan.shared.get(ending_id(self._task_id))

    async def _make_result(self) -> TeamResult:
        shared, members = self._plan.shared, self._plan.members
        began = shared.place_of(self._task_id)  # None if it was cancelled before
        messages = [] if began is None else (await shared.find_news(began - 1))[0]
        ending = await self._ending()
        said = [message.content for message in messages if message.sent_from in members]
        used = used_by(members.values(), self._task_id)
        return TeamResult(
            answer=ending.content if ending is not None else "".join(said[-1:]),
            stop_reason=str(self._ended),
            rounds=self._round,
            steps=used.step,
            usage=Usage.of(used.spent),
            messages=messages,
            waiting=tuple(waiting(self._working())),
            task_id=self._task_id,
        )

    def _working(self) -> dict[str, MemberMemory]:
        """Return the memories of the agents whose last turn was for the task."""
        members = self._plan.members.items()
        return {name: member for name, member in members if works_on(member, self._task_id)}


def _reason_of(turns: list[Turn]) -> str | None:
    """Return why the task ends after a round: the first reason of a turn other than its end."""
    ended = [turn.result for turn in turns if turn.result is not None and not turn.over]
    others = [result.stop_reason for result in ended if result.stop_reason != StopReason.DONE]
    return next((reason for reason in others if reason in WAITING), next(iter(others), None))


def _reason_of_waiting(members: Mapping[str, MemberMemory]) -> str:
    """Return why a task ends that no agent works on: somebody waits, or it is done."""
    asked = waiting(members).values()
    if any(requests.approvals for requests in asked):
        return StopReason.APPROVAL
    return StopReason.INPUT if any(requests.questions for requests in asked) else StopReason.DONE
