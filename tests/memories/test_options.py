"""Numbers that make no sense are refused when the memory is made."""

from __future__ import annotations

from datetime import timedelta

import pytest

from agent_brain.memories import (
    LayeredMemory,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessageQueue,
    MessagesMemory,
    WindowedMemory,
    create_memory,
)

OPTIONS = [
    ("windowed", "max_messages"),
    ("windowed", "max_tokens"),
    ("summary", "max_messages"),
    ("summary", "max_tokens"),
    ("summary", "keep"),
    ("summary", "max_summary_tokens"),
    ("vector", "recent"),
    ("vector", "max_tokens"),
    ("vector", "k"),
    ("vector", "recalled_tokens"),
    ("layered", "k"),
    ("layered", "max_messages"),
    ("todo", "ttl"),
    *[(name, "ttl") for name in ("messages", "windowed", "summary", "vector", "layered")],
]
WRONG = [1.5, True, False, float("nan"), float("inf"), "3", -1, [1]]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
@pytest.mark.parametrize("name, option", OPTIONS)
def test_only_numbers_that_make_sense_are_taken(name, option, wrong) -> None:
    if option == "ttl" and wrong == 1.5:
        assert create_memory(name, ttl=wrong) is not None
        return
    with pytest.raises(MemoryDefinitionError, match=f"{option}="):
        create_memory(name, **{option: wrong})


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_recall_tokens_are_a_whole_number(wrong) -> None:
    with pytest.raises(MemoryDefinitionError, match="recall_tokens="):
        LayeredMemory(WindowedMemory(), MessagesMemory(), recall_tokens=wrong)


@pytest.mark.parametrize("wrong", [1.5, True, float("nan"), "1", None], ids=repr)
def test_a_priority_is_a_whole_number(wrong) -> None:
    queue = MessageQueue()
    with pytest.raises(MemoryUseError, match="priority="):
        queue.push(Message.user("a"), priority=wrong)
    assert queue.empty()


def test_durations_are_taken_in_seconds_and_as_such() -> None:
    assert create_memory("messages", ttl=60) is not None
    assert create_memory("messages", ttl=timedelta(days=1)) is not None
