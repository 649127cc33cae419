"""Waiting for the rate limits of models, together."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import LLM, Message
from agent_brain.errors import ExperimentError, LLMRateLimitError
from agent_brain.experiments import Experiment, Judge, Outcome, Task
from agent_brain.experiments.running import case_clock
from agent_brain.experiments.running.case_clock import CaseClock
from agent_brain.hooks import pace
from agent_brain.hooks.pace import Pace
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.model_stream import model_attempt
from agent_brain.states.retry import RetryPolicy

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Clock:
    """A clock that moves when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await anyio.lowlevel.checkpoint()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(pace, "monotonic", lambda: found.now)
    monkeypatch.setattr(case_clock, "current_time", lambda: found.now)
    monkeypatch.setattr(pace, "sleep", found.sleep)
    return found


def steady() -> Pace:
    return Pace(RetryPolicy(retries=100, backoff=0.0, max_wait=60.0))


async def test_nobody_waits_until_a_call_is_refused(clock: Clock) -> None:
    shared = steady()

    assert shared.is_open
    await shared.wait("a")
    assert clock.slept == []


async def test_one_goes_first_and_others_follow_as_calls_are_answered(clock: Clock) -> None:
    shared = steady()
    gone: list[str] = []

    async def go(call: str) -> None:
        await shared.wait(call)
        gone.append(call)

    shared.refuse("z", 7.0)
    async with anyio.create_task_group() as group:
        for call in "abcdef":
            group.start_soon(go, call)
        seen = []
        for answered in range(3):
            await anyio.wait_all_tasks_blocked()
            seen.append(len(gone))
            shared.answer(gone[answered])
    assert seen == [1, 3, 5]  # 1, 2 and 3 on their way at the same time
    assert clock.now == pytest.approx(107.0)
    assert not shared.is_open
    shared.answer(gone[3])  # and nobody waits
    assert shared.is_open


async def test_refusals_of_calls_that_began_together_count_once(clock: Clock) -> None:
    shared = Pace(RetryPolicy(retries=100, backoff=1.0, max_wait=60.0))
    for call in "abcdefg":
        shared.begin(call)
    for call in "abcdefg":
        shared.refuse(call, 10.0)
    await shared.wait("a")

    assert 110 <= clock.now <= 111  # one wait, and up to a second by chance


async def test_a_late_refusal_does_not_stop_those_that_go_on(clock: Clock) -> None:
    shared = steady()
    shared.begin("a")
    shared.begin("late")
    shared.refuse("a", 5.0)
    await shared.wait("a")
    shared.answer("a")
    shared.refuse("late", None)

    assert shared.is_open


async def test_another_goes_first_if_the_first_one_leaves(clock: Clock) -> None:
    shared = steady()
    shared.refuse("z", 1.0)
    await shared.wait("a")
    async with anyio.create_task_group() as group:
        group.start_soon(shared.wait, "b")
        await anyio.wait_all_tasks_blocked()
        shared.leave("a")

    assert not shared.is_open


async def test_a_provider_cannot_ask_for_hours(clock: Clock) -> None:
    shared = steady()
    shared.refuse("a", 86_400.0)
    await shared.wait("a")

    assert clock.now == pytest.approx(160.0)


async def test_waits_grow_if_nobody_says_how_long(clock: Clock) -> None:
    shared = Pace(RetryPolicy(retries=100, backoff=1.0, max_wait=60.0))
    for _ in range(10):
        shared.refuse("a", None)
        await shared.wait("a")

    assert 0 < clock.now - 100 < 10 * 60


async def test_the_time_of_a_case_stands_still_while_it_waits(clock: Clock) -> None:
    of_case = CaseClock(10.0)
    clock.now += 4
    of_case.pause()
    of_case.pause()
    clock.now += 100
    of_case.go_on()
    assert of_case.scope.deadline == math.inf
    of_case.go_on()

    assert of_case.waited == 100
    assert of_case.scope.deadline == clock.now + 6
    of_case.stop()
    assert of_case.waited == 100


class Limited(LLM):
    """A model that refuses its first requests, with attempts as LiteLLM makes them."""

    model = "limited"

    def __init__(self, refused: int, attempts: int = 4) -> None:
        self.refused = refused
        self.attempts = attempts
        self.asked = 0

    async def _answer(self, request: Any) -> AsyncIterator[Any]:
        self.asked += 1
        refuses = self.asked <= self.refused
        await anyio.lowlevel.checkpoint()
        if refuses:
            raise LLMRateLimitError("Too many requests; please try again in 0.02s")
        yield "It is 1"

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[Any]:
        for number in range(1, self.attempts + 1):
            try:
                request = ModelRequest(llm=self, messages=messages, attempt=number)
                async for piece in model_attempt(request, self._answer):
                    yield piece
                return
            except LLMRateLimitError:
                if number == self.attempts:
                    raise


class Plain(Limited):
    """The same without attempts."""

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[Any]:
        async for piece in self._answer(None):
            yield piece


def experiment(llm: LLM, **options: Any) -> Experiment:
    tasks = [Task(id=f"t{number}", turns="Say 1", expected="1") for number in range(4)]
    return Experiment(nets="react", models=llm, tasks=tasks, keep_sessions=False, **options)


@pytest.fixture
def _exact_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "BACKOFF", 0.0)


@pytest.mark.usefixtures("_exact_waits")
@pytest.mark.parametrize("refused", [1, 3])
async def test_waiting_for_a_rate_limit_is_no_time_of_the_case(
    tmp_path: Path, refused: int
) -> None:
    report = await experiment(Limited(refused), at_once=1).run(tmp_path)

    assert [case.outcome for case in report.cases] == [Outcome.PASSED] * 4
    waits = sorted(case.seconds_waiting for case in report.cases)
    assert waits[:3] == [0, 0, 0]
    assert waits[3] > 0


@pytest.mark.usefixtures("_exact_waits")
async def test_one_case_asks_while_the_others_wait(tmp_path: Path) -> None:
    llm = Limited(refused=6, attempts=20)
    report = await experiment(llm, at_once=4).run(tmp_path)

    assert all(case.passed for case in report.cases)
    assert all(case.seconds_waiting > 0 for case in report.cases)
    assert llm.asked == 4 + 6  # the first four at once, and then one at a time until one passes


class Busy(Limited):
    """A model that refuses all calls until its limit is over, and then more than a few at once.

    One more may be on its way with each call that it has answered.
    """

    def __init__(self, cases: int) -> None:
        super().__init__(refused=0, attempts=2)
        self.cases = cases
        self.all_asked = anyio.Event()
        self.on_their_way = self.answered = self.refusals = 0

    async def _answer(self, request: Any) -> AsyncIterator[Any]:
        self.asked += 1
        if self.asked <= self.cases:  # all of them at once
            if self.asked == self.cases:
                self.all_asked.set()
            await self.all_asked.wait()
            self.refusals += 1
            raise LLMRateLimitError("Too many requests; please try again in 0.02s")
        self.on_their_way += 1
        try:
            await anyio.wait_all_tasks_blocked()
            if self.on_their_way > 1 + self.answered:
                self.refusals += 1
                raise LLMRateLimitError("Too many requests; please try again in 0.02s")
            self.answered += 1
        finally:
            self.on_their_way -= 1
        yield "It is 1"


@pytest.mark.usefixtures("_exact_waits")
async def test_calls_that_were_refused_together_are_not_refused_again(tmp_path: Path) -> None:
    llm = Busy(cases=7)
    tasks = [Task(id=f"t{number}", turns="Say 1", expected="1") for number in range(7)]
    made = Experiment(nets="react", models=llm, tasks=tasks, keep_sessions=False, at_once=7)
    report = await made.run(tmp_path)

    assert [case.outcome for case in report.cases] == [Outcome.PASSED] * 7
    assert llm.refusals == 7
    assert all(case.seconds_waiting > 0 for case in report.cases)


@pytest.mark.usefixtures("_exact_waits")
async def test_a_refused_call_without_attempts_lets_others_wait(tmp_path: Path) -> None:
    report = await experiment(Plain(refused=1), at_once=1).run(tmp_path)

    outcomes = sorted(case.outcome for case in report.cases)
    assert outcomes == [Outcome.PASSED, Outcome.PASSED, Outcome.PASSED, Outcome.RATE_LIMITED]
    assert sum(case.seconds_waiting for case in report.cases) > 0


@pytest.mark.usefixtures("_exact_waits")
async def test_a_case_that_a_rate_limit_ended_is_told_apart_and_can_be_done_again(
    tmp_path: Path,
) -> None:
    llm = Limited(refused=4, attempts=2)
    compared = experiment(llm, at_once=1)
    report = await compared.run(tmp_path)

    (one,) = report.cells
    assert one.outcomes == {Outcome.RATE_LIMITED: 2, Outcome.PASSED: 2}
    assert str(one.passed) == "2/4", "it counts as failed"
    assert any("rate limits of models ended 2 cases" in text for text in report.warnings)
    assert compared.plan(tmp_path).done == 4
    assert compared.plan(tmp_path, fresh="rate-limited").done == 2
    assert compared.plan(tmp_path, fresh=[Outcome.RATE_LIMITED, "passed"]).done == 0

    asked = llm.asked
    again = await compared.run(tmp_path, fresh="rate-limited")
    assert [case.passed for case in again.cases] == [True] * 4
    assert llm.asked == asked + 2, "what passed was not done again"
    assert not any("rate limits" in text for text in again.warnings)


@pytest.mark.usefixtures("_exact_waits")
async def test_a_judge_that_a_rate_limit_stopped_is_told_apart(tmp_path: Path) -> None:
    judge = Judge(Limited(refused=9, attempts=1), "It is polite.")
    task = Task(id="t", turns="Say 1", expected=judge)
    compared = Experiment(nets="react", models="rule-based", tasks=task, keep_sessions=False)

    (case,) = (await compared.run(tmp_path)).cases
    assert case.outcome is Outcome.RATE_LIMITED


@pytest.mark.parametrize("fresh", ["lost", ["passed", 3], 3, None])
async def test_only_outcomes_are_done_again(tmp_path: Path, fresh: Any) -> None:
    with pytest.raises(ExperimentError, match=r"fresh=.*: True, or outcomes: passed, wrong"):
        await experiment(Limited(0)).run(tmp_path, fresh=fresh)
