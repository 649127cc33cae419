"""A memory of one's own over the view Recent keeps what a net needs, however short it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from agent_brain import Message, Role
from agent_brain.memories import Recent, StoredMemory
from agent_brain.testing import memory_conformance
from tests.support.conformance import pass_all
from tests.support.thorough import first_of

pytestmark = pytest.mark.anyio


def newest(count: int) -> type[StoredMemory]:
    class Newest(StoredMemory):
        def __init__(self, **options: Any) -> None:
            super().__init__(views=[Recent(count)], **options)

    return Newest


@pytest.mark.parametrize("count", first_of([1, 2, 3, 5], 1, 5))
async def test_it_conforms(count: int) -> None:
    await pass_all(memory_conformance(newest(count), query_face=True))


async def test_the_goal_system_and_pinned_messages_stay() -> None:
    memory = newest(6)()
    await memory.update([Message.system("Be brief."), Message.user("My name is Ann.", pinned=True)])
    await memory.set_goal("What is 17 times 23?")
    for number in range(9):
        await memory.update([Message.assistant(str(number))])
    shown = [message.content for message in await memory.context()]
    kept = ["Be brief.", "My name is Ann.", "What is 17 times 23?"]
    assert shown == [*kept, "6", "7", "8"]
    assert (await memory.context())[0].role is Role.SYSTEM


class Heard(Recent):
    """Remembers what it was told of."""

    def reset(self) -> None:
        super().reset()
        self.heard: list[str] = []

    def add(self, messages: Sequence[Message]) -> None:
        super().add(messages)
        self.heard += [message.content for message in messages]


async def test_a_subclass_is_told_of_each_message_once() -> None:
    view = Heard(3)
    memory = StoredMemory(views=[view])
    ids = await memory.update([Message.user(str(number)) for number in range(5)])
    await memory.pin(ids[0])
    await memory.delete(ids[4])
    assert [message.content for message in await memory.context()] == ["0", "3"]
    assert view.heard == ["0", "1", "2", "3", "4"]
