"""The behaviours of memories with the queries of the built-in ones."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_brain.memories.errors import MemoryUseError, SnapshotError
from agent_brain.memories.message import Message
from agent_brain.testing.conformance.check import (
    Make,
    behaviours,
    contents,
    expect,
    expect_error,
    expect_true,
    ids,
    needs,
)
from agent_brain.tools.action import Action

START = datetime(2024, 5, 1, tzinfo=UTC)
LATER = START + timedelta(seconds=1)
FILTERS: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("abcd", (), {}),
    ("cd", (2,), {}),
    ("", (0,), {}),
    ("", (-1,), {}),
    ("abcd", (99,), {}),
    ("c", (1,), {"role": "user"}),
    ("ac", (), {"role": "user"}),
    ("abcd", (), {"role": ["user", "assistant"]}),
    ("ab", (), {"cause_by": "talk"}),
    ("", (), {"cause_by": "nothing"}),
    ("a", (), {"cause_by": "talk", "role": "user"}),
    ("a", (), {"name": "Ann"}),
    ("c", (), {"sent_from": "bob"}),
    ("cd", (), {"tags": ["red", "green"]}),
    ("abd", (), {"without_tags": "blue"}),
    ("b", (), {"where": lambda m: m.content == "b"}),
    ("b", (), {"where": {"n": 1}}),
    ("c", (), {"text": "C"}),
    ("a", (), {"until": LATER}),
    ("bcd", (), {"since": LATER}),
]
"""The messages that are found, by their texts, and the arguments of ``messages``."""


async def an_invalid_update_adds_nothing(memory: Any) -> None:
    """update() raises MemoryUseError for anything but a list of messages, and adds none of it."""
    good = Message.user("good")
    for wrong in ([good, "text"], [good, None], [good, {"role": "user"}], "text", good, 7, None):
        await expect_error(memory.update(wrong), MemoryUseError, f"update({wrong!r:.60})")
    expect(await memory.dump(), [], "dump() after invalid updates")


@needs(4)
async def filters_apply_before_the_limit(memory: Any) -> None:
    """messages(last, …) returns the last of those that match all filters."""
    await memory.update(
        [
            Message.user("a", name="Ann", cause_by="talk", created_at=START),
            Message.assistant("b", cause_by="talk", metadata={"n": 1}),
            Message.user("c", tags={"red", "blue"}, sent_from="bob"),
            Message.assistant("d", tags={"green"}),
        ]
    )
    for wanted, arguments, filters in FILTERS:
        found = contents(await memory.messages(*arguments, **filters))
        expect(found, list(wanted), f"messages({arguments}, {filters})")


@needs(4)
async def the_last_messages_are_whole_groups(memory: Any) -> None:
    """messages(last) begins with no result whose call is left out."""
    call = Action(name="f", args={})
    group = [Message.assistant("", [call]), Message.tool("r", call)]
    await memory.update([Message.user("before"), *group])
    expect(ids(await memory.messages(1)), ids(group), "messages(1) when the last is a result")
    await memory.update([Message.user("after")])
    for last in (1, 2):
        found = contents(await memory.messages(last))
        expect(found, ["after"], f"messages({last}) after a call and its result")
    for wrong in (1.5, True, "1", float("nan")):
        await expect_error(memory.messages(wrong), MemoryUseError, f"messages({wrong!r})")


async def messages_can_be_pinned_later(memory: Any) -> None:
    """pin() and unpin() change a stored message; pinned ones stay in view and in clear()."""
    message = Message.user("rules")
    await memory.update([message])
    expect(await memory.pin([message.id, "unknown"]), 1, "pin()")
    for number in range(40):
        await memory.update([Message.user(str(number))])
    expect((await memory.get(message.id)).pinned, True, "pinned, after pin() and 40 messages")
    expect_true(message.id in ids(await memory.context()), "A pinned message is not in context()")
    await memory.unpin(message.id)
    expect((await memory.get(message.id)).pinned, False, "pinned, after unpin()")
    await memory.clear(keep="pinned")
    expect(await memory.count(), 0, 'count() after clear(keep="pinned")')


async def invalid_filters_are_refused(memory: Any) -> None:
    """messages() raises MemoryUseError for a filter that cannot match."""
    naive = START.replace(tzinfo=None)
    for wrong in ({"role": "robot"}, {"since": naive}, {"until": "today"}, {"where": 7}):
        await expect_error(memory.messages(**wrong), MemoryUseError, f"messages({wrong})")


@needs(3)
async def messages_are_found_and_deleted_by_id(memory: Any) -> None:
    """get() and delete() find messages by their IDs; unknown ones are ignored."""
    said = [Message.user(text) for text in "abc"]
    await memory.update(said)
    expect(await memory.get(said[1].id), said[1], "get()")
    expect(await memory.get("unknown"), None, "get() of an unknown ID")
    expect(await memory.delete([said[0].id, "unknown"]), 1, "delete()")
    expect(await memory.delete(said[0].id), 0, "delete() of a deleted message")
    expect(await memory.messages(), said[1:], "messages()")
    expect(ids(await memory.messages(role="user")), ids(said[1:]), "messages(role=)")
    await memory.update([said[0]])
    expect(ids(await memory.messages()), ids([*said[1:], said[0]]), "messages() after adding it")


@needs(4)
async def a_call_is_deleted_with_its_results(make: Make) -> None:
    """delete() removes whole groups: a call without its result is refused by providers."""
    for which in range(3):
        memory = await make()
        calls = [Action(name="f", args={}), Action(name="g", args={})]
        group = [Message.assistant("", calls), *[Message.tool("r", call) for call in calls]]
        after = Message.assistant("after")
        await memory.update([*group, after])
        expect(await memory.delete(group[which].id), 3, "delete() of one of a call and two results")
        expect(await memory.messages(), [after], "messages()")


@needs(3)
async def clear_removes_everything(memory: Any) -> None:
    """clear() removes messages and goal; with keep="pinned" all but pinned ones."""
    pinned = Message.system("rules", pinned=True)
    await memory.set_goal("goal")
    await memory.update([pinned, Message.user("one")])
    expect(await memory.clear(keep="pinned"), 2, 'clear(keep="pinned")')
    expect(await memory.goal(), [], "goal() after clear()")
    expect(ids(await memory.context()), [pinned.id], 'context() after clear(keep="pinned")')
    await memory.clear()
    expect(await memory.context(), [], "context() after clear()")
    expect(await memory.count(), 0, "count() after clear()")


@needs(4)
async def an_export_can_be_loaded(memory: Any, other: Any) -> None:
    """load() takes what export() returned, and replaces what is there unless merge=True."""
    await memory.set_goal("goal")
    await memory.update([Message.assistant("汉字", tags={"a"}), Message.user("two")])
    exported = await memory.export()
    text = json.dumps(exported)
    await other.update([Message.user("to be replaced")])
    await other.load(text=text)
    expect(await other.messages(), await memory.messages(), "messages() after load()")
    expect(await other.goal(), await memory.goal(), "goal() after load()")
    exported.clear()
    expect(len(await memory.messages()), 3, "messages after the caller cleared the export")
    extra = Message.user("three")
    await other.load([extra, *(await memory.messages())], merge=True)
    expect(ids(await other.messages())[-1], extra.id, "messages() after load(merge=True)")


async def an_invalid_load_changes_nothing(memory: Any) -> None:
    """load() checks everything before it changes anything."""
    await memory.update([Message.user("one")])
    before = await memory.messages()
    cases: list[tuple[type[Exception], dict[str, Any]]] = [
        (SnapshotError, {"data": {"version": 99}}),
        (SnapshotError, {"data": [{"role": "robot"}]}),
        (SnapshotError, {"text": "{"}),
        (MemoryUseError, {}),
        (MemoryUseError, {"data": [], "text": "{}"}),
    ]
    for error, wrong in cases:
        await expect_error(memory.load(**wrong), error, f"load({wrong})")
    expect(await memory.messages(), before, "messages() after invalid loads")


@needs(6)
async def a_forgotten_message_is_nowhere(memory: Any) -> None:
    """forget() leaves no copy in the views, in snapshots and in exports."""
    await memory.set_goal("goal")
    call = Action(name="look", args={"for": "SECRET-1"})
    secret = [
        Message.assistant("", [call]),
        Message.tool("SECRET-2", call),
        Message.user("SECRET-3", pinned=True, tags={"private"}),
    ]
    await memory.update([Message.user("before"), *secret, Message.user("after")])
    expect(await memory.forget(text="secret-2"), 2, "forget(text=), with the rest of the group")
    expect(await memory.forget(tags="private"), 1, "forget(tags=)")
    expect(len(await memory.messages()), 3, "number of the other messages")
    for name in ("messages", "dump", "context", "turn", "snapshot", "export"):
        seen = repr(await getattr(memory, name)())
        expect_true("SECRET" not in seen, f"{name}() has what was forgotten: {seen:.500}")
    expect(await memory.forget("unknown"), 0, "forget() of an unknown ID")
    await expect_error(memory.forget(), MemoryUseError, "forget() without arguments")


@needs(2)
async def old_messages_are_forgotten_by_age(memory: Any) -> None:
    """forget(older_than=…) removes what was created earlier."""
    await memory.update([Message.user("old", created_at=START), Message.user("new")])
    expect(await memory.forget(older_than=timedelta(days=1)), 1, "forget(older_than=)")
    expect(contents(await memory.messages()), ["new"], "messages()")


@needs(2)
async def tags_are_added_and_removed(memory: Any) -> None:
    """tag() and untag() change stored messages, and return how many; the order stays."""
    said = [Message.user("a", tags={"x"}), Message.user("b")]
    await memory.update(said)
    expect(await memory.tag([*ids(said), "unknown"], "y"), 2, "tag()")
    expect(ids(await memory.messages(tags="y")), ids(said), "messages(tags=)")
    expect(await memory.untag(said[0].id, "x", "none"), 1, "untag()")
    expect((await memory.get(said[0].id)).tags, {"y"}, "tags")
    expect(ids(await memory.messages()), ids(said), "the order")


@needs(3)
async def new_messages_are_found_by_a_cursor(memory: Any) -> None:
    """find_news(cursor) returns what was added since, and the next cursor."""
    expect(await memory.find_news(), ([], 0), "find_news() of an empty memory")
    await memory.update([Message.user("a"), Message.user("b")])
    news, cursor = await memory.find_news()
    expect(contents(news), ["a", "b"], "find_news()")
    expect((await memory.find_news(cursor))[0], [], "find_news() when nothing is new")
    await memory.update([Message.user("c")])
    news, cursor = await memory.find_news(cursor)
    expect(contents(news), ["c"], "find_news() after one more message")


async def a_tag_in_a_fork_is_not_in_the_original(memory: Any) -> None:
    """A fork shares no message objects that can change."""
    message = Message.user("a")
    await memory.update([message])
    fork = await memory.fork()
    await fork.tag(message.id, "x")
    expect((await memory.get(message.id)).tags, frozenset(), "the original's tags")


QUERIES = behaviours(globals())
