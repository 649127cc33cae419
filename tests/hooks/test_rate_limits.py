"""Calls of models and tools are limited together, for all runs of a process."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import pytest

from agent_brain import LLM, Brain, Memory, Message, State, tool
from agent_brain.errors import BrainDefinitionError, LLMRateLimitError, LLMServerError
from agent_brain.hooks import Moderation, Rate, RateLimits, pace
from agent_brain.hooks.rate_limits import Gate
from agent_brain.states import Hook, ModelRequest, ModelResponse, Together, Usage
from agent_brain.states.model_stream import model_attempt
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import single

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


class Counting(LLM):
    """A model that counts the calls on their way, and lets them end when it is told to."""

    def __init__(self, model: str = "counting") -> None:
        self.model = model
        self.now = self.most = self.asked = 0
        self.go = anyio.Event()
        self.order: list[str] = []

    async def stream(self, messages: Sequence[Message], **_: Any) -> AsyncIterator[Any]:
        self.order.append(messages[-1].content)
        self.now, self.asked = self.now + 1, self.asked + 1
        self.most = max(self.most, self.now)
        try:
            await self.go.wait()
            yield "Yes."
            yield Usage(100, 100)
        finally:
            self.now -= 1


async def test_as_many_calls_run_at_once_as_are_allowed_in_their_order() -> None:
    llm, other = Counting(), Counting("other")
    limits = RateLimits({"c*": Rate(at_once=2)})

    async def run(model: LLM, name: str) -> None:
        await Brain("react", llm=model, hooks=[limits]).run(name)

    async with anyio.create_task_group() as group:
        for number in range(5):
            group.start_soon(run, llm, str(number))
            await anyio.wait_all_tasks_blocked()
        for _ in range(3):
            group.start_soon(run, other, "x")
        await anyio.wait_all_tasks_blocked()
        assert (llm.now, other.now) == (2, 3)
        llm.go.set()
        other.go.set()
    assert llm.most == 2
    assert [sorted(llm.order[:2]), sorted(llm.order[2:4]), llm.order[4:]] == [
        ["0", "1"],
        ["2", "3"],
        ["4"],
    ]


async def test_waits_and_calls_that_are_cancelled_give_their_place_back() -> None:
    llm, limits = Counting(), RateLimits({"*": Rate(at_once=1)})

    async def run() -> None:
        await Brain("react", llm=llm, hooks=[limits]).run("x")

    async with anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    assert llm.asked == 1
    llm.go.set()
    with anyio.fail_after(60):
        await run()
        async with Brain("react", llm=llm, hooks=[limits]).stream("left") as events:
            async for event in events:
                if event.kind == "text_delta":
                    break
        await run()


async def test_work_that_is_cut_short_gives_its_place_back_with_its_step() -> None:
    class Failing(LLM):
        model = "failing"

        async def stream(self, messages: Any, **_: Any) -> AsyncIterator[Any]:
            yield "It "
            raise ValueError("broken")

    llm, limits = Counting(), RateLimits({"*": Rate(at_once=1)})

    class Both(State):
        async def run(self, memory: Memory) -> AsyncIterator[Any]:
            said = [Message.user("x")]
            with pytest.raises(ValueError, match="broken"):
                yield Together([llm.call(said), Failing().call(said)])
            yield "Done."

        async def next_state(self, memory: Memory) -> None:
            return None

    with anyio.fail_after(60):
        for _ in range(2):
            await Brain(single(Both()), hooks=[limits]).run("x")
    assert llm.asked == 2


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
async def test_calls_of_other_hooks_do_not_wait_for_the_call_they_look_at(order: int) -> None:
    allowed = '{"allowed": true}'
    llm = ScriptedLLM([allowed, "Boil it.", allowed])
    hooks = [RateLimits({"*": Rate(at_once=1)}), Moderation(llm)][::order]
    with anyio.fail_after(60):
        result = await Brain("react", llm=llm, hooks=hooks).run("How long does an egg take?")
    assert (result.answer, result.usage.requests) == ("Boil it.", 3)


async def test_a_call_whose_error_is_answered_gives_its_place_back() -> None:
    class Answers(Hook):
        def on_model_error(self, request: ModelRequest, error: Exception) -> ModelResponse:
            return ModelResponse("Sorry.")

    llm = ScriptedLLM([LLMServerError("down"), LLMServerError("down")])
    for order in (1, -1):
        hooks = [RateLimits({"*": Rate(at_once=1)}), Answers()][::order]
        with anyio.fail_after(60):
            assert (await Brain("react", llm=llm, hooks=hooks).run("x")).answer == "Sorry."


class Time:
    """A clock that moves when somebody sleeps."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr("agent_brain.tools.limiter.time.monotonic", lambda: self.now)
        monkeypatch.setattr("agent_brain.tools.limiter.anyio.sleep", self.sleep)
        monkeypatch.setattr(pace, "monotonic", lambda: self.now)
        monkeypatch.setattr(pace, "sleep", self.sleep)

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await anyio.lowlevel.checkpoint()


async def test_calls_and_tokens_of_a_minute_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Time(monkeypatch)
    by_calls = RateLimits({"*": Rate(requests="2/min")})
    llm = ScriptedLLM(["Yes."] * 3)
    for expected in (100, 100, 160):
        await Brain("react", llm=llm, hooks=[by_calls]).run("x")
        assert clock.now == expected

    by_tokens = RateLimits({"*": Rate(tokens="1000/min")})
    llm = ScriptedLLM([["Yes.", Usage(400, 200)]] * 3)
    for waited in (0, 0, 60):  # a call is known to have used 600 tokens when it has ended
        before = clock.now
        await Brain("react", llm=llm, hooks=[by_tokens]).run("x")
        assert clock.now - before == pytest.approx(waited)


async def test_tokens_of_all_attempts_of_a_call_count(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Time(monkeypatch)
    limits = RateLimits({"*": Rate(tokens="1000/min")})

    class Twice(LLM):
        model = "twice"

        async def stream(self, messages: Any, **_: Any) -> AsyncIterator[Any]:
            yield Usage(200, 100)  # of an attempt that failed
            yield "Yes."
            yield Usage(200, 200)

    for waited in (0, 0, 60):
        before = clock.now
        await Brain("react", llm=Twice(), hooks=[limits]).run("x")
        assert clock.now - before == pytest.approx(waited)


async def test_all_calls_wait_if_one_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Time(monkeypatch)
    monkeypatch.setattr(pace, "BACKOFF", 0.0)

    class Limited(LLM):
        model = "limited"
        refuses = True

        async def send(self, request: Any) -> AsyncIterator[Any]:
            if self.refuses:
                self.refuses = False
                raise LLMRateLimitError("Too many requests; please try again in 7s")
            yield "Yes."

        async def stream(self, messages: Any, **_: Any) -> AsyncIterator[Any]:
            for attempt in (1, 2):
                try:
                    request = ModelRequest(llm=self, messages=messages, attempt=attempt)
                    async for piece in model_attempt(request, self.send):
                        yield piece
                    return
                except LLMRateLimitError:
                    pass

    llm, limits = Limited(), RateLimits()
    assert (await Brain("react", llm=llm, hooks=[limits]).run("x")).answer == "Yes."
    assert clock.now == 107

    llm.refuses = True
    told = Brain("react", llm=ScriptedLLM([LLMRateLimitError("retry in 5s")]), hooks=[limits])
    with pytest.raises(LLMRateLimitError):
        await told.run("x")
    assert (await Brain("react", llm=ScriptedLLM(["A"]), hooks=[limits]).run("x")).answer == "A"
    assert clock.now == 112, "without attempts of its own too"


async def test_a_call_that_is_cancelled_after_a_refusal_lets_the_next_one_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pace, "BACKOFF", 0.0)
    refusing, limits = ScriptedLLM([LLMRateLimitError("retry in 0s")]), RateLimits()
    with pytest.raises(LLMRateLimitError):
        await Brain("react", llm=refusing, hooks=[limits]).run("refused")
    llm, first = Counting(refusing.model), anyio.CancelScope()

    async def run_first() -> None:
        with first:
            await Brain("react", llm=llm, hooks=[limits]).run("first")

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            group.start_soon(run_first)
            await anyio.wait_all_tasks_blocked()
            group.start_soon(Brain("react", llm=llm, hooks=[limits]).run, "second")
            await anyio.wait_all_tasks_blocked()
            assert llm.order == ["first"], "one call goes first"
            first.cancel()
            llm.go.set()
    assert llm.order == ["first", "second"]


async def test_calls_of_tools_are_limited() -> None:
    now = most = 0

    @tool
    async def search(what: str) -> str:
        """Search."""
        nonlocal now, most
        now += 1
        most = max(most, now)
        await anyio.lowlevel.checkpoint()
        now -= 1
        return what

    calls = [Action(name="search", args={"what": str(n)}) for n in range(6)]
    limits = RateLimits(tools={"search": Rate(at_once=2)})
    brain = Brain("react", tools=[search], llm=ScriptedLLM([calls, "Done."]), hooks=[limits])
    assert (await brain.run("x")).answer == "Done."
    assert most == 2


async def test_nothing_is_left_of_a_run() -> None:
    limits = RateLimits({"*": Rate(at_once=2)})
    brain = Brain("react", llm=ScriptedLLM(["Yes.", LLMServerError("down")]), hooks=[limits])
    await brain.run("x")
    with pytest.raises(LLMServerError):
        await brain.run("x")
    assert not limits._calls
    assert not limits._models
    (gate,) = limits._gates.values()
    assert gate.pace._begun == {}


def test_event_loops_in_threads_share_the_limits() -> None:
    limits = RateLimits({"*": Rate(at_once=1)})
    now, most, ready = 0, 0, threading.Barrier(4)

    class Slow(LLM):
        model = "slow"

        async def stream(self, messages: Any, **_: Any) -> AsyncIterator[Any]:
            nonlocal now, most
            now += 1
            most = max(most, now)
            await anyio.sleep(0.005)
            now -= 1
            yield "Yes."

    def run() -> None:
        ready.wait()
        for _ in range(3):
            Brain("react", llm=Slow(), hooks=[limits]).run_sync("x")

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert most == 1


async def test_a_refusal_wakes_calls_on_other_event_loops(monkeypatch: pytest.MonkeyPatch) -> None:
    gate, gone = Gate(Rate()), threading.Event()
    monkeypatch.setattr(pace, "BACKOFF", 0.0)
    gate.pace.refuse("a", 0.0)
    await gate.pace.wait("a")

    def wait() -> None:
        anyio.run(gate.pace.wait, "b")
        gone.set()

    thread = threading.Thread(target=wait)
    thread.start()
    while not gate.pace._asleep:
        await anyio.sleep(0.001)
    gate.pace.answer("a")
    await anyio.to_thread.run_sync(thread.join, 60)
    assert gone.is_set()


WRONG: dict[str, Any] = {
    "at_once": lambda: Rate(at_once=0),
    "requests": lambda: Rate(requests="often"),
    "tokens": lambda: Rate(tokens=(0, 1)),
    "no time": lambda: Rate(requests=5),  # type: ignore[arg-type]
    "half of it": lambda: Rate(tokens=(5,)),  # type: ignore[arg-type]
    "a text": lambda: Rate(tokens=("5", 1)),  # type: ignore[arg-type]
    "a list": lambda: RateLimits([]),  # type: ignore[arg-type]
    "of tools": lambda: RateLimits(tools=["search"]),  # type: ignore[arg-type]
    "a number": lambda: RateLimits({"*": 3}),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("make", WRONG.values(), ids=WRONG)
def test_what_is_no_rate_is_refused(make: Any) -> None:
    with pytest.raises(
        BrainDefinitionError,
        match=r"at least 1, or None|is not a rate|at least one call|give a Rate",
    ):
        make()
