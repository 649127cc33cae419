"""The inbox."""

from __future__ import annotations

import json

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.memories import MemoryUseError, Message, MessageQueue, SnapshotError


def texts(messages) -> list[str]:
    return [message.content for message in messages]


@given(st.lists(st.none() | st.integers(-2, 2)))
def test_lowest_number_first_and_equals_in_their_order(pushes) -> None:
    queue, waiting = MessageQueue(), []  # type: ignore[var-annotated]
    for number, priority in enumerate(pushes):
        if priority is None:
            waiting.sort(key=lambda item: item[0])
            wanted = waiting.pop(0)[1] if waiting else None
            assert queue.pop() == wanted
        else:
            message = Message.user(str(number))
            queue.push(message, priority=priority)
            waiting.append((priority, message))
        assert len(queue) == len(waiting)
    assert queue.pop_all() == [m for _, m in sorted(waiting, key=lambda item: item[0])]
    assert queue.empty()


def test_a_waiting_message_is_not_taken_twice() -> None:
    queue, message = MessageQueue(), Message.user("a")
    assert queue.push(message)
    assert not queue.push(message)
    assert queue.peek() == queue.pop() == message
    assert queue.push(message), "it waits no more"
    assert MessageQueue().peek() is None


def test_a_dump_is_json_and_takes_nothing() -> None:
    queue = MessageQueue()
    for text, priority in [("b", 5), ("汉字", 0), ("a", 5)]:
        queue.push(Message.user(text), priority=priority)
    dump = json.loads(json.dumps(queue.dump()))
    assert len(queue) == 3
    assert texts(MessageQueue.load(dump).pop_all()) == ["汉字", "b", "a"]


@pytest.mark.parametrize(
    "wrong", [{}, {"version": 9}, {"version": 1}, {"version": 1, "waiting": [7]}, []]
)
def test_what_is_not_a_dump_is_refused(wrong) -> None:
    with pytest.raises(SnapshotError):
        MessageQueue.load(wrong)


def test_what_is_not_a_message_is_refused() -> None:
    with pytest.raises(MemoryUseError):
        MessageQueue().push("hello")  # type: ignore[arg-type]


def test_each_reader_has_a_cursor() -> None:
    queue = MessageQueue()
    queue.push(Message.user("a"))
    news, cursor = queue.find_news()
    assert texts(news) == ["a"]
    queue.push(Message.user("b"), priority=-1)
    queue.push(Message.user("c"))
    assert queue.pop().content == "b"  # type: ignore[union-attr]
    news, cursor = queue.find_news(cursor)
    assert texts(news) == ["c"]
    assert queue.find_news(cursor) == ([], cursor)
    assert texts(queue.find_news()[0]) == ["a", "c"]


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_get_waits_for_a_message() -> None:
    queue, got = MessageQueue(), []

    async def take() -> None:
        got.append((await queue.get()).content)

    async with anyio.create_task_group() as group:
        group.start_soon(take)
        group.start_soon(take)
        await anyio.wait_all_tasks_blocked()
        assert not got
        queue.push(Message.user("a"))
        await anyio.wait_all_tasks_blocked()
        assert got == ["a"]
        queue.push(Message.user("b"))
    assert got == ["a", "b"]


@pytest.mark.anyio
@pytest.mark.also_on_trio
async def test_waiting_takes_nothing() -> None:
    queue = MessageQueue()
    async with anyio.create_task_group() as group:
        group.start_soon(queue.wait)
        await anyio.wait_all_tasks_blocked()
        queue.push(Message.user("a"))
    await queue.wait()
    assert len(queue) == 1


def test_cursors_count_on_after_loading() -> None:
    queue = MessageQueue()
    for text in "abc":
        queue.push(Message.user(text))
    queue.pop()
    _, cursor = queue.find_news()
    loaded = MessageQueue.load(json.loads(json.dumps(queue.dump())))
    assert loaded.find_news(cursor) == ([], cursor)
    loaded.push(Message.user("d"))
    assert texts(loaded.find_news(cursor)[0]) == ["d"]
    assert texts(loaded.find_news()[0]) == ["b", "c", "d"]


def test_the_numbers_of_a_dump_grow() -> None:
    queue = MessageQueue()
    for text in "ab":
        queue.push(Message.user(text))
    dump = queue.dump()
    dump["waiting"][1]["number"] = 1
    with pytest.raises(SnapshotError, match="numbers"):
        MessageQueue.load(dump)
