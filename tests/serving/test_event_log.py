"""The event log: every reader gets every event once and in order, or is told of a gap."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent_brain import Message
from agent_brain.serving.event_json import event_json
from agent_brain.serving.event_log import EventLog, Gap, LogReader, SessionEvent
from agent_brain.states import Usage
from agent_brain.states.events import (
    NOWHERE,
    ActionRequested,
    ActionStarted,
    MessageReceived,
    Position,
    ResponseStarted,
    RunFailed,
    RunStarted,
    StateEntered,
    StateExited,
    TextDelta,
    UsageReported,
)
from agent_brain.tools import Action
from tests.support.thorough import examples


def text(words: str = "x") -> TextDelta:
    return TextDelta(words, at=NOWHERE)


def ready(work: Any) -> Any:
    """The result of a coroutine that needs not wait."""
    try:
        work.send(None)
    except StopIteration as done:
        return done.value
    work.close()
    raise AssertionError("it waits")


class Follower:
    """Reads a log and checks what it gets: consecutive numbers, except after a gap."""

    def __init__(self, log: EventLog, after: str | None) -> None:
        self.log = log
        self.reader = log.read(after)
        self.gaps = 0
        numbers = {None: log.last, "0": log.last - held(log)}
        self.last = numbers[after] if after in numbers else int(str(after).rpartition("-")[2])
        self.seen: list[int] = []

    def take(self, most: int) -> None:
        if self.last >= self.log.last:
            return
        for item in ready(self.reader.batch(most)):
            if isinstance(item, Gap):
                missing = int(item.id.rpartition("-")[2])
                assert missing > self.last
                assert missing == self.log.last - held(self.log)  # no more than must be
                self.gaps += 1
                self.last = missing
            else:
                assert item.number == self.last + 1
                assert item.event.text == str(item.number)
                self.last = item.number
                self.seen.append(item.number)

    def finish(self) -> None:
        while self.last < self.log.last:
            self.take(2)
        assert self.last == self.log.last


def length(item: SessionEvent) -> int:
    """Length of the text of an event."""
    assert isinstance(item.event, TextDelta)
    return len(item.event.text)


def held(log: EventLog) -> int:
    return log.last - log.first + 1


STEPS = st.lists(
    st.one_of(
        st.just(("append",)),
        st.just(("clear",)),
        st.tuples(st.just("open"), st.one_of(st.none(), st.just("0"), st.integers(0, 12))),
        st.tuples(st.just("read"), st.integers(0, 5), st.integers(1, 4)),
    ),
    max_size=60,
)


@pytest.mark.parametrize("most", [1, 2, 3, 50])
@given(steps=STEPS)
@settings(max_examples=examples(150))
def test_readers_get_each_event_once_and_in_order_or_a_gap(most, steps):
    log = EventLog(max_events=most)
    followers: list[Follower] = []
    kept = 0
    for step in steps:
        if step[0] == "append":
            log.append(text(str(log.last + 1)))
            kept = min(kept + 1, most)
            assert held(log) == kept
        elif step[0] == "clear":
            log.clear()
            kept = 0
        elif step[0] == "open":
            after = step[1]
            if isinstance(after, int):
                after = f"{log.name}-{min(after, log.last)}"
            followers.append(Follower(log, after))
        elif step[1] < len(followers):
            followers[step[1]].take(step[2])
    for follower in followers:
        follower.finish()


@given(sizes=st.lists(st.integers(0, 400), max_size=40), most=st.integers(1, 2000))
def test_the_size_in_bytes_is_bounded_but_for_one_event(sizes, most):
    log = EventLog(max_bytes=most)
    for size in sizes:
        log.append(text("x" * size))
        kept = log.since(0)
        assert kept[-1].number == log.last
        total = sum(200 + length(item) for item in kept)
        assert total <= most or len(kept) == 1
        if len(kept) < log.last and len(kept) > 0:
            dropped = 200 + sizes[log.last - len(kept) - 1]
            assert total + dropped > most  # nothing is dropped before it must be


@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_a_reader_from_the_beginning_gets_what_is_there(count):
    log = EventLog()
    for _ in range(count):
        log.append(text())
    log.close()
    items = []
    reader = log.read("0")
    while batch := ready(reader.batch()):
        items += batch
    assert [item.id for item in items] == [f"{log.name}-{n}" for n in range(1, count + 1)]


@pytest.mark.parametrize(
    "after",
    ["x", "", "-", "-1", "0-0", "deadbeef-1", "1", "00", " 0", "²", "{name}-²", "{name}-٣", "{name}-1.0",
     "{name}--1", "{name}- 1", "{name}-1_0", "{name}-" + "9" * 19, "{name}-" + "9" * 5000, "{name}-\x00",
     "{name}-1\n", "\ud800", "{name}"],
)  # fmt: skip
@pytest.mark.parametrize("count", [0, 1, 3])
def test_an_id_that_is_not_of_the_log_gets_a_gap_and_then_everything(after, count):
    log = EventLog()
    for _ in range(count):
        log.append(text())
    reader = log.read(after.format(name=log.name))
    first = ready(reader.batch())
    assert first == [Gap(f"{log.name}-0")]
    log.append(text())
    assert [item.number for item in ready(reader.batch())] == [*range(1, count + 2)]


def test_the_id_of_another_process_is_not_taken_for_ours():
    old, new = EventLog(), EventLog()
    for log in (old, new):
        for _ in range(3):
            log.append(text())
    assert isinstance(ready(new.read(old.last_id).batch())[0], Gap)


def test_an_id_from_the_future_reads_what_comes():
    log = EventLog()
    log.append(text())
    reader = log.read(f"{log.name}-77")
    log.append(text("new"))
    assert ready(reader.batch())[0].event.text == "new"


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_readers_are_woken_by_each_event_and_by_the_end():
    log = EventLog()
    seen: list[list[int]] = [[], [], []]

    async def read(into: list[int]) -> None:
        async for item in log.read():
            assert isinstance(item, SessionEvent)
            into.append(item.number)

    async with anyio.create_task_group() as tasks:
        for into in seen:
            tasks.start_soon(read, into)
        for _ in range(4):
            await anyio.wait_all_tasks_blocked()
            log.append(text())
        log.append(text())
        await anyio.wait_all_tasks_blocked()
        log.close()
    assert seen == [[1, 2, 3, 4, 5]] * 3


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_a_reader_that_is_cancelled_while_it_waits_misses_nothing_later():
    log = EventLog()
    reader = log.read()
    with anyio.move_on_after(0):
        await anext(reader)
    log.append(text())
    item = await anext(reader)
    assert isinstance(item, SessionEvent)
    assert item.number == 1


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_it_counts_its_readers():
    log = EventLog()
    with log.read() as one, log.read():
        assert isinstance(one, LogReader)
        assert log.readers == 2
    assert log.readers == 0
    assert log.unread_since == pytest.approx(anyio.current_time(), abs=5)


def test_a_reader_of_a_closed_log_ends():
    log = EventLog()
    log.append(text())
    log.close()
    assert ready(log.read().batch()) == []


def test_a_slow_reader_of_a_long_log_is_told_of_one_gap():
    log = EventLog(max_events=3)
    reader = log.read()
    for _ in range(10):
        log.append(text())
    assert ready(reader.batch()) == [Gap(f"{log.name}-7")]
    assert [item.number for item in ready(reader.batch())] == [8, 9, 10]


PLACES = st.builds(
    Position,
    run_id=st.text(),
    step=st.integers(0, 10**9),
    state=st.text(),
    path=st.lists(st.text(), max_size=2).map(tuple),
)
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)


@given(words=ANY_TEXT, at=PLACES, response=st.one_of(st.none(), st.text()), thought=st.booleans())
def test_the_json_of_text_is_that_of_the_event_and_valid(words, at, response, thought):
    event = TextDelta(words, thought, response, at=at)
    data = event_json(event)
    assert data.decode("utf-8") == event.to_json()
    assert b"\n" not in data
    assert b"\r" not in data
    json.loads(data)


@given(words=ANY_TEXT, at=PLACES, kind=st.integers(0, 7))
def test_the_json_of_any_event_is_that_of_the_event(words, at, kind):
    action = Action(name="add", args={"a": 1.5, "text": words, "some": [None, True]}, id="c1")
    event = [
        RunStarted(Message.user(words or "Go"), at=at),
        MessageReceived(Message.user(words or "Go", metadata={"x": words}), at=at),
        StateEntered(at=at),
        StateExited("NEXT", at=at),
        ResponseStarted(words, at=at),
        UsageReported(Usage(1, 2, cost=0.5, model=words), at=at),
        ActionRequested(action, at=at),
        ActionStarted(action, at=at),
    ][kind]
    assert event_json(event).decode("utf-8") == event.to_json()


@pytest.mark.parametrize(
    "event",
    [
        StateEntered(at=NOWHERE),
        RunStarted(None, at=NOWHERE),
        RunFailed(ValueError("a\r\nb\ud800"), at=NOWHERE),
    ],
)
def test_the_json_of_other_events_is_one_line(event):
    log = EventLog()
    item = log.append(event)
    assert json.loads(item.json)["kind"] == event.kind
    assert b"\n" not in item.json
    assert b"\r" not in item.json
