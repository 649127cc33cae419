"""Running one case: its turns, restarts and checks."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from anyio import get_cancelled_exc_class

from agent_brain.brain import Brain
from agent_brain.common.aio import is_stray_cancellation, maybe_await
from agent_brain.common.secrets import scrub
from agent_brain.experiments.case import CaseResult, Outcome
from agent_brain.experiments.case_plan import Case
from agent_brain.experiments.checks import Check, Reply
from agent_brain.experiments.judge import JudgeError
from agent_brain.experiments.running.case_clock import CaseClock, PaceHook
from agent_brain.experiments.running.program import Equipment, Program
from agent_brain.experiments.store import CaseJournal
from agent_brain.experiments.task import Turn
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.runs.counts import Counts
from agent_brain.result import Result
from agent_brain.states.errors import LLMRateLimitError
from agent_brain.states.hooks import Hook
from agent_brain.usage.budgets import UsageBudget
from agent_brain.usage.ledger import UsageLedger

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
    """

    def __init__(self, case: Case, equipment: Equipment) -> None:
        self._case = case
        self._with = equipment
        self._settings = equipment.settings
        self._clock = CaseClock(equipment.settings.case_seconds)
        self._pace = PaceHook(equipment.limits, self._clock)
        self._program: Program | None = None
        self._result: Result[Any] | None = None
        self._turns = 0  # that were begun
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
        tools = [*self._case.task.make_tools(), *self._settings.make_tools()]
        program = self._program = Program(
            self._case, self._with, tools, self._hooks(), self.journal
        )
        try:
            return await self._take_turns(program)
        finally:
            await program.stop()

    def _hooks(self) -> list[Hook]:
        model = self._with.models[self._case.cell.model]
        found: list[Hook] = [] if model.is_rule_based else [self._pace]
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
            self._turns += 1
            last = number == len(turns) - 1
            ending = await self._take_turn(program, brain, turn, ending, last=last)
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
        self, program: Program, brain: Brain[Any], turn: Turn, so_far: Ending, *, last: bool
    ) -> Ending:
        """Run a turn and check its answer.

        Args:
            program: The program.
            brain: Its brain.
            turn: The turn.
            so_far: How the turns before it ended.
            last: Whether it is the last one.
        """
        task = self._case.task
        self._result = None
        result = self._result = await brain.run(turn.text, deps=task.deps)
        program.count()
        if result.stop_reason is not StopReason.DONE:
            outcome = _OUTCOMES.get(result.stop_reason, Outcome.LIMIT)
            clause = result.stop_reason.clause
            return Ending(outcome, clause[:1].upper() + clause[1:], judged=so_far.judged)
        reply = Reply(task, turn, result, task.deps)
        ending = so_far
        checks = turn.check, task.check if last else None
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
        case, result, program = self._case, self._result, self._program
        used = Counts() if program is None else program.used
        sessions = () if program is None or not self._settings.keep_sessions else program.sessions
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
            sessions=tuple(sessions),
        )


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
