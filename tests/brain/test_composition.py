"""Nets inside nets: paths, answers, forks, parallel branches that stream, fail and are cancelled."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum
from typing import Any, Literal

import anyio
import pytest

from agent_brain import (
    Brain,
    Limits,
    Memory,
    Message,
    MessagesMemory,
    Net,
    State,
    StopReason,
    react,
)
from agent_brain.errors import JournalError
from agent_brain.memories import RamJournal
from agent_brain.nets import Branch, Delegate, ParallelState, SubnetState
from agent_brain.states import (
    AnswerState,
    FunctionState,
    GuardedState,
    LLMAuthenticationError,
    LLMRateLimitError,
    LLMRefusalError,
    StateDefinitionError,
    StateTimeoutError,
    StreamItem,
    TextDelta,
)
from agent_brain.testing import FakeMemory, ScriptedLLM, run_state
from agent_brain.tools import Action
from tests.brain.nets import Endless, Fail, Hang, Say, Steps, add, single
from tests.support.clock import fake_clock

pytestmark = pytest.mark.anyio


async def events_of(brain: Brain) -> tuple[list[Any], Any]:
    events = []
    async with brain.stream("go") as run:
        async for event in run:
            events.append(event)
    return events, run.result


async def test_a_subnet_speaks_for_its_state_and_carries_the_path() -> None:
    inner = react(ScriptedLLM([[Action(name="add", args={"a": 1, "b": 2})], ["it is ", "3"]]))
    outer = Net({Steps.ONE: SubnetState(inner, on_done=Steps.TWO), Steps.TWO: Say()})
    events, result = await events_of(Brain(outer, tools=[add]))
    assert result.answer == "it is 3"
    ways = [(e.state, e.path) for e in events if e.kind == "state_entered"]
    assert ways == [
        ("ONE", ()),
        ("REASONING", ("ONE",)),
        ("ACTION", ("ONE",)),
        ("REASONING", ("ONE",)),
        ("ANSWER", ("ONE",)),
        ("TWO", ()),
    ]
    assert [m.content for m in result.messages] == ["go", "", "3", "it is 3"]


async def test_a_subnet_on_a_fork_leaves_only_its_answer() -> None:
    llm = ScriptedLLM([[Action(name="add", args={"a": 1, "b": 2})], "3"])
    outer = single(SubnetState(react(llm), fork=True, goal="a smaller question"))
    result = await Brain(outer, tools=[add]).run("go")
    assert [m.content for m in result.messages] == ["go", "3"]
    assert [m.content for m in llm.calls[0].messages][-2:] == ["go", "a smaller question"]


async def test_limits_reach_into_a_subnet() -> None:
    outer = Net(
        {Steps.ONE: SubnetState(single(Endless()), on_done=Steps.TWO), Steps.TWO: Say("no")}
    )
    result = await Brain(outer, limits=Limits(max_steps=3)).run("go")
    assert result.stop_reason is StopReason.MAX_STEPS


def turn_taker(letters: str, mine: list[anyio.Event], before: list[anyio.Event]) -> Net:
    """Yields each letter after the previous event, so that two of them must alternate."""

    async def speak(memory: Memory) -> AsyncIterator[str]:
        for letter, said, turn in zip(letters, mine, before, strict=True):
            await turn.wait()
            yield letter
            said.set()

    return single(FunctionState(speak))


async def test_tokens_of_two_branches_interleave_live() -> None:
    a, b = [anyio.Event() for _ in range(3)], [anyio.Event() for _ in range(3)]
    start = anyio.Event()
    start.set()
    branches = {"a": turn_taker("abc", a, [start, *b[:2]]), "b": turn_taker("xyz", b, a)}
    seen = []
    async with Brain(single(ParallelState(branches))).stream("go") as run:
        async for event in run:
            if isinstance(event, TextDelta) and event.thought:
                seen.append((event.path, event.text))
    assert seen == [(("ONE", n), c) for n, c in zip("ababab", "axbycz", strict=True)]
    assert run.result.answer == "a: abc\n\nb: xyz"


async def test_tokens_of_a_branch_arrive_while_another_still_works() -> None:
    release = anyio.Event()

    async def waits(memory: Memory) -> str:
        await release.wait()
        return "late"

    branches = {"slow": single(FunctionState(waits)), "quick": single(Say("early"))}
    seen = []
    async with Brain(single(ParallelState(branches))).stream("go") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                seen.append(event.text)
                release.set()
    assert seen == ["early", "late", "slow: late\n\nquick: early"]


async def test_without_a_block_around_it_answer_still_runs_branches() -> None:
    brain = Brain(single(ParallelState([single(Say("x")), single(Say("y"))])))
    assert [chunk async for chunk in brain.answer("go")] == ["0: x\n\n1: y"]


async def test_branches_work_on_memories_of_their_own() -> None:
    async def notes(memory: Memory) -> None:
        await memory.update([Message.assistant("mine")])
        memory.control.scratch["seen"] = len(await memory.dump())

    brain = Brain(single(ParallelState([single(FunctionState(notes))] * 2, join=lambda m, b: None)))
    result = await brain.run("go")
    assert [m.content for m in result.messages] == ["go"]
    assert brain.memory.control.scratch == {}


@pytest.mark.parametrize("on_error", ["cancel", "report"])
async def test_a_failing_branch(on_error: Any) -> None:
    noted: list[str] = []
    others: Net = single(Hang(noted)) if on_error == "cancel" else single(Say("fine"))
    state = ParallelState({"bad": single(Fail()), "good": others}, on_error=on_error)
    brain = Brain(single(state))
    if on_error == "cancel":
        with pytest.raises(KeyError, match="a bug"):
            await brain.run("go")
        assert noted == ["left", "exited"]
        assert [m.content for m in await brain.memory.context()] == ["go"]
    else:
        result = await brain.run("go")
        assert result.answer == "bad: failed: 'a bug'\n\ngood: fine"


async def test_cancelling_a_run_stops_every_branch() -> None:
    noted: list[str] = []
    branches = [single(Hang(noted)), single(Hang(noted))]
    brain = Brain(single(ParallelState(branches)), limits=Limits(timeout=0.05))
    with fake_clock():
        result = await brain.run("go")
    assert result.stop_reason is StopReason.TIMEOUT
    assert noted == ["left", "exited"] * 2 or sorted(noted) == ["exited"] * 2 + ["left"] * 2


async def test_leaving_the_stream_stops_every_branch() -> None:
    noted: list[str] = []
    brain = Brain(single(ParallelState([single(Hang(noted)), single(Hang(noted))])))
    begun = 0
    async with brain.stream("go") as run:
        async for event in run:
            begun += isinstance(event, TextDelta)
            if begun == 2:
                break
    assert sorted(noted) == ["exited", "exited", "left", "left"]
    assert run.result.stop_reason is StopReason.CANCELLED


async def test_an_error_of_the_consumer_is_not_wrapped() -> None:
    brain = Brain(single(ParallelState([single(Say("x")), single(Say("y"))])))

    async def consume() -> None:
        async with brain.stream("go") as run:
            async for _ in run:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await consume()


async def test_parallel_inside_a_subnet_inside_a_branch() -> None:
    deep = single(ParallelState({"l": single(Say("left")), "r": single(Say("right"))}))
    middle = single(SubnetState(deep))
    events, result = await events_of(
        Brain(single(ParallelState({"m": middle, "n": single(Say("n"))})))
    )
    assert result.answer == "m: l: left\n\nr: right\n\nn: n"
    assert ("ONE", "m", "ONE", "ONE", "l") in {e.path for e in events}


async def test_a_resumed_run_continues_inside_the_subnet() -> None:
    calls: list[str] = []

    def state(name: str, fails: int = 0) -> FunctionState:
        async def work(memory: Memory) -> str:
            calls.append(name)
            if calls.count(name) <= fails:
                raise OSError(name)
            return name

        return FunctionState(work, on_done=Steps.TWO if name == "first" else None)

    inner = Net({Steps.ONE: state("first"), Steps.TWO: state("second", fails=1)})
    brain = Brain(single(SubnetState(inner)))
    with pytest.raises(OSError, match="second"):
        await brain.run("go")
    assert (await brain.resume()).answer == "second"
    assert calls == ["first", "second", "second"]


class Two(Enum):
    A = 1
    B = 2


async def test_guards_call_their_hooks_in_order() -> None:
    order: list[str] = []

    async def before(memory: Memory) -> None:
        order.append("before")

    guarded = GuardedState(Say("x"), before=before, after=lambda memory: order.append("after"))
    result = await Brain(single(guarded)).run("go")
    assert (result.answer, order) == ("x", ["before", "after"])


async def test_a_guarded_state_is_tried_again() -> None:
    tries: list[int] = []

    async def shaky(memory: Memory) -> str:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("not yet")
        return "now"

    result = await Brain(single(GuardedState(FunctionState(shaky), retries=2, backoff=0))).run("go")
    assert (result.answer, len(tries)) == ("now", 3)


def failing(error: Exception, tries: list[int]) -> FunctionState:
    async def fail(memory: Memory) -> str:
        tries.append(1)
        raise error

    return FunctionState(fail)


async def is_busy(error: Exception) -> bool:
    return "busy" in str(error)


@pytest.mark.parametrize(
    ("error", "retry_on", "expected"),
    [
        (OSError("gone"), None, 3),
        (LLMRateLimitError("slow down"), None, 3),
        (TypeError("a bug"), None, 1),
        (KeyError("a bug"), None, 1),
        (LLMAuthenticationError("no key"), None, 1),
        (LLMRefusalError("refusal"), None, 1),
        (KeyError("missing"), KeyError, 3),
        (KeyError("missing"), (OSError, LookupError), 3),
        (OSError("gone"), KeyError, 1),
        (OSError("busy"), lambda error: "busy" in str(error), 3),
        (OSError("gone"), lambda error: "busy" in str(error), 1),
        (OSError("busy"), is_busy, 3),
    ],
)
async def test_which_errors_are_tried_again(error: Any, retry_on: Any, expected: int) -> None:
    tries: list[int] = []
    state = GuardedState(failing(error, tries), retries=2, backoff=0, retry_on=retry_on)
    with pytest.raises(type(error)):
        await Brain(single(state)).run("go")
    assert len(tries) == expected


async def test_a_guarded_state_that_has_said_something_is_not_tried_again() -> None:
    tries: list[int] = []

    async def shaky(memory: Memory) -> AsyncIterator[StreamItem]:
        tries.append(1)
        yield "Half"
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await Brain(single(GuardedState(FunctionState(shaky), retries=2, backoff=0))).run("go")
    assert len(tries) == 1


@pytest.mark.parametrize("retry_on", [(), "OSError", KeyboardInterrupt, (OSError, 5), OSError("x")])
def test_what_is_not_an_error_cannot_be_retried_on(retry_on: Any) -> None:
    with pytest.raises(StateDefinitionError, match="retry_on="):
        GuardedState(Say("x"), retry_on=retry_on)


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_guard_without_time_is_refused(timeout: float) -> None:
    with pytest.raises(StateDefinitionError, match="above 0 seconds"):
        GuardedState(Say("x"), timeout=timeout)


def test_a_backoff_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(StateDefinitionError, match="backoff="):
        GuardedState(Say("x"), retries=1, backoff=float("nan"))


async def test_the_usage_of_a_failed_call_does_not_forbid_a_retry() -> None:
    llm = ScriptedLLM([LLMRateLimitError("slow down"), "Yes."])
    state = GuardedState(AnswerState(llm, ask=True), retries=1, backoff=0)
    result = await Brain(single(state)).run("go")
    assert (result.answer, result.usage.requests) == ("Yes.", 2)


async def test_a_parallel_state_may_end_with_its_first_branch() -> None:
    noted: list[str] = []
    state = ParallelState({"slow": single(Hang(noted)), "fast": single(Say("fast"))}, until="first")
    brain = Brain(single(state))
    with anyio.fail_after(60):
        result = await brain.run("go")
    assert (result.answer, result.stop_reason, noted[:1]) == (
        "fast",
        StopReason.DONE,
        ["left"],
    )
    assert [m.content for m in result.messages] == ["go", "fast"]


async def test_the_join_of_a_race_gets_the_winner_and_the_failed() -> None:
    got: list[str] = []

    def join(memory: Memory, branches: Any) -> str:
        got.extend(branch.name for branch in branches)
        return "joined"

    nets = {"slow": single(Hang([])), "fails": single(Fail()), "fast": single(Say("fast"))}
    state = ParallelState(nets, until="first", on_error="report", join=join)
    with anyio.fail_after(60):
        assert (await Brain(single(state)).run("go")).answer == "joined"
    assert set(got) <= {"fails", "fast"}
    assert "fast" in got


@pytest.mark.parametrize("fork", [False, True])
async def test_a_subnet_that_says_nothing_leaves_the_answer(fork: bool) -> None:
    silent = SubnetState(single(Say()), fork=fork)
    net = Net({Steps.ONE: Say("Yes.", then=Steps.TWO), Steps.TWO: silent})
    assert (await Brain(net).run("go")).answer == "Yes."


class Noting(Say):
    """Records its text as a message, and may say it."""

    def __init__(self, text: str, then: Steps | None = None, *, aloud: bool = False) -> None:
        super().__init__(text, then=then)
        self.text, self.aloud = text, aloud

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield self.text if self.aloud else ""
        await memory.update([Message.assistant(self.text)])


async def test_the_answer_of_a_resumed_run_was_said() -> None:
    said = Noting("Yes.", then=Steps.TWO, aloud=True)
    states = {Steps.ONE: said, Steps.TWO: Noting("noted")}
    brain = Brain(Net(states), limits=Limits(max_steps=1))
    assert (await brain.run("go")).stop_reason == StopReason.MAX_STEPS
    brain.limits = Limits()
    assert (await brain.resume()).answer == "Yes."
    assert (await brain.resume()).answer == "Yes."  # it has ended


class Failing(RamJournal):
    """A journal of which one write fails."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.left = fails_at

    async def append(self, *args: Any, **options: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise JournalError("the disk is full")
        return await super().append(*args, **options)


@pytest.mark.parametrize("fails_at", [2, 3, 4, 5])
async def test_the_answer_of_a_subnet_that_continues_may_be_in_its_messages(fails_at: int) -> None:
    said = Noting("Inside.", then=Steps.TWO, aloud=True)
    inner = SubnetState(Net({Steps.ONE: said, Steps.TWO: Say()}))
    net = Net({Steps.ONE: Say("Before.", then=Steps.TWO), Steps.TWO: inner})
    journal = Failing(fails_at)
    with pytest.raises(JournalError):
        await Brain(net, MessagesMemory(journal=journal, session="go")).run("go")
    resumed = await Brain(net, MessagesMemory(journal=journal, session="go")).resume()
    assert resumed.answer == "Inside."


async def test_the_answer_of_a_branch_is_its_own_also_if_it_continues() -> None:
    silent = Net({Steps.ONE: Say(then=Steps.TWO), Steps.TWO: Say()})
    parallel = ParallelState({"silent": silent}, join=lambda _, ended: f"[{ended[0].answer}]")
    brain = Brain(Net({Steps.ONE: Noting("noted", then=Steps.TWO), Steps.TWO: parallel}))
    async with brain.stream("go") as run:
        async for event in run:
            if event.path and event.kind == "state_entered":
                run.pause()
    assert run.result.stop_reason == StopReason.PAUSED
    assert (await brain.resume()).answer == "[]"


async def test_no_branch_of_a_race_begins_when_another_has_won() -> None:
    nets = {"won": react(ScriptedLLM(["Yes."])), "late": react(ScriptedLLM([]))}
    net = single(ParallelState(nets, until="first", max_concurrency=1))
    async with Brain(net, limits=Limits(max_requests=1)).stream("go") as run:
        paths = {event.path async for event in run}
    assert (run.result.answer, run.result.stop_reason) == ("Yes.", StopReason.DONE)
    assert paths == {(), ("ONE", "won")}


async def test_a_race_that_nobody_ends_reports_the_failures() -> None:
    state = ParallelState([single(Fail()), single(Fail())], until="first", on_error="report")
    assert (await Brain(single(state)).run("go")).answer.count("failed: 'a bug'") == 2


def test_a_race_is_all_or_first() -> None:
    with pytest.raises(StateDefinitionError, match="until='any'"):
        ParallelState([single(Say("x"))], until="any")  # type: ignore[arg-type]


async def test_a_guarded_state_that_has_spoken_is_not_tried_again() -> None:
    with pytest.raises(KeyError):
        await Brain(single(GuardedState(Fail(), retries=5, backoff=0))).run("go")


async def test_an_error_hook_may_swallow_the_error() -> None:
    seen: list[str] = []

    def note(memory: Memory, error: Exception) -> bool:
        seen.append(str(error))
        return True

    result = await Brain(single(GuardedState(Fail(), on_error=note))).run("go")
    assert (result.stop_reason, seen) == (StopReason.DONE, ["'a bug'"])


async def test_a_guarded_state_that_takes_too_long_is_stopped() -> None:
    noted: list[str] = []
    with fake_clock(), pytest.raises(StateTimeoutError, match=r"Hang took longer than 0\.02 s"):
        await Brain(single(GuardedState(Hang(noted), timeout=0.02))).run("go")
    assert noted[0] == "left"


async def test_a_guarded_state_has_the_edges_of_the_state_inside() -> None:
    net = Net({Two.A: GuardedState(Say("x"), retries=1)})
    assert net.edges == {Two.A: (None,)}


async def test_a_net_is_varied_without_writing_it_again() -> None:
    net = Net({Steps.ONE: Say("one", then=Steps.TWO), Steps.TWO: Say("two")})
    changed = net | {Steps.TWO: Say("three")}
    assert (await Brain(changed).run("go")).answer == "three"
    assert (await Brain(net).run("go")).answer == "two"
    memory = MessagesMemory()
    assert (await Brain(net.replace(initial=Steps.ONE, name="other"), memory).run("go")).steps == 2


class SleepsForever(Say):
    async def run(self, memory: Any) -> AsyncIterator[str]:
        yield "begun "
        await anyio.sleep_forever()


@pytest.mark.parametrize(
    "inside",
    [
        lambda: SubnetState(single(SleepsForever())),
        lambda: ParallelState([single(SleepsForever()), single(SleepsForever())]),
        lambda: SubnetState(single(SubnetState(single(SleepsForever())))),
        lambda: GuardedState(SubnetState(single(SleepsForever())), timeout=3600),
    ],
)
async def test_the_time_of_a_guard_holds_in_delegated_nets(inside: Any) -> None:
    brain = Brain(single(GuardedState(inside(), timeout=0.05)))
    with fake_clock(), anyio.fail_after(60), pytest.raises(StateTimeoutError):
        await brain.run("go")


async def test_an_inner_guard_is_the_one_that_runs_out() -> None:
    inner = GuardedState(SubnetState(single(SleepsForever())), timeout=0.05)
    brain = Brain(single(GuardedState(inner, timeout=3600, on_error=lambda memory, error: True)))
    with fake_clock(), anyio.fail_after(60):
        assert (await brain.run("go")).stop_reason == "done"


@pytest.mark.parametrize(
    "inside",
    [lambda: SubnetState(single(Fail())), lambda: ParallelState([single(Fail()), single(Fail())])],
)
async def test_an_error_of_a_delegated_net_reaches_the_guard_of_the_state(inside: Any) -> None:
    seen: list[Exception] = []

    def swallow(memory: Any, error: Exception) -> bool:
        seen.append(error)
        return True

    guarded = GuardedState(inside(), on_error=swallow)
    result = await Brain(single(guarded)).run("go")
    assert (result.stop_reason, [type(error) for error in seen]) == ("done", [KeyError])
    seen.clear()
    await run_state(guarded, FakeMemory("go"))
    assert [type(error) for error in seen] == [KeyError]


class Copes(State):
    """Yields the outcome of the net that it delegates to, then more text."""

    def __init__(self) -> None:
        self.net = single(Fail())

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        try:
            yield Delegate([Branch("inner", self.net, memory)])
        except KeyError as error:
            yield f"failed: {error} "
        yield "and "
        yield "on"

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


async def test_a_state_catches_the_error_of_a_net_it_delegates_to() -> None:
    result = await Brain(single(Copes())).run("go")
    assert (result.stop_reason, result.answer) == ("done", "failed: 'a bug' and on")
    done = await run_state(Copes(), FakeMemory("go"))
    assert done.text.endswith("failed: 'a bug' and on")


@pytest.mark.parametrize("pieces", [1, 2, 3])
async def test_and_can_be_left_afterwards(pieces: int) -> None:
    brain = Brain(single(Copes()))
    async with brain.stream("go") as run:
        async for event in run:
            pieces -= isinstance(event, TextDelta)
            if pieces < 0:
                break
    assert not brain.memory.busy
