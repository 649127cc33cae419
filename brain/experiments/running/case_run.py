"""Running one case: its turns, restarts and checks. Private."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from anyio import get_cancelled_exc_class

from agent_brain.brain import Brain
from agent_brain.experiments.case import CaseResult, Outcome
from agent_brain.experiments.case_journal import CaseJournal
from agent_brain.experiments.case_plan import Case
from agent_brain.experiments.checks import Check, Reply
from agent_brain.experiments.judge import JudgeError
from agent_brain.experiments.running.pace import CaseClock, PaceHook
from agent_brain.experiments.running.program import Equipment, Program
from agent_brain.experiments.running.tally import Tally
from agent_brain.experiments.settings import Settings
from agent_brain.experiments.task import Turn
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.result import Result
from agent_brain.states.errors import LLMRateLimitError
from agent_brain.states.hooks import Hook
from agent_brain.tools.aio import is_stray_cancellation, maybe_await
from agent_brain.tools.secrets import scrub
from agent_brain.usage_budget import UsageBudget
from agent_brain.usage_ledger import UsageLedger

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
        equipment: What it is run with.
        settings: The settings of the experiment.
    """

    def __init__(self, case: Case, equipment: Equipment, settings: Settings) -> None:
        self._case = case
        self._with = equipment
        self._settings = settings
        self._tally = Tally()
        self._clock = CaseClock(settings.case_seconds)
        self._pace = PaceHook(equipment.pace_of, self._clock)
        self._result: Result[Any] | None = None
        self._sessions: tuple[str, ...] = ()
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
        tools = [*self._case.task.make_tools(), *self._settings.make_tools()]
        program = Program(
            self._case, self._with, self._settings, tools, self._hooks(), self.journal, self._tally
        )
        try:
            return await self._take_turns(program)
        finally:
            await program.stop()
            if self._settings.keep_sessions:
                self._sessions = tuple(program.sessions)

    def _hooks(self) -> list[Hook]:
        found: list[Hook] = [] if self._with.model.is_rule_based else [self._pace]
        budget = self._case.task.max_cost or self._settings.case_max_cost
        if budget is not None:
            found.append(UsageLedger([UsageBudget("process", cost=budget)]))
        if self._with.ledger is not None:
            found.append(self._with.ledger)
        return found

    async def _take_turns(self, program: Program) -> Ending:
        turns = self._case.task.all_turns
        brain = await program.start(turns[0].session)
        await self._prepare(brain.memory)
        ending = Ending(Outcome.PASSED, "It ended", 1.0)
        for number, turn in enumerate(turns):
            if number and (turn.restart or turn.session != turns[number - 1].session):
                if not program.lasts:
                    why = f"{type(brain.memory).__name__} is not stored: a restart empties it"
                    return Ending(Outcome.WRONG, why)
                await program.stop()
                brain = await program.start(turn.session)
            self._tally.turns += 1
            ending = await self._take_turn(brain, turn, ending, last=number == len(turns) - 1)
            if ending.outcome is not Outcome.PASSED:
                break
        return ending

    async def _prepare(self, memory: Memory) -> None:
        task = self._case.task
        if task.messages:
            await memory.update(list(task.messages))
        if task.prepare is not None:
            await maybe_await(task.prepare(memory))

    async def _take_turn(
        self, brain: Brain[Any], turn: Turn, so_far: Ending, *, last: bool
    ) -> Ending:
        """Run a turn and check its answer.

        Args:
            brain: The brain.
            turn: The turn.
            so_far: How the turns before it ended.
            last: Whether it is the last one.
        """
        task = self._case.task
        self._result = None
        result = self._result = await brain.run(turn.text, deps=task.deps)
        self._tally.count(brain.memory)
        if result.stop_reason is not StopReason.DONE:
            outcome = _OUTCOMES.get(result.stop_reason, Outcome.LIMIT)
            return Ending(outcome, _sentence(result.stop_reason.clause), judged=so_far.judged)
        reply = Reply(task, turn, result, task.deps)
        ending = so_far
        for check in _checks(turn, task.check if last else None):
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
                self._tally.judge_cost += error.cost
            return replace(_crash(error, f"The check ({check}) raised "), judged=so_far.judged)
        self._tally.judge_cost += verdict.cost
        outcome = Outcome.PASSED if verdict.passed else Outcome.WRONG
        score = min(so_far.score, float(verdict.score))
        return Ending(outcome, verdict.reason, score, so_far.judged or verdict.judged)

    def _case_result(self, ending: Ending, started: datetime, seconds: float) -> CaseResult:
        case, result = self._case, self._result
        return CaseResult(
            id=case.id,
            net=case.cell.net,
            memory=case.cell.memory,
            model=case.cell.model,
            task=case.task.id,
            tags=tuple(case.task.tags),
            repeat=case.repeat,
            outcome=ending.outcome,
            score=ending.score,
            judged=ending.judged,
            reason=ending.reason,
            answer="" if result is None else result.answer,
            stop_reason=None if result is None else result.stop_reason.value,
            error=ending.error,
            seconds=seconds,
            seconds_waiting=self._clock.waited,
            started=started,
            sessions=self._sessions,
            **self._tally.to_fields(),
        )


def _checks(turn: Turn, of_task: Check | None) -> Iterator[Check]:
    if (check := turn.check) is not None:
        yield check
    if of_task is not None:
        yield of_task


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


def _sentence(clause: str) -> str:
    return clause[:1].upper() + clause[1:]
