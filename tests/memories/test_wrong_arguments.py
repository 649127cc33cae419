"""What makes no sense is refused, with an error that says what to do; nothing has changed."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain.memories import (
    MemoryUseError,
    Message,
    MessagesMemory,
    SnapshotError,
    TodoMemory,
    create_memory,
)

pytestmark = pytest.mark.anyio

MEMORIES: dict[str, Any] = {
    "messages": MessagesMemory,
    "layered": lambda: create_memory("layered", long="messages"),
    "todo": TodoMemory,
}


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize("which", [{"text": ""}, {"where": {}}, {"text": "", "role": "user"}])
async def test_forgetting_by_a_condition_that_everything_meets_is_refused(name, which) -> None:
    memory = MEMORIES[name]()
    await memory.update([Message.user("a")])
    with pytest.raises(MemoryUseError, match="Say which messages"):
        await memory.forget(**which)
    assert await memory.count() == 1


@pytest.mark.parametrize("name", MEMORIES)
@pytest.mark.parametrize(
    "given", [{"data": {}}, {"data": {"mesages": []}}, {"text": '{"version": 1}'}]
)
async def test_loading_what_has_no_messages_is_refused(name, given) -> None:
    memory = MEMORIES[name]()
    await memory.update([Message.user("a")])
    with pytest.raises(SnapshotError, match="no 'messages'"):
        await memory.load(**given)
    assert await memory.count() == 1
