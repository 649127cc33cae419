"""Whatever happens, a memory that trims shows whole groups, in order, within its limits."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import anyio
import pytest
from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st

from agent_brain.common.text import count_tokens
from agent_brain.memories import (
    LayeredMemory,
    Message,
    MessagesMemory,
    RamJournal,
    SummaryMemory,
    WindowedMemory,
)
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.views.groups import arranged
from agent_brain.memories.views.tokens import message_tokens
from agent_brain.memories.views.window import Window
from agent_brain.tools import Action
from tests.memories.windows.traces import TRACES, Step, check_budget, check_whole, play
from tests.support.thorough import examples

# Explaining a failure would run the shrunk example hundreds of times more.
few = settings(max_examples=examples(200), phases=[p for p in Phase if p is not Phase.explain])

LIMITS = st.tuples(st.none() | st.integers(1, 12), st.none() | st.integers(40, 3000))


def window_of(memory: WindowedMemory) -> Window:
    (view,) = memory.store.views
    assert isinstance(view, Window)
    return view


@few
@given(TRACES, LIMITS)
@example([Step("model", "x" * 9000, calls=3)], (None, 100))
@example([Step("goal", "x" * 9000), Step("model", "x" * 9000, calls=3)], (None, 300))
@example([Step("user", "a", pinned=True)] * 5 + [Step("user", "b")] * 3, (2, None))
def test_a_window_is_whole_and_within_its_limits(trace, limits) -> None:
    async def run() -> None:
        memory = WindowedMemory(max_messages=limits[0], max_tokens=limits[1])
        evicted: list[Message] = []
        memory.on_evict = evicted.extend

        async def check(told: list[Message]) -> None:
            shown, goal = await memory.context(), await memory.goal()
            check_whole(shown, told)
            check_budget(shown, told, goal, *limits)
            ids = {message.id for message in shown}
            assert ids >= {m.id for m in goal}, "the goal is not shown"
            gone = {m.id for m in evicted}
            assert not ids & gone
            assert {m.id for m in await memory.messages()} | gone == {m.id for m in told}
            assert not any(m.pinned for m in evicted), "a pinned message left"
            if not limits[1]:
                wanted = [m.content for m in arranged(told) if m.id in ids]
                assert [m.content for m in shown] == wanted

        await play(memory, trace, check)

    anyio.run(run)


@few
@given(TRACES, LIMITS)
def test_a_window_is_the_same_when_it_is_opened_again(trace, limits) -> None:
    async def run() -> None:
        journal = RamJournal()
        # like a journal on disk: it keeps what has left
        journal.persistent = True  # type: ignore[misc]

        def make() -> WindowedMemory:
            return WindowedMemory(max_messages=limits[0], max_tokens=limits[1], journal=journal)

        async def nothing(told: list[Message]) -> None: ...

        memory = make()
        told = await play(memory, trace, nothing)
        assert await make().context() == await memory.context()
        assert await make().goal() == await memory.goal()
        assert [m.id for m in await memory.history()] == [m.id for m in arranged(told)]

    anyio.run(run)


@few
@given(TRACES, st.integers(1, 12), st.none() | st.integers(60, 3000), st.integers(0, 3))
@example(
    [
        *[Step("user", "")] * 6,
        Step("model", "", pinned=True, calls=1, abandoned=True),
        Step("model", ""),
        Step("user", ""),
    ],
    1,
    None,
    0,
)
@example([*[Step("user", "")] * 7, Step("model", "", calls=1), *[Step("system", "")] * 3], 6, 60, 1)
@example(
    [
        *[Step("user", "")] * 10,
        Step("system", ""),
        *[Step("system", "汉字" * 20)] * 2,
        Step("model", "", calls=3),
    ],
    6,
    184,
    0,
)
def test_a_summary_leaves_whole_groups(trace, max_messages, max_tokens, failures) -> None:
    async def run() -> None:
        left = failures

        async def summarize(previous: str, messages: list[Message]) -> str:
            nonlocal left
            left -= 1
            if left >= 0:
                raise OSError("the model is away")
            return f"{previous}{len(messages)};"

        memory = SummaryMemory(
            summarize=summarize, max_messages=max_messages, max_tokens=max_tokens
        )

        async def check(told: list[Message]) -> None:
            shown, goal = await memory.context(), await memory.goal()
            beside = 0
            if memory.summary:
                [summary] = [m for m in shown if m.id == "summary"]
                shown.remove(summary)
                beside = message_tokens(summary, count_tokens)
            check_whole(shown, told)
            check_budget(shown, told, goal, max_messages, max_tokens, beside)
            assert {m.id for m in shown} >= {m.id for m in goal}
            summed = sum(int(n) for n in memory.summary.split(";") if n)
            assert summed + await memory.count() == len(told), "a message was lost"

        await play(memory, trace, check)

    anyio.run(run)


@few
@given(TRACES, st.integers(1, 8))
def test_layers_lose_nothing_and_show_nothing_twice(trace, max_messages) -> None:
    async def run() -> None:
        memory = LayeredMemory(WindowedMemory(max_messages=max_messages), MessagesMemory())

        async def check(told: list[Message]) -> None:
            ids = [message.id for message in await memory.context()]
            assert len(ids) == len(set(ids))
            assert {m.id for m in await memory.messages()} == {m.id for m in told}

        await play(memory, trace, check)

    anyio.run(run)


@few
@given(TRACES, LIMITS, st.randoms())
def test_deleting_leaves_no_half_of_a_group(trace, limits, random) -> None:
    async def run() -> None:
        memory = WindowedMemory(max_messages=limits[0], max_tokens=limits[1])

        async def check(told: list[Message]) -> None:
            held = await memory.messages()
            if held and random.random() < 0.3:
                await memory.delete(random.choice(held).id)
            gone = {m.id for m in told} - {m.id for m in await memory.messages()}
            check_whole(await memory.context(), [m for m in told if m.id not in gone])

        whole = [Step(s.kind, s.text, s.pinned, s.calls, s.order) for s in trace]
        await play(memory, whole, check)

    anyio.run(run)


@pytest.mark.anyio
async def test_a_huge_result_is_shortened_before_anything_leaves() -> None:
    memory = WindowedMemory(max_messages=None, max_tokens=500)
    await memory.set_goal("goal")
    await memory.update([Message.user("earlier")])
    call = Action(name="read", args={})
    result = Message.tool("start " + "x " * 50_000 + " end", call)
    await memory.update([Message.assistant("", [call]), result])
    goal, earlier, _, shown = await memory.context()
    assert (goal.content, earlier.content) == ("goal", "earlier")
    assert shown.content.startswith("start ")
    assert shown.content.endswith(" end")
    assert "tokens left out" in shown.content
    assert await memory.get(result.id) == result, "the record has it whole"


@pytest.mark.anyio
async def test_the_largest_of_several_results_loses_the_most() -> None:
    memory = WindowedMemory(max_tokens=400)
    calls = [Action(name="read", args={}) for _ in range(3)]
    texts = ["short", "word " * 40, "word " * 4000]
    results = [Message.tool(text, call) for text, call in zip(texts, calls, strict=True)]
    await memory.update([Message.assistant("", calls), *results])
    shown = [m.content for m in (await memory.context())[1:]]
    assert shown[:2] == texts[:2]
    assert len(shown[2]) < 1000


@pytest.mark.anyio
async def test_pinned_messages_and_the_goal_stay() -> None:
    memory = WindowedMemory(max_messages=4)
    await memory.update([Message.system("rules", pinned=True)])
    await memory.set_goal("goal")
    for number in range(50):
        await memory.update([Message.assistant(f"{number}")])
    assert [m.content for m in await memory.context()] == ["rules", "goal", "48", "49"]
    await memory.set_goal("next goal")
    await memory.update([Message.assistant("50")])
    assert [m.content for m in await memory.context()] == ["rules", "49", "next goal", "50"]


@pytest.mark.anyio
async def test_a_call_waits_for_its_results_however_much_comes_between() -> None:
    memory = WindowedMemory(max_messages=2)
    call = Action(name="slow", args={})
    await memory.update([Message.assistant("", [call])])
    for number in range(10):
        await memory.update([Message.user(f"{number}")])
    assert len(await memory.context()) == 11, "nothing can leave before the call"
    await memory.update([Message.tool("done", call)])
    assert [m.content for m in await memory.context()] == ["", "done"]


@pytest.mark.anyio
async def test_without_a_journal_the_memory_does_not_grow() -> None:
    memory = WindowedMemory(max_messages=10)
    for number in range(1000):
        call = Action(name="f", args={})
        await memory.update([Message.assistant(f"{number}", [call]), Message.tool("r", call)])
    assert await memory.count() == 10
    window = window_of(memory)
    assert len(window._asking) == 5
    assert len(memory.store.log._places) == 10


@pytest.mark.anyio
async def test_evictions_are_awaited_and_wait_for_their_taker() -> None:
    taken: list[str] = []
    fail = True

    async def take(messages: list[Message]) -> None:
        if fail:
            raise OSError("full")
        taken.extend(message.content for message in messages)

    memory = WindowedMemory(max_messages=2, on_evict=take)
    await memory.update([Message.user("a"), Message.user("b")])
    with pytest.raises(OSError, match="full"):
        await memory.update([Message.user("c")])
    assert [m.content for m in await memory.messages()] == ["a", "b", "c"]
    fail = False
    await memory.update([Message.user("d")])
    assert taken == ["a", "b"]
    assert [m.content for m in await memory.context()] == ["c", "d"]


@pytest.mark.parametrize("wrong", [{"max_messages": 0}, {"max_messages": -1}, {"max_tokens": 0}])
def test_limits_below_one_are_refused(wrong) -> None:
    with pytest.raises(MemoryDefinitionError, match="at least 1"):
        WindowedMemory(**wrong)


@pytest.mark.anyio
async def test_reading_a_window_costs_the_same_after_a_large_update() -> None:
    """Iterating over a dict that has shrunk visits every gap unless it is copied."""
    memory = WindowedMemory(max_messages=10)
    await memory.update([Message.user("x") for _ in range(5000)])
    assert memory.store.log._gaps < 100
    assert sys.getsizeof(memory.store.log._messages) < 2000


@pytest.mark.anyio
async def test_what_the_model_said_is_shortened_only_after_the_results() -> None:
    memory = WindowedMemory(max_tokens=400)
    call = Action(name="read", args={})
    asking = Message.assistant("thinking " * 30, [call])
    await memory.update([asking, Message.tool("word " * 4000, call)])
    shown = await memory.context()
    assert shown[0] == asking
    assert len(shown[1].content) < 1000


@pytest.mark.anyio
async def test_shortened_texts_leave_with_their_messages() -> None:
    memory = WindowedMemory(max_messages=4, max_tokens=400)
    for _ in range(20):
        call = Action(name="read", args={})
        await memory.update([Message.assistant("", [call]), Message.tool("word " * 4000, call)])
    assert len(window_of(memory)._short) <= 2


@pytest.mark.anyio
async def test_a_call_that_nobody_answered_is_not_shown() -> None:
    memory = WindowedMemory()
    call = Action(name="f", args={})
    orphan = Message.tool("whose?", Action(name="g", args={}))
    await memory.update([Message.assistant("asks", [call]), orphan])
    assert [m.content for m in await memory.context()] == ["asks"]
    await memory.update([Message.assistant("goes on")])
    assert [m.content for m in await memory.context()] == ["goes on"]
    await memory.update([Message.tool("late", call)])
    assert [m.content for m in await memory.context()] == ["asks", "late", "goes on"]


@pytest.mark.anyio
async def test_system_messages_stay_within_half_of_the_limits() -> None:
    memory = WindowedMemory(max_messages=8)
    await memory.update([Message.system("rules"), Message.user("a")])
    for number in range(20):
        await memory.update([Message.system(f"day {number}"), Message.user(f"{number}")])
    shown = [m.content for m in await memory.context()]
    assert shown == ["rules", "16", "day 17", "17", "day 18", "18", "day 19", "19"]
    small = WindowedMemory(max_messages=1)
    await small.update([Message.system("rules")])
    for number in range(5):
        await small.update([Message.user(f"{number}")])
    assert [m.content for m in await small.context()] == ["rules", "4"]


@pytest.mark.anyio
async def test_long_system_messages_stay_within_half_of_the_tokens() -> None:
    memory = WindowedMemory(max_tokens=400)
    for number in range(10):
        await memory.update([Message.system(f"{number} " + "word " * 50), Message.user("hm")])
    system = [m.content[0] for m in await memory.context() if m.role == "system"]
    assert system[0] == "0"
    assert system[-1] == "9"
    assert len(system) < 10
    assert sum(message_tokens(m, count_tokens) for m in await memory.context()) <= 400


@pytest.mark.anyio
async def test_a_message_is_pinned_and_unpinned_later() -> None:
    journal = RamJournal()
    journal.persistent = True  # type: ignore[misc]
    memory = WindowedMemory(max_messages=2, journal=journal)
    said = [Message.user(f"{n}") for n in range(8)]
    await memory.update(said[:2])
    assert await memory.pin(said[0].id) == 1
    await memory.update(said[2:6])
    assert [m.content for m in await memory.context()] == ["0", "5"]
    memory = WindowedMemory(max_messages=2, journal=journal)
    assert [m.content for m in await memory.context()] == ["0", "5"]
    assert (await memory.get(said[0].id)).pinned  # type: ignore[union-attr]
    assert await memory.unpin(said[0].id) == 1
    await memory.update(said[6:])
    assert [m.content for m in await memory.context()] == ["6", "7"]
    assert await memory.pin(said[0].id) == 0, "it has left"


@pytest.mark.anyio
async def test_a_pinned_message_does_not_expire_and_an_unpinned_one_does() -> None:
    now = datetime(2024, 5, 1, tzinfo=UTC)
    memory = MessagesMemory(ttl=60, clock=lambda: now)
    said = [Message.user(f"{n}", created_at=now) for n in range(3)]
    await memory.update(said)
    await memory.pin([said[0].id, said[1].id])
    now += timedelta(seconds=60)
    assert [m.content for m in await memory.messages()] == ["0", "1"]
    await memory.unpin(said[0].id)
    assert [m.content for m in await memory.messages()] == ["1"]


@pytest.mark.anyio
async def test_with_a_time_to_live_a_window_does_not_grow() -> None:
    def size(memory: WindowedMemory) -> int:
        seen: set[int] = set()

        def of(value: object) -> int:
            if id(value) in seen:
                return 0
            seen.add(id(value))
            inner = list(value) if isinstance(value, list | tuple | set | frozenset) else []
            if isinstance(value, dict):
                inner = [*value, *value.values()]
            return 1 + sum(map(of, inner)) + of(getattr(value, "__dict__", None))

        return of(vars(memory))

    memory = WindowedMemory(max_messages=5, ttl=timedelta(days=30))
    await memory.set_goal("goal")
    for _ in range(100):
        await memory.update([Message.user("a")])
    await memory.set_goal("goal")
    before = size(memory)
    for _ in range(500):
        await memory.set_goal("goal")
        await memory.update([Message.user("a")])
    assert size(memory) < before + 2_000


@pytest.mark.anyio
async def test_what_left_during_the_turn_is_forgotten_too() -> None:
    now = datetime(2024, 5, 1, tzinfo=UTC)
    memory = WindowedMemory(max_messages=2, ttl=60, clock=lambda: now)
    await memory.set_goal(Message.user("goal", created_at=now))
    await memory.update([Message.user("SECRET", created_at=now + timedelta(seconds=9))])
    await memory.update([Message.user(f"{n}", created_at=now) for n in range(3)])
    assert [m.content for m in await memory.turn()] == ["goal", "SECRET", "0", "1", "2"]
    assert await memory.forget(text="secret") == 1
    assert [m.content for m in await memory.turn()] == ["goal", "0", "1", "2"]
    now += timedelta(seconds=61)
    assert [m.content for m in await memory.turn()] == ["goal"]


@pytest.mark.anyio
async def test_a_call_that_nobody_waits_for_holds_nothing_back_after_pins_have_changed() -> None:
    memory = WindowedMemory(max_messages=3)
    call = Message.assistant("", tool_calls=(Action(name="look", args={}),), pinned=True)
    await memory.update([call])
    for number in range(6):
        await memory.update([Message.assistant(f"said {number}")])
    for _ in range(3):
        newest = (await memory.messages())[-1].id
        await memory.pin([newest])
        await memory.unpin([newest])
        await memory.update([Message.user(f"asked after {newest}") for _ in range(4)])
        assert len(await memory.context()) <= 4
