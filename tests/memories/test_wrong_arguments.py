"""What makes no sense is refused, with an error that says what to do; nothing has changed."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain.memories import (
    LayeredMemory,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    SnapshotError,
    TodoMemory,
    VectorMemory,
    WindowedMemory,
    create_memory,
)
from agent_brain.tools import ToolError

pytestmark = pytest.mark.anyio

MEMORIES: dict[str, Any] = {
    "messages": MessagesMemory,
    "layered": lambda: create_memory("layered", long="messages"),
    "todo": TodoMemory,
    "vector": VectorMemory,
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
@pytest.mark.parametrize("given", [{"data": {}}, {"data": {"mesages": []}}])
async def test_loading_what_has_no_messages_is_refused(name, given) -> None:
    memory = MEMORIES[name]()
    await memory.update([Message.user("a")])
    with pytest.raises(SnapshotError, match="no 'messages'"):
        await memory.load(**given)
    assert await memory.count() == 1


@pytest.mark.parametrize(
    "create, said",
    [
        (lambda: LayeredMemory(*[WindowedMemory()] * 2), "same session"),
        (lambda: same_session(RamJournal()), "same session"),
        (lambda: TodoMemory(TodoMemory()), "to-do list already"),
        (lambda: MessagesMemory(views=[3]), "views="),  # type: ignore[list-item]
        (lambda: MessagesMemory(clock=3), "clock="),  # type: ignore[arg-type]
    ],
)
def test_definitions_that_make_no_sense_are_refused(create, said) -> None:
    with pytest.raises(MemoryDefinitionError, match=said):
        create()


def same_session(journal: RamJournal) -> LayeredMemory:
    return LayeredMemory(WindowedMemory(journal=journal), MessagesMemory(journal=journal))


async def never(_: Message) -> bool:
    return False


WRONG: list[Any] = [
    (lambda m: m.delete(3), MemoryUseError, "ids="),
    (lambda m: m.messages(tags=3), MemoryUseError, "tags="),
    (lambda m: m.messages(text=3), MemoryUseError, "text="),
    (lambda m: m.forget(text=3), MemoryUseError, "text="),
    (lambda m: m.forget(text=0), MemoryUseError, "text="),
    (lambda m: m.forget(5), MemoryUseError, "ids="),
    (lambda m: m.forget(older_than=5), MemoryUseError, "older_than="),
    (lambda m: m.forget(where=5), MemoryUseError, "where="),
    (lambda m: m.forget(where=never), MemoryUseError, "must not be async"),
    (lambda m: m.forget(where=lambda message: never(message)), MemoryUseError, "must not be async"),
    (lambda m: m.messages(where=never), MemoryUseError, "must not be async"),
    (lambda m: m.clear(keep=lambda message: never(message)), MemoryUseError, "must not be async"),
    (lambda m: m.clear(keep=never), MemoryUseError, "must not be async"),
    (lambda m: m.messages("two"), MemoryUseError, "last="),
    (lambda m: m.messages(last=True), MemoryUseError, "last="),
    (lambda m: m.get(5), MemoryUseError, "get\\(\\) takes a text"),
    (lambda m: m.find_news("new"), MemoryUseError, "cursor"),
    (lambda m: m.update(5), MemoryUseError, "list of messages"),
    (lambda m: m.update([5]), MemoryUseError, "is not one"),
    (lambda m: m.update("hello"), MemoryUseError, "list of messages"),
    (lambda m: m.set_goal(5), MemoryUseError, "a text or a Message"),
    (lambda m: m.begin(5, "run", "START"), MemoryUseError, "a text or a Message"),
    (lambda m: m.begin(Message.user("a"), "r", "S", before=[5]), MemoryUseError, "is not one"),
    (lambda m: m.tag("a", 5), MemoryUseError, "tags="),
    (lambda m: m.untag("a", 5), MemoryUseError, "tags="),
    (lambda m: m.pin(5), MemoryUseError, "ids="),
    (lambda m: m.keep(5, 1), MemoryUseError, "keep\\(\\) takes a text"),
    (lambda m: m.kept(5), MemoryUseError, "kept\\(\\) takes a text"),
    (lambda m: m.load(text=5), MemoryUseError, "text="),
    (lambda m: m.load(5), SnapshotError, "neither an export nor"),
    (lambda m: m.restore({}), SnapshotError, "takes a Snapshot"),
]


@pytest.mark.parametrize("name", MEMORIES)
async def test_wrong_arguments_are_refused(name) -> None:
    memory = MEMORIES[name]()
    await memory.update([Message.user("a")])
    for use, error, said in WRONG:
        with pytest.raises(error, match=said):
            await use(memory)
        assert await memory.count() == 1


@pytest.mark.parametrize("create", [VectorMemory, lambda: create_memory("layered")])
@pytest.mark.parametrize(
    "given, said",
    [
        ({"query": 3}, "takes a text"),
        ({"query": None}, "takes a text"),
        ({"query": Message.user("a")}, "takes a text"),
        ({"query": "a", "k": "two"}, "k="),
        ({"query": "a", "k": True}, "k="),
        ({"query": "a", "min_score": "0.5"}, "min_score="),
        ({"query": "a", "where": 3}, "where="),
        ({"query": "a", "where": never}, "must not be async"),
        ({"query": "a", "since": 3}, "since="),
        ({"query": "a", "scope": 3}, "scope="),
    ],
)
async def test_recalling_by_what_is_no_question_is_refused(create, given, said) -> None:
    memory = create()
    await memory.update([Message.user("a")])
    with pytest.raises(MemoryUseError, match=said):
        await memory.recall(**given)


async def test_an_item_that_is_not_a_text_is_refused() -> None:
    with pytest.raises(ToolError, match="needs a text"):
        await TodoMemory().add_todo(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("journal", [None, RamJournal()])
async def test_only_json_values_are_kept_and_they_are_copied(journal) -> None:
    memory = MessagesMemory(journal=journal)
    with pytest.raises(MemoryUseError, match="JSON value"):
        await memory.keep("x", object())  # type: ignore[arg-type]
    value: Any = {"a": [1]}
    await memory.keep("x", value)
    value["a"].append(2)
    assert await memory.kept("x") == {"a": [1]}
