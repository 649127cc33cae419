"""A record of messages that several agents share, each with a memory and an inbox of its own."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Brain
from agent_brain.memories import (
    Attachment,
    MemoryDefinitionError,
    MemoryUseError,
    Message,
    MessagesMemory,
    RamJournal,
    Role,
    SharedMemory,
    SQLiteJournal,
    TodoMemory,
    list_sessions,
)
from agent_brain.testing import ScriptedLLM
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


def contents(messages: list[Message]) -> list[str]:
    return [message.content for message in messages]


async def begin(member: Any, message: Message, run: str = "run-1") -> None:
    await member.begin(message, run, "START")


async def test_the_inbox_has_what_is_addressed_to_the_agent_or_to_all() -> None:
    shared = SharedMemory()
    ann, bob = shared.member("ann"), shared.member("bob")
    await shared.send("to all")
    await shared.send("to ann", send_to="ann")
    await shared.send("to both", send_to=["ann", "bob"])
    await bob.send("from bob")
    assert contents(await ann.inbox()) == ["to all", "to ann", "to both", "bob: from bob"]
    assert contents(await bob.inbox()) == ["to all", "to both"]
    picture = Attachment(media_type="image/png", url="https://example.org/a.png")
    seen = Message.user(["Before", picture, "after"]).model_copy(update={"role": Role.ASSISTANT})
    await bob.send(seen)
    said, attached, rest = (await ann.inbox())[-1].parts()
    assert (said, type(attached), rest) == ("bob: Before", Attachment, "after")


async def test_an_agent_that_watches_gets_what_it_watches_and_what_is_addressed_to_it() -> None:
    shared = SharedMemory()
    ann, bob = shared.member("ann", watch={"review"}), shared.member("bob", watch=())
    await shared.send("1", cause_by="task")
    await shared.send("2", cause_by="review")
    await shared.send("3", cause_by="review", send_to="bob")
    await shared.send("4", cause_by="task", send_to="ann")
    assert contents(await ann.inbox()) == ["2", "3", "4"]
    assert contents(await bob.inbox()) == ["3"]


async def test_messages_of_agents_come_as_those_of_a_user_with_a_name() -> None:
    shared = SharedMemory()
    ann, bob = shared.member("ann"), shared.member("bob")
    sent = await ann.send("hello", send_to="bob")
    assert (sent.role, sent.sent_from, sent.cause_by) == (Role.ASSISTANT, "ann", "ann")
    (got,) = await bob.inbox()
    assert (got.role, got.name, got.content, got.id) == (Role.USER, "ann", "ann: hello", sent.id)


async def test_a_turn_takes_its_goal_and_what_is_before_it() -> None:
    shared = SharedMemory()
    ann = shared.member("ann")
    for text in ("one", "two", "three"):
        await shared.send(text)
    await begin(ann, (await ann.inbox())[1])
    assert contents(await ann.messages()) == ["one", "two"]
    assert contents(await ann.goal()) == ["two"]
    assert contents(await ann.inbox()) == ["three"]


async def test_a_turn_with_another_goal_takes_nothing() -> None:
    shared = SharedMemory()
    ann = shared.member("ann")
    await shared.send("one")
    await begin(ann, Message.user("something else"))
    assert contents(await ann.inbox()) == ["one"]


async def test_a_message_is_not_taken_twice() -> None:
    shared = SharedMemory()
    ann = shared.member("ann")
    (sent,) = [await shared.send("one")]
    await begin(ann, sent)
    with pytest.raises(MemoryUseError, match="has taken the message"):
        await begin(ann, sent)


async def test_a_message_is_in_the_record_once() -> None:
    shared = SharedMemory()
    ann = shared.member("ann")
    for _ in range(2):
        await ann.send(Message.assistant("hello", id="h-1"))
    assert contents(await shared.messages()) == ["hello"]


@pytest.mark.parametrize("text", ["", " \n"])
async def test_an_empty_message_is_refused(text: str) -> None:
    shared = SharedMemory()
    for member in (shared, shared.member("ann")):
        with pytest.raises(MemoryUseError, match="is empty"):
            await member.send(text)
    assert await shared.messages() == []


async def test_queries_apply_to_the_record() -> None:
    shared = SharedMemory()
    ann = shared.member("ann")
    await shared.send("task", cause_by="task")
    await ann.send(Message.assistant("draft", metadata={"version": 1}))
    assert contents(await shared.messages(cause_by="task")) == ["task"]
    assert contents(await shared.messages(sent_from="ann", where={"version": 1})) == ["draft"]
    assert await ann.messages() == []


async def test_brains_answer_what_is_in_their_inboxes() -> None:
    shared = SharedMemory()
    writer = Brain("react", shared.member("writer"), llm=ScriptedLLM(["Roses."]))
    await shared.send("Write a poem")
    memory: Any = writer.memory
    result = await writer.run((await memory.inbox())[-1])
    assert result.answer == "Roses."
    assert await memory.inbox() == []


@pytest.mark.parametrize("memory", ["messages", "windowed", "summary", "vector", "layered", "todo"])
async def test_any_memory_can_be_that_of_a_member(memory: str, tmp_path: Any) -> None:
    async with SharedMemory(tmp_path / "team.db") as shared:
        ann = shared.member("ann", memory=memory)
        await begin(ann, await shared.send("one"))
        await shared.send("two")
    async with SharedMemory(tmp_path / "team.db") as shared:
        ann = shared.member("ann", memory=memory)
        assert contents(await ann.inbox()) == ["two"]
        assert contents(await ann.goal()) == ["one"]
        assert ann.control.run_id == "run-1"


async def test_an_object_can_be_the_memory_of_a_member() -> None:
    shared = SharedMemory()
    ann = shared.member("ann", memory=TodoMemory(MessagesMemory()))
    await begin(ann, await shared.send("one"))
    assert await ann.inbox() == []


async def test_options_go_to_the_memory_of_a_member() -> None:
    shared = SharedMemory()
    ann = shared.member("ann", memory="windowed", memory_options={"max_messages": 2})
    for text in ("one", "two", "three"):
        await shared.send(text)
    await begin(ann, (await ann.inbox())[-1])
    assert contents(await ann.context()) == ["two", "three"]


async def test_members_are_sessions_beside_the_record(tmp_path: Any) -> None:
    journal = SQLiteJournal(tmp_path / "team.db")
    async with journal:
        shared = SharedMemory(journal, session="article", tenant="acme")
        await begin(shared.member("ann"), await shared.send("one"))
        found = await list_sessions(journal, tenant="acme")
        assert {info.session for info in found} == {"article", "article/ann"}


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_a_kill_while_a_message_is_taken_neither_loses_nor_repeats_it(after: bool) -> None:
    store = RamJournal()
    sent = await SharedMemory(store).send("one")
    dying = SharedMemory(MortalJournal(store, 1, after=after))
    with pytest.raises(Killed):
        await begin(dying.member("ann"), sent)
    ann = SharedMemory(store).member("ann")
    assert contents(await ann.inbox()) == ([] if after else ["one"])
    assert contents(await ann.goal()) == (["one"] if after else [])


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
async def test_an_error_while_a_message_is_taken_neither_loses_nor_repeats_it(after: bool) -> None:
    shared = SharedMemory(MortalJournal(RamJournal(), 2, after=after, error=OSError))
    ann = shared.member("ann")
    sent = await shared.send("one")
    with pytest.raises(OSError, match="killed"):
        await begin(ann, sent)
    assert contents(await ann.inbox()) == ([] if after else ["one"])
    await ann.update([Message.assistant("go on")])
    await ann.checkpoint()
    assert contents(await ann.inbox()) == ([] if after else ["one"])


async def test_what_an_agent_forgets_does_not_come_back() -> None:
    shared = SharedMemory()
    ann = shared.member("ann")
    sent = await shared.send("secret")
    await begin(ann, sent)
    assert await ann.forget(sent.id) == 1
    assert await ann.inbox() == []


async def test_what_an_agent_clears_does_not_come_back() -> None:
    journal = RamJournal()
    ann = SharedMemory(journal).member("ann")
    await begin(ann, await ann.shared_memory.send("one"))
    assert await ann.clear() == 1
    assert await ann.inbox() == []
    assert await SharedMemory(journal).member("ann").inbox() == []


async def test_what_is_forgotten_in_the_record_is_not_delivered() -> None:
    shared = SharedMemory()
    ann = shared.member("ann")
    await shared.send("secret")
    await shared.forget(text="secret")
    assert await ann.inbox() == []


async def test_a_copy_of_a_member_and_of_the_record_are_independent() -> None:
    shared = SharedMemory()
    ann = shared.member("ann")
    await begin(ann, await shared.send("one"))
    own, record = await ann.fork(), await shared.fork()
    await own.update([Message.user("two")])
    await record.update([Message.user("three")])
    assert contents(await ann.messages()) == contents(await shared.messages()) == ["one"]
    assert not record.members
    with pytest.raises(MemoryDefinitionError, match="copy of a record"):
        record.member("bob")


async def test_an_earlier_state_of_a_member_has_the_inbox_of_then() -> None:
    shared = SharedMemory()
    ann = shared.member("ann", memory_options={"history": "all"})
    await begin(ann, await shared.send("one"))
    await begin(ann, await shared.send("two"), "run-2")
    first, _ = await ann.steps()
    assert contents(await (await ann.as_of(first)).inbox()) == ["two"]


@pytest.mark.parametrize("name", ["", "  ", "a/b", "user", "task", "a\nb", "a\x1b", 7])
def test_names_that_cannot_be_used_are_refused(name: Any) -> None:
    with pytest.raises(MemoryDefinitionError, match="cannot be the name"):
        SharedMemory().member(name)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"memory": "windwed"}, "windowed"),
        ({"memory": 7}, "takes a memory"),
        ({"memory": MessagesMemory(), "memory_options": {"ttl": 3}}, "by name"),
        ({"memory_options": {"session": "x"}}, "stored beside the record"),
        ({"memory": SharedMemory()}, "a SharedMemory"),
        ({"memory": SharedMemory().member("bob")}, "of another member"),
        ({"memory": TodoMemory(SharedMemory().member("bob"))}, "of another member"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], said: str) -> None:
    shared = SharedMemory()
    with pytest.raises(MemoryDefinitionError, match=said):
        shared.member("ann", **options)
    assert not shared.members


async def test_two_members_with_one_name_and_a_brain_over_the_record_are_refused() -> None:
    shared = SharedMemory()
    shared.member("ann")
    with pytest.raises(MemoryDefinitionError, match="a member 'ann' already"):
        shared.member("ann")
    with pytest.raises(MemoryUseError, match="memory of a member"):
        await Brain("react", shared).run("go")
