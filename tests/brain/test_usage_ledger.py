"""A usage ledger counts model calls by run, session, user and process, and keeps to budgets."""

from __future__ import annotations

import gc
import json
import logging
import threading
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain import (
    Brain,
    Limits,
    Memory,
    MessagesMemory,
    Net,
    ParallelState,
    SQLiteJournal,
    State,
    StopReason,
    SubnetState,
    UsageBudget,
    UsageLedger,
    react,
)
from agent_brain.errors import BrainDefinitionError, BrainUseError, LLMServerError
from agent_brain.memories import RamJournal
from agent_brain.nets import self_consistency
from agent_brain.states import LLM, Hook, ModelRequest, ModelResponse, Usage
from agent_brain.states.concurrency import Together
from agent_brain.states.hooks import HookRequest
from agent_brain.states.models.llm import Piece
from agent_brain.states.work import Work
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from agent_brain.usage.ledger import Payer
from tests.brain.nets import Say, Steps, add, single

anyio_tests = pytest.mark.anyio
DAY = timedelta(days=1)


class Meter(LLM):
    """A model that says "Hello.", uses 3 tokens and costs a cent."""

    def __init__(self, usage: Usage | None = None) -> None:
        self.model = "meter"
        self.usage = usage or Usage(2, 1, cost=0.01)
        self.calls = 0

    async def stream(
        self, messages: Sequence[Any], *, tools: Sequence[Any] = (), output_type: Any = None
    ) -> AsyncIterator[Piece]:
        self.calls += 1
        yield "Hello."
        yield self.usage


class ManualClock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 1, 23, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now


def asks(*, cost: float | None = 0.01, args: dict[str, Any] | None = None) -> list[Any]:
    return [Action(name="add", args=args or {"a": 1, "b": 1}), Usage(2, 1, cost=cost)]


def user_of(request: HookRequest) -> str | None:
    user: str | None = request.deps
    return user


def pay(ledger: UsageLedger, user: str | None, usage: Usage, *, run: str = "run") -> None:
    """Charge ``usage`` to a user."""
    Payer(ledger, run, run, user).spend(usage)


# What is counted


@anyio_tests
async def test_a_run_is_counted_as_its_result_counts_it() -> None:
    ledger = UsageLedger()
    llm = ScriptedLLM([asks(), ["2", Usage(5, 1, cost=0.02, cached_tokens=4)]])
    result = await Brain(react(llm), tools=[add], hooks=[ledger]).run("1 + 1?")

    counted = ledger.usage(run=result.run_id)

    assert result.usage == Usage(
        counted.input_tokens,
        counted.output_tokens,
        counted.cost,
        counted.requests,
        cached_tokens=counted.cached_tokens,
    )
    assert (counted.input_tokens, counted.cached_tokens, counted.requests) == (7, 4, 2)


@anyio_tests
async def test_sessions_of_a_tenant_are_counted_apart_and_together() -> None:
    ledger, journal = UsageLedger(), RamJournal()
    brain = Brain(react(Meter()), hooks=[ledger])
    for session in ("a", "a", "b"):
        memory = MessagesMemory(journal=journal, session=session, tenant="ann")
        await brain.over(memory).run("Hello!")

    assert ledger.usage(session="a", user="ann").requests == 2
    assert ledger.usage(session="b", user="ann").requests == 1
    assert ledger.usage(user="ann").requests == 3
    assert ledger.usage(session="a").requests == 0  # of nobody


@anyio_tests
async def test_two_users_at_once_do_not_mix() -> None:
    ledger = UsageLedger(who=user_of)
    brain = Brain(react(Meter()), hooks=[ledger])

    async def ask(user: str, times: int) -> None:
        for _ in range(times):
            await brain.over(MessagesMemory()).run("Hello!", deps=user)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "ann", 5)
        tasks.start_soon(ask, "bob", 3)

    assert {user: used.requests for user, used in ledger.by_user().items()} == {"ann": 5, "bob": 3}
    assert ledger.usage().requests == 8


@anyio_tests
async def test_branches_are_counted() -> None:
    ledger = UsageLedger()
    llm = Meter()
    result = await Brain(self_consistency(llm, paths=3), hooks=[ledger]).run("Hello?")

    assert ledger.usage(run=result.run_id).requests == llm.calls >= 3


@anyio_tests
async def test_a_ledger_of_an_inner_net_counts_that_net() -> None:
    of_inner, of_brain = UsageLedger(), UsageLedger()
    inner = Net({Steps.ONE: Several(Meter(), at_once=False)}, hooks=[of_inner])
    net = Net(
        {
            Steps.ONE: Several(Meter(), at_once=True, then=Steps.TWO),
            Steps.TWO: SubnetState(inner),
        },
    )
    await Brain(net, hooks=[of_brain]).run("Hello?")

    assert (of_inner.usage().requests, of_brain.usage().requests) == (5, 10)


@anyio_tests
async def test_a_ledger_that_is_given_twice_counts_once() -> None:
    ledger = UsageLedger()
    helper = Brain(react(Meter()), hooks=[ledger]).as_tool("helper", "Helps.")
    llm = ScriptedLLM([[Action(name="helper", args={"task": "help"}), Usage()], ["Done.", Usage()]])
    await Brain(react(llm), tools=[helper], hooks=[ledger, ledger]).run("Hello?")

    assert ledger.usage().requests == 3


@anyio_tests
async def test_a_call_that_failed_is_counted() -> None:
    ledger = UsageLedger()
    llm = ScriptedLLM([["Hel", Usage(4, 1), LLMServerError("down")]])
    with pytest.raises(LLMServerError):
        await Brain(react(llm), hooks=[ledger]).run("Hello?")

    assert (ledger.usage().requests, ledger.usage().total_tokens) == (1, 5)


@anyio_tests
async def test_a_call_that_was_left_is_counted() -> None:
    ledger = UsageLedger()
    brain = Brain(react(ScriptedLLM([["Hel", "lo", Usage(4, 1)]])), hooks=[ledger])
    async with brain.stream("Hello?") as run:
        async for event in run:
            if event.kind == "text_delta":
                break

    assert ledger.usage().requests == 1
    assert ledger.usage().unpriced_requests == 1


@anyio_tests
async def test_an_unknown_price_does_not_hide_the_known_cost() -> None:
    ledger = UsageLedger()
    llm = ScriptedLLM([asks(cost=0.25), ["2", Usage(2, 1)]])
    await Brain(react(llm), tools=[add], hooks=[ledger]).run("1 + 1?")

    used = ledger.usage()

    assert (used.cost, used.known_cost, used.unpriced_requests) == (None, 0.25, 1)


def test_nothing_was_used_by_unknown_runs_and_users() -> None:
    ledger = UsageLedger()
    for used in (ledger.usage(), ledger.usage(run="x"), ledger.usage(user="x")):
        assert (used.requests, used.total_tokens, used.cost) == (0, 0, 0.0)


# Budgets


@anyio_tests
@pytest.mark.parametrize(
    "budget",
    [
        UsageBudget("run", tokens=6),
        UsageBudget("session", cost=0.02),
        UsageBudget("user", requests=2),
        UsageBudget("process", tokens=5, per=DAY),
    ],
    ids=lambda budget: budget.scope,
)
async def test_a_model_call_is_not_begun_when_a_budget_is_used_up(budget: UsageBudget) -> None:
    ledger = UsageLedger([UsageBudget("user", cost=100), budget])
    llm = ScriptedLLM([asks(), asks(args={"a": 2, "b": 3}), "never"])
    result = await Brain(react(llm), tools=[add], hooks=[ledger]).run("go")

    assert result.stop_reason is StopReason.BUDGET
    assert len(llm.calls) == 2
    assert result.messages[-1].content == "5"  # the tool that was requested has run


@anyio_tests
async def test_an_answer_is_kept_if_its_call_uses_up_the_budget() -> None:
    ledger = UsageLedger([UsageBudget("process", tokens=3)])
    result = await Brain(react(Meter()), hooks=[ledger]).run("go")

    assert (result.stop_reason, result.answer) == (StopReason.DONE, "Hello.")


@anyio_tests
async def test_a_run_is_ended_before_its_first_call() -> None:
    ledger = UsageLedger([UsageBudget("process", requests=1)])
    llm = Meter()
    brain = Brain(react(llm), hooks=[ledger])
    await brain.run("go")
    events = []
    async with brain.stream("again") as run:
        events = [event.kind async for event in run]

    assert events == ["run_started", "state_entered", "state_exited", "run_finished"]
    assert (run.result.stop_reason, run.result.steps, llm.calls) == ("budget", 0, 1)


@anyio_tests
async def test_a_run_continues_once_something_is_left_again() -> None:
    clock = ManualClock()
    ledger = UsageLedger([UsageBudget("user", tokens=3, per=DAY)], clock=clock)
    llm = ScriptedLLM([asks(), ["2", Usage(1, 1)]])
    brain = Brain(react(llm), tools=[add], hooks=[ledger])
    assert (await brain.run("1 + 1?")).stop_reason is StopReason.BUDGET
    assert (await brain.resume()).stop_reason is StopReason.BUDGET

    clock.now += DAY * 1.1
    result = await brain.resume()

    assert (result.stop_reason, result.answer) == (StopReason.DONE, "2")
    assert ledger.usage(run=result.run_id).requests == result.usage.requests == 2


@anyio_tests
async def test_a_stored_run_is_resumed_on_another_ledger(tmp_path: Any) -> None:
    llm = ScriptedLLM([asks(), ["2", Usage(1, 1)]])
    for tokens, expected in ((3, StopReason.BUDGET), (100, StopReason.DONE)):
        ledger = UsageLedger([UsageBudget("session", tokens=tokens)])
        async with MessagesMemory(journal=SQLiteJournal(tmp_path / "run.db")) as memory:
            brain = Brain(react(llm), memory, tools=[add], hooks=[ledger])
            result = await (brain.run("1 + 1?") if tokens == 3 else brain.resume())
        assert result.stop_reason is expected


@anyio_tests
async def test_the_budget_of_one_user_does_not_stop_another() -> None:
    ledger = UsageLedger([UsageBudget("user", requests=1)], who=user_of)
    brain = Brain(react(Meter()), hooks=[ledger])
    ends = [
        (await brain.over(MessagesMemory()).run("Hello!", deps=user)).stop_reason
        for user in ("ann", "ann", "bob", None, None)
    ]

    assert ends == ["done", "budget", "done", "done", "budget"]
    assert ledger.used_up(user="ann") == UsageBudget("user", requests=1)
    assert ledger.used_up(user="eve") is None


@anyio_tests
async def test_memories_without_a_session_have_budgets_of_their_own() -> None:
    ledger = UsageLedger([UsageBudget("session", requests=1)])
    brain = Brain(react(Meter()), hooks=[ledger])
    first, second = MessagesMemory(), MessagesMemory()
    ends = [
        (await brain.over(memory).run("Hello!")).stop_reason for memory in (first, second, first)
    ]

    assert ends == ["done", "done", "budget"]


@anyio_tests
async def test_a_memory_that_is_gone_leaves_nothing_behind() -> None:
    ledger = UsageLedger()
    brain = Brain(react(Meter()), hooks=[ledger])
    for _ in range(3):
        await brain.over(MessagesMemory()).run("Hello!")
    del brain
    gc.collect()

    assert ledger._unnamed == {}


@anyio_tests
async def test_branches_end_with_their_run() -> None:
    ledger = UsageLedger([UsageBudget("run", requests=3)])
    llms = [ScriptedLLM([asks(), ["2", Usage(1, 1)]]) for _ in range(3)]
    net = single(ParallelState([react(llm) for llm in llms]))
    brain = Brain(net, tools=[add], hooks=[ledger])
    result = await brain.run("1 + 1?")
    assert (result.stop_reason, [len(llm.calls) for llm in llms]) == (StopReason.BUDGET, [1, 1, 1])

    brain.hooks = ()
    for llm in llms:
        llm.turns.append(["2", Usage(1, 1)])
    assert (await brain.resume()).stop_reason is StopReason.DONE


@anyio_tests
async def test_a_brain_used_as_a_tool_ends_with_its_caller() -> None:
    ledger = UsageLedger([UsageBudget("run", requests=1)])
    inner = Meter()
    helper = Brain(react(inner)).as_tool("helper", "Helps.")
    llm = ScriptedLLM([[Action(name="helper", args={"task": "help"}), Usage(1, 1)], "Done."])
    brain = Brain(react(llm), tools=[helper], hooks=[ledger])
    result = await brain.run("Hello?")
    assert (result.stop_reason, inner.calls) == (StopReason.BUDGET, 0)

    brain.hooks = ()
    assert (await brain.resume()).stop_reason is StopReason.DONE


class Several(State):
    """Calls a model several times at once, or one after the other, whatever becomes of it."""

    def __init__(self, llm: LLM, *, at_once: bool, then: Steps | None = None) -> None:
        self.llm = llm
        self.at_once = at_once
        self.then = then

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        calls = [self.llm.call(await memory.context()) for _ in range(5)]
        together: Together[str] = Together(calls, max_concurrency=1)
        works: Sequence[Work] = [together] if self.at_once else calls
        for work in works:
            try:
                yield work
            except Exception:
                yield "That failed. "

    async def next_state(self, memory: Memory) -> Enum | None:
        return self.then

    def targets(self) -> tuple[Enum | None]:
        return (self.then,)


@anyio_tests
@pytest.mark.parametrize("at_once", [True, False])
async def test_calls_of_one_step_are_not_begun_either(at_once: bool) -> None:
    ledger = UsageLedger([UsageBudget("process", requests=2)])
    llm = Meter()
    result = await Brain(single(Several(llm, at_once=at_once)), hooks=[ledger]).run("go")

    assert (result.stop_reason, llm.calls) == (StopReason.BUDGET, 2)
    assert "failed" not in result.answer


@anyio_tests
async def test_no_fallback_state_runs() -> None:
    ledger = UsageLedger([UsageBudget("process", requests=1)])
    states = {Steps.ONE: Several(Meter(), at_once=False), Steps.TWO: Say("fallback")}
    result = await Brain(Net(states, fallback=Steps.TWO), hooks=[ledger]).run("go")

    assert (result.stop_reason, result.answer) == (StopReason.BUDGET, "Hello.")


@anyio_tests
async def test_calls_in_progress_are_completed() -> None:
    ledger = UsageLedger([UsageBudget("process", requests=1)])
    begun, go_on = anyio.Event(), anyio.Event()

    class Slow(Meter):
        async def stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[Piece]:
            begun.set()
            await go_on.wait()
            async for piece in super().stream(*args, **kwargs):
                yield piece

    slow, ends = Brain(react(Slow()), hooks=[ledger]), []

    async def run_slow() -> None:
        ends.append((await slow.run("go")).answer)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run_slow)
        await begun.wait()
        await Brain(react(Meter()), hooks=[ledger]).run("go")
        assert ledger.used_up() is not None
        go_on.set()

    assert ends == ["Hello."]


@anyio_tests
async def test_limits_and_other_hooks_apply_as_well() -> None:
    seen = []

    class See(Hook):
        def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
            seen.append(response.text)

    ledger = UsageLedger([UsageBudget("process", requests=5)])
    llm = ScriptedLLM([asks(), "never"])
    brain = Brain(react(llm), tools=[add], hooks=[See(), ledger], limits=Limits(max_steps=1))

    assert (await brain.run("go")).stop_reason is StopReason.MAX_STEPS
    assert (seen, ledger.usage().requests) == ([""], 1)


@anyio_tests
async def test_a_cost_budget_warns_once_of_unknown_prices(caplog: Any) -> None:
    ledger = UsageLedger([UsageBudget("user", cost=1)])
    brain = Brain(react(Meter(Usage(1, 1, model="new"))), hooks=[ledger])
    with caplog.at_level(logging.WARNING):
        await brain.run("go")
        await brain.run("go")

    assert [r.message for r in caplog.records if "cannot count a call of 'new'" in r.message] == [
        caplog.records[0].message
    ]


# Time


def test_a_call_counts_for_the_time_of_the_budget_and_at_most_a_twelfth_longer() -> None:
    clock = ManualClock()
    ledger = UsageLedger([UsageBudget("user", tokens=3, per=DAY)], clock=clock)
    for minutes in range(0, 24 * 60, 37):
        clock.now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
        pay(ledger, user := f"user {minutes}", Usage(2, 1))
        clock.now += DAY
        assert ledger.used_up(user=user) is not None
        clock.now += DAY / 12 + timedelta(seconds=1)
        assert ledger.used_up(user=user) is None


def test_budgets_over_several_times_are_kept_apart() -> None:
    clock, hour = ManualClock(), timedelta(hours=1)
    budgets = [UsageBudget("user", requests=1, per=hour), UsageBudget("user", requests=2, per=DAY)]
    ledger = UsageLedger([*budgets, UsageBudget("user", requests=3)], clock=clock)
    found = []
    for wait in (2 * hour, 2 * hour, 2 * DAY):
        pay(ledger, "ann", Usage(1, 1))
        found.append(ledger.used_up(user="ann"))
        clock.now += wait
        found.append(ledger.used_up(user="ann"))

    assert found == [budgets[0], None, budgets[0], budgets[1], budgets[0], ledger.budgets[2]]


def test_a_clock_that_is_set_back_frees_nothing() -> None:
    clock = ManualClock()
    ledger = UsageLedger([UsageBudget("user", requests=2, per=DAY)], clock=clock)
    pay(ledger, "ann", Usage(1, 1))
    clock.now -= timedelta(hours=5)
    pay(ledger, "ann", Usage(1, 1))

    assert ledger.used_up(user="ann") is not None
    (account,) = [account for user, account in ledger.to_dict()["user"] if user == "ann"]
    (parts,) = account["windows"].values()
    assert len(parts) == 1  # in order, so that old ones are found


# Memory


def test_accounts_are_bounded_and_the_process_counts_all() -> None:
    ledger = UsageLedger(max_accounts=3)
    for number in range(10):
        pay(ledger, f"user {number}", Usage(1, 1), run=f"run {number}")

    assert list(ledger.by_user()) == ["user 7", "user 8", "user 9"]
    assert ledger.usage(run="run 6").requests == 0
    assert ledger.usage().requests == 10


def test_a_used_up_budget_outlives_newer_accounts() -> None:
    ledger = UsageLedger([UsageBudget("user", tokens=100)], max_accounts=3)
    for user in ("ann", "bob", "eve"):
        pay(ledger, user, Usage(100))
    for number in range(1000):
        pay(ledger, f"user {number}", Usage(1, 1))

    assert all(ledger.used_up(user=user) for user in ("ann", "bob", "eve"))
    assert len(ledger.by_user()) == 6


def test_an_account_that_was_set_aside_continues_to_count() -> None:
    clock = ManualClock()
    ledger = UsageLedger([UsageBudget("user", tokens=3, per=DAY)], max_accounts=1, clock=clock)
    for user in ("ann", "bob"):
        pay(ledger, user, Usage(3))
    clock.now += 2 * DAY
    assert ledger.used_up(user="ann") is None
    pay(ledger, "ann", Usage(1))

    assert ledger.usage(user="ann").total_tokens == 4
    assert list(ledger.by_user()) == ["ann"]  # that of bob was displaced, and had a budget left


@pytest.mark.parametrize("max_accounts", [1, 2, 3, 200])
def test_accounts_stay_bounded_if_all_have_used_up_their_budget(max_accounts: int) -> None:
    ledger = UsageLedger([UsageBudget("user", tokens=1)], max_accounts=max_accounts)
    for number in range(300):
        pay(ledger, f"user {number}", Usage(1, 1))
        assert ledger.used_up(user=f"user {number}") is not None

    assert len(ledger.by_user()) == min(300, 2 * max_accounts)


def test_the_parts_of_a_time_are_bounded() -> None:
    clock = ManualClock()
    ledger = UsageLedger([UsageBudget("process", tokens=1000, per=DAY)], clock=clock)
    for _ in range(500):
        pay(ledger, "ann", Usage(1, 1))
        clock.now += timedelta(minutes=30)

    ((_, account),) = ledger.to_dict()["process"]
    (parts,) = account["windows"].values()
    assert len(parts) == 13


# Saving


def test_a_restart_does_not_reset_budgets() -> None:
    clock, budgets = ManualClock(), [UsageBudget("user", tokens=3, per=DAY)]
    before = UsageLedger(budgets, clock=clock)
    pay(before, "ann", Usage(2, 1, cost=0.5, cached_tokens=1))
    pay(before, None, Usage(1, 1))
    after = UsageLedger(budgets, clock=clock)
    after.load(json.loads(json.dumps(before.to_dict())))

    assert after.to_dict() == before.to_dict()
    assert after.used_up(user="ann") == budgets[0]
    assert after.used_up() is None
    assert after.usage(session="run", user="ann").known_cost == 0.5


def test_a_ledger_with_fewer_accounts_loads_the_newest() -> None:
    before, after = UsageLedger(), UsageLedger(max_accounts=2)
    for user in ("ann", "bob", "eve"):
        pay(before, user, Usage(1, 1))
    after.load(before.to_dict())

    assert list(after.by_user()) == ["bob", "eve"]


def test_other_data_is_not_loaded() -> None:
    ledger = UsageLedger()
    pay(ledger, "ann", Usage(1, 1))
    with pytest.raises(BrainUseError, match=r"(?s)load\(\) takes what .*process: Field required"):
        ledger.load({"user": 3})

    assert ledger.usage().requests == 1


# Sums and threads

usages = st.builds(
    Usage,
    st.integers(0, 1000),
    st.integers(0, 1000),
    st.none() | st.integers(0, 8).map(lambda eighths: eighths / 8),
    st.integers(0, 3),
)


@given(st.lists(st.tuples(st.sampled_from(["ann", "bob", None]), usages)))
def test_the_users_together_are_the_process(calls: list[tuple[str | None, Usage]]) -> None:
    ledger = UsageLedger()
    for number, (user, usage) in enumerate(calls):
        pay(ledger, user, usage, run=f"run {number}")
    users, process = [*ledger.by_user().values()], ledger.usage()

    assert sum(used.known_cost for used in users) == process.known_cost
    assert sum(used.unpriced_requests for used in users) == process.unpriced_requests
    assert sum(users, Usage(requests=0, cost=0.0)) == process


def test_runs_in_several_threads_are_all_counted() -> None:
    ledger = UsageLedger([UsageBudget("process", requests=10_000)])

    def work() -> None:
        brain = Brain(react(Meter()), hooks=[ledger])
        for _ in range(20):
            brain.over(MessagesMemory()).run_sync("go")

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (ledger.usage().requests, ledger.by_user()[None].requests) == (80, 80)


# Wrong arguments


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scope": "team", "cost": 1}, "'team'.*'run', 'session', 'user', 'process'"),
        ({"scope": "user"}, "limits nothing"),
        ({"scope": "user", "cost": 0}, "cost=0"),
        ({"scope": "user", "tokens": -1}, "tokens=-1"),
        ({"scope": "user", "requests": "3"}, "requests='3'"),
        ({"scope": "user", "cost": 1, "per": 60}, "per=60.*timedelta"),
        ({"scope": "user", "cost": 1, "per": timedelta()}, "timedelta above 0"),
    ],
)
def test_a_wrong_budget_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BrainDefinitionError, match=message):
        UsageBudget(**options)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"budgets": ["user"]}, "give budgets"),
        ({"max_accounts": 0}, "max_accounts=0"),
        ({"budgets": UsageBudget("user", cost=1)}, "a list of budgets"),
        ({"who": "ann"}, "who='ann'"),
    ],
)
def test_a_wrong_ledger_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(BrainDefinitionError, match=message):
        UsageLedger(**arguments)


def test_a_run_is_not_asked_for_together_with_a_user() -> None:
    with pytest.raises(BrainUseError, match="leave them out"):
        UsageLedger().usage(run="run", user="ann")


@anyio_tests
async def test_a_user_that_is_not_a_text_ends_the_run() -> None:
    ledger = UsageLedger(who=lambda request: 7)  # type: ignore[arg-type, return-value]
    with pytest.raises(BrainDefinitionError, match="returned 7: return the user as a text"):
        await Brain(react(Meter()), hooks=[ledger]).run("go")
