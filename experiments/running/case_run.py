"""Running one case: its turns, restarts and checks."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import anyio
from anyio import get_cancelled_exc_class

from agent_brain.brain import Brain
from agent_brain.common.aio import CLEANUP_SECONDS, is_stray_cancellation, maybe_await
from agent_brain.common.secrets import scrub
from agent_brain.experiments.case import CaseResult, Outcome
from agent_brain.experiments.checks import Check, Reply
from agent_brain.experiments.judge import JudgeError
from agent_brain.experiments.plan import Case
from agent_brain.experiments.running.case_clock import CaseClock, PaceHook
from agent_brain.experiments.store import CaseJournal
from agent_brain.experiments.task import Turn
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.runs.counts import Counts
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.wrapper import WrappingMemory, offers
from agent_brain.result import Result
from agent_brain.states.errors import LLMRateLimitError
from agent_brain.states.hooks import Hook
from agent_brain.tools.toolset import ToolLike
from agent_brain.usage.budgets import UsageBudget
from agent_brain.usage.ledger import UsageLedger

if TYPE_CHECKING:
    from agent_brain.experiments.running.runner import Runner

_OUTCOMES = {
    StopReason.STUCK: Outcome.STUCK,
    StopReason.APPROVAL: Outcome.WAITING,
    StopReason.INPUT: Outcome.WAITING,
    StopReason.SLEEPING: Outcome.WAITING,
    StopReason.PAUSED: Outcome.WAITING,
    StopReason.CANCELLED: Outcome.CRASHED,
    StopReason.FAILED: Outcome.CRASHED,
    StopReason.STOPPED: Outcome.CRASHED,
}  # all others but DONE are limits


@dataclass(frozen=True, slots=True)
class Ending:
    """How a case ended, without what it has used."""

    outcome: Outcome
    reason: str
    score: float = 0.0
    judged: bool = False
    error: str | None = None


class CaseRun:
    """One case, from its beginning.

    Attributes:
        journal: Its sessions.

    Args:
        case: The case.
        runner: Has what all cases share.
    """

    def __init__(self, case: Case, runner: Runner) -> None:
        self._case = case
        self._with = runner
        self._settings = runner.settings
        self._clock = CaseClock(runner.settings.case_seconds)
        self._pace = PaceHook(runner.limits, self._clock)
        self._tools: list[ToolLike] = []
        self._hooks = self._make_hooks()
        self._memory: Memory | None = None
        self._sessions: dict[str, None] = {}  # that were opened and are stored
        self._result: Result[Any] | None = None
        self._turns = 0  # that were begun
        self._used = Counts()  # also by runs that raised or were cut off
        self._counted: set[str] = set()  # the IDs of runs
        self._judge_cost = 0.0  # US dollars
        self.journal = CaseJournal()

    async def run(self) -> CaseResult:
        """Run it and return its result. Only a cancellation is raised."""
        started, begun = datetime.now(UTC), time.perf_counter()
        ending = Ending(Outcome.LIMIT, f"It took longer than {self._settings.case_seconds} s")
        try:
            with self._clock.scope:
                ending = await self._run()
        except BaseException as error:
            if not _is_of_the_case(error):
                raise
            ending = _crash(error)
        finally:
            self._pace.leave()
        seconds = max(time.perf_counter() - begun - self._clock.waited, 0.0)
        return self._case_result(ending, started, seconds)

    async def _run(self) -> Ending:
        self._tools = [*self._case.task.make_tools(), *self._settings.make_tools()]
        try:
            return await self._take_turns()
        finally:
            await self._stop()

    async def _start(self, session: str) -> Brain[Any]:
        """Make the memory of a session and a brain over it."""
        own, task, cell = self._with, self._case.task, self._case.cell
        place = {"journal": self.journal, "session": session, "tenant": self._case.id}
        choice = own.memories[cell.memory]
        memory = self._memory = choice.create(self._tools, client=own.client, **place)
        if memory.durable and memory.session is not None:
            self._sessions[memory.session] = None
        brain: Brain[Any] = Brain(
            own.nets[cell.net].make(own.models[cell.model].llm, task.output_type),
            memory,
            limits=task.limits or own.settings.limits,
            stuck=own.settings.stuck,
            hooks=self._hooks,
            trace=own.settings.trace and offers(memory, "record_call"),
        )
        await brain.open()
        return brain

    def _count(self) -> None:
        """Count what the last run has used, once."""
        if self._memory is None or (control := self._memory.control).run_id in self._counted:
            return
        if control.run_id:
            self._counted.add(control.run_id)
            self._used = self._used.plus(Counts(**control.spent.as_data(), step=control.step))

    async def _stop(self) -> None:
        """Count what was used, and close the memory. Models are closed by the experiment."""
        self._count()
        memory, self._memory = self._memory, None
        if memory is not None:
            with anyio.CancelScope(shield=True, deadline=anyio.current_time() + CLEANUP_SECONDS):
                await memory.aclose()

    def _make_hooks(self) -> list[Hook]:
        model = self._with.models[self._case.cell.model]
        found: list[Hook] = [] if model.is_rule_based else [self._pace]
        budget = self._case.task.max_cost or self._settings.case_max_cost
        if budget is not None:
            found.append(UsageLedger([UsageBudget("process", cost=budget)]))
        if self._with.ledger is not None:
            found.append(self._with.ledger)
        return found

    async def _take_turns(self) -> Ending:
        task, turns = self._case.task, self._case.task.all_turns
        brain = await self._start(turns[0].session)
        if task.messages:
            await brain.memory.update(list(task.messages))
        if task.prepare is not None:
            await maybe_await(task.prepare(brain.memory))
        ending = Ending(Outcome.PASSED, "It ended", 1.0)
        for number, turn in enumerate(turns):
            if number and (turn.restart or turn.session != turns[number - 1].session):
                if not _lasts(brain.memory):
                    why = f"{type(brain.memory).__name__} is not stored: a restart empties it"
                    return Ending(Outcome.WRONG, why)
                await self._stop()
                brain = await self._start(turn.session)
            self._turns += 1
            ending = await self._take_turn(brain, turn, ending)
            if ending.outcome is not Outcome.PASSED:
                break
        return ending

    async def _take_turn(self, brain: Brain[Any], turn: Turn, ending: Ending) -> Ending:
        """Run a turn and check its answer.

        Args:
            brain: The brain.
            turn: The turn.
            ending: How the turns before it ended.
        """
        task = self._case.task
        self._result = None
        result = self._result = await brain.run(turn.text, deps=task.deps)
        self._count()
        if result.stop_reason is not StopReason.DONE:
            outcome = _OUTCOMES.get(result.stop_reason, Outcome.LIMIT)
            clause = result.stop_reason.clause
            return Ending(outcome, clause[:1].upper() + clause[1:], judged=ending.judged)
        reply = Reply(task, turn, result, task.deps)
        checks = turn.check, task.check if self._turns == len(task.all_turns) else None
        for check in filter(None, checks):
            ending = await self._check(check, reply, ending)
            if ending.outcome is not Outcome.PASSED:
                break
        return ending

    async def _check(self, check: Check, reply: Reply, so_far: Ending) -> Ending:
        try:
            verdict = await check.check(reply)
        except BaseException as error:
            if not _is_of_the_case(error):
                raise
            if isinstance(error, JudgeError):
                self._judge_cost += error.cost
            return replace(_crash(error, f"The check ({check}) raised "), judged=so_far.judged)
        self._judge_cost += verdict.cost
        outcome = Outcome.PASSED if verdict.passed else Outcome.WRONG
        score = min(so_far.score, float(verdict.score))
        return Ending(outcome, verdict.reason, score, so_far.judged or verdict.judged)

    def _case_result(self, ending: Ending, started: datetime, seconds: float) -> CaseResult:
        case, result, used = self._case, self._result, self._used
        return CaseResult(
            id=case.id,
            **case.cell._asdict(),
            **asdict(ending),
            task=case.task.id,
            tags=tuple(case.task.tags),
            repeat=case.repeat,
            answer="" if result is None else result.answer,
            stop_reason=None if result is None else result.stop_reason.value,
            turns=self._turns,
            steps=used.step,
            model_calls=used.requests,
            tool_calls=used.tool_calls,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            cost=None if used.unpriced else used.cost,
            judge_cost=self._judge_cost,
            seconds=seconds,
            seconds_waiting=self._clock.waited,
            started=started,
            sessions=tuple(self._sessions) if self._settings.keep_sessions else (),
        )


def _lasts(memory: Memory) -> bool:
    """Return whether a memory is there again after a restart."""
    if memory.durable:
        return True
    while isinstance(memory, WrappingMemory):
        memory = memory.inner
    shared = isinstance(memory, StoredMemory) and memory.shared  # it stores its messages alone
    return shared and memory.session is not None


def _is_of_the_case(error: BaseException) -> bool:
    """Return whether an error ends the case alone, and not the experiment."""
    endings = KeyboardInterrupt, GeneratorExit, get_cancelled_exc_class()
    if isinstance(error, BaseExceptionGroup):
        return error.subgroup(endings) is None
    return not isinstance(error, endings) or is_stray_cancellation(error)


def _crash(error: BaseException, before: str = "") -> Ending:
    text = scrub(f"{type(error).__name__}: {error}".strip().removesuffix(":"))
    first = text.partition("\n")[0]
    outcome = Outcome.RATE_LIMITED if _is_rate_limit(error) else Outcome.CRASHED
    return Ending(outcome, f"{before}{first}", error=text)


def _is_rate_limit(error: BaseException | None) -> bool:
    """Return whether the rate limit of a model is what an error came from."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(_is_rate_limit, error.exceptions))
    return error is not None and (
        isinstance(error, LLMRateLimitError) or _is_rate_limit(error.__cause__)
    )
