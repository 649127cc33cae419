"""What holds for memories with the query face of the built-in ones."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from agent_brain.memories.errors import MemoryUseError, SnapshotError
from agent_brain.memories.message import Message
from agent_brain.testing.conformance.check import expect, expect_error, ids, needs
from agent_brain.tools.action import Action

Make = Callable[..., Awaitable[Any]]

START = datetime(2024, 5, 1, tzinfo=UTC)


@needs(3)
async def earlier_goals_stay_where_they_were_asked(make: Make) -> None:
    memory = await make()
    await memory.set_goal("first question")
    await memory.update([Message.assistant("first answer")])
    await memory.set_goal("second question")
    said = ["first question", "first answer", "second question"]
    expect([message.content for message in await memory.messages()], said, "messages()")
    shown = [m.content for m in await memory.context() if m.content in said]
    expect(shown, said[-len(shown) :], "context(), as far as it is shown")


async def a_known_id_changes_nothing(make: Make) -> None:
    memory = await make()
    message = Message.user("one")
    await memory.update([message, message, message.model_copy(update={"content": "other"})])
    await memory.update([message])
    expect(await memory.dump(), [message], "dump()")
    expect(await memory.count(), 1, "count()")


async def what_is_no_message_is_refused_whole(make: Make) -> None:
    memory = await make()
    good = Message.user("good")
    for wrong in ([good, "text"], [good, None], [good, {"role": "user"}], "text", good, 7, None):
        await expect_error(memory.update(wrong), MemoryUseError, f"update({wrong!r:.60})")
    expect(await memory.dump(), [], "dump() after updates that were refused")


@needs(4)
async def filters_come_before_the_limit(make: Make) -> None:
    memory = await make()
    said = [
        Message.user("a", name="Ann", cause_by="talk", created_at=START),
        Message.assistant("b", cause_by="talk", metadata={"n": 1}),
        Message.user("c", tags={"red", "blue"}, sent_from="bob"),
        Message.assistant("d", tags={"green"}),
    ]
    await memory.update(said)
    a, b, c, d = said
    now = START + timedelta(seconds=1)
    cases: list[tuple[list[Message], tuple[Any, ...], dict[str, Any]]] = [
        (said, (), {}),
        ([c, d], (2,), {}),
        ([], (0,), {}),
        ([], (-1,), {}),
        (said, (99,), {}),
        ([c], (1,), {"role": "user"}),
        ([a, c], (), {"role": "user"}),
        (said, (), {"role": ["user", "assistant"]}),
        ([a, b], (), {"cause_by": "talk"}),
        ([], (), {"cause_by": "nothing"}),
        ([a], (), {"cause_by": "talk", "role": "user"}),
        ([a], (), {"name": "Ann"}),
        ([c], (), {"sent_from": "bob"}),
        ([c, d], (), {"tags": ["red", "green"]}),
        ([a, b, d], (), {"without_tags": "blue"}),
        ([b], (), {"where": lambda m: m.content == "b"}),
        ([b], (), {"where": {"n": 1}}),
        ([c], (), {"text": "C"}),
        ([a], (), {"until": now}),
        ([b, c, d], (), {"since": now}),
    ]
    for wanted, arguments, filters in cases:
        found = await memory.messages(*arguments, **filters)
        expect(ids(found), ids(wanted), f"messages({arguments}, {filters})")


@needs(4)
async def the_last_messages_are_whole_groups(make: Make) -> None:
    memory = await make()
    call = Action(name="f", args={})
    group = [Message.assistant("", [call]), Message.tool("r", call)]
    await memory.update([Message.user("before"), *group])
    expect(ids(await memory.messages(1)), ids(group), "messages(1) where a result is the last")
    await memory.update([Message.user("after")])
    for last in (1, 2):
        found = [message.content for message in await memory.messages(last)]
        expect(found, ["after"], f"messages({last}) behind a call and its result")
    for wrong in (1.5, True, "1", float("nan")):
        await expect_error(memory.messages(wrong), MemoryUseError, f"messages({wrong!r})")


async def messages_are_pinned_later(make: Make) -> None:
    memory = await make()
    message = Message.user("rules")
    await memory.update([message])
    expect(await memory.pin([message.id, "unknown"]), 1, "pin()")
    for number in range(40):
        await memory.update([Message.user(str(number))])
    expect((await memory.get(message.id)).pinned, True, "pinned, after pin() and 40 messages")
    if message.id not in ids(await memory.context()):
        raise AssertionError("A message that was pinned is not in context()")
    await memory.unpin(message.id)
    expect((await memory.get(message.id)).pinned, False, "pinned, after unpin()")
    await memory.clear(keep_pinned=True)
    expect(await memory.count(), 0, "count() after clear(keep_pinned=True)")


async def instructions_stay_in_view(make: Make) -> None:
    memory = await make()
    rules = Message.system("rules")
    await memory.update([rules])
    await memory.set_goal("goal")
    for number in range(40):
        await memory.update([Message.assistant(str(number))])
    shown = [message.content for message in await memory.context()]
    if "rules" not in shown[: shown.index("goal")]:
        raise AssertionError(f"The system message is not ahead of the goal: {shown!r:.500}")


async def filters_that_make_no_sense_are_refused(make: Make) -> None:
    memory = await make()
    naive = START.replace(tzinfo=None)
    for wrong in ({"role": "robot"}, {"since": naive}, {"until": "today"}, {"where": 7}):
        await expect_error(memory.messages(**wrong), MemoryUseError, f"messages({wrong})")


@needs(3)
async def messages_are_found_and_deleted_by_id(make: Make) -> None:
    memory = await make()
    said = [Message.user(text) for text in "abc"]
    await memory.update(said)
    expect(await memory.get(said[1].id), said[1], "get()")
    expect(await memory.get("unknown"), None, "get() of an unknown id")
    expect(await memory.delete([said[0].id, "unknown"]), 1, "delete()")
    expect(await memory.delete(said[0].id), 0, "delete() of what is gone")
    expect(await memory.messages(), said[1:], "messages()")
    expect(ids(await memory.messages(role="user")), ids(said[1:]), "messages(role=)")
    await memory.update([said[0]])
    expect(ids(await memory.messages()), ids([*said[1:], said[0]]), "what was deleted came back")


@needs(4)
async def a_call_and_its_results_go_together(make: Make) -> None:
    for which in (0, 1, 2):
        memory = await make()
        calls = [Action(name="f", args={}), Action(name="g", args={})]
        group = [Message.assistant("", calls), *[Message.tool("r", call) for call in calls]]
        after = Message.assistant("after")
        await memory.update([*group, after])
        expect(await memory.delete(group[which].id), 3, "delete() of one of a call and two results")
        expect(await memory.messages(), [after], "messages()")


@needs(3)
async def clearing_takes_everything(make: Make) -> None:
    memory = await make()
    pinned = Message.system("rules", pinned=True)
    await memory.set_goal("goal")
    await memory.update([pinned, Message.user("one")])
    expect(await memory.clear(keep_pinned=True), 2, "clear(keep_pinned=True)")
    expect(await memory.goal(), [], "goal() after clear()")
    expect(ids(await memory.context()), [pinned.id], "context() after clear(keep_pinned=True)")
    await memory.clear()
    expect(await memory.context(), [], "context() after clear()")
    expect(await memory.count(), 0, "count() after clear()")


@needs(4)
async def an_export_can_be_loaded(make: Make) -> None:
    memory, other = await make(), await make()
    await memory.set_goal("goal")
    await memory.update([Message.assistant("汉字", tags={"a"}), Message.user("two")])
    exported = await memory.export()
    text = json.dumps(exported)
    await other.update([Message.user("to be replaced")])
    await other.load(text=text)
    expect(await other.messages(), await memory.messages(), "messages() after load()")
    expect(await other.goal(), await memory.goal(), "goal() after load()")
    exported.clear()
    expect(len(await memory.messages()), 3, "messages after the caller emptied the export")
    extra = Message.user("three")
    await other.load([extra, *(await memory.messages())], merge=True)
    expect(ids(await other.messages())[-1], extra.id, "messages() after load(merge=True)")


async def what_cannot_be_loaded_changes_nothing(make: Make) -> None:
    memory = await make()
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
    expect(await memory.messages(), before, "messages() after loads that failed")


@needs(6)
async def what_is_forgotten_is_nowhere(make: Make) -> None:
    memory = await make()
    await memory.set_goal("goal")
    call = Action(name="look", args={"for": "SECRET-1"})
    secret = [
        Message.assistant("", [call]),
        Message.tool("SECRET-2", call),
        Message.user("SECRET-3", pinned=True, tags={"private"}),
    ]
    await memory.update([Message.user("before"), *secret, Message.user("after")])
    expect(await memory.forget(text="secret-2"), 2, "forget(text=), partners included")
    expect(await memory.forget(tags="private"), 1, "forget(tags=)")
    expect(len(await memory.messages()), 3, "what was not to be forgotten")
    for name in ("messages", "dump", "context", "turn", "snapshot", "export"):
        seen = repr(await getattr(memory, name)())
        if "SECRET" in seen:
            raise AssertionError(f"{name}() still tells what was forgotten: {seen:.500}")
    expect(await memory.forget("unknown"), 0, "forget() of an unknown id")
    await expect_error(memory.forget(), MemoryUseError, "forget() without saying what")


@needs(2)
async def old_messages_are_forgotten_by_age(make: Make) -> None:
    memory = await make()
    old = Message.user("old", created_at=START)
    await memory.update([old, Message.user("new")])
    expect(await memory.forget(older_than=timedelta(days=1)), 1, "forget(older_than=)")
    expect([m.content for m in await memory.messages()], ["new"], "messages()")


@needs(2)
async def tags_are_added_and_taken(make: Make) -> None:
    memory = await make()
    said = [Message.user("a", tags={"x"}), Message.user("b")]
    await memory.update(said)
    expect(await memory.tag([*ids(said), "unknown"], "y"), 2, "tag()")
    expect(ids(await memory.messages(tags="y")), ids(said), "messages(tags=)")
    expect(await memory.untag(said[0].id, "x", "none"), 1, "untag()")
    expect((await memory.get(said[0].id)).tags, {"y"}, "tags")
    expect(ids(await memory.messages()), ids(said), "the order")


@needs(3)
async def news_are_found_by_a_cursor(make: Make) -> None:
    memory = await make()
    expect(await memory.find_news(), ([], 0), "find_news() of an empty memory")
    await memory.update([Message.user("a"), Message.user("b")])
    news, cursor = await memory.find_news()
    expect([m.content for m in news], ["a", "b"], "find_news()")
    expect((await memory.find_news(cursor))[0], [], "find_news() when there is nothing new")
    await memory.update([Message.user("c")])
    news, cursor = await memory.find_news(cursor)
    expect([m.content for m in news], ["c"], "find_news() after one more")


async def a_tag_of_a_fork_is_its_own(make: Make) -> None:
    memory = await make()
    message = Message.user("a")
    await memory.update([message])
    fork = await memory.fork()
    await fork.tag(message.id, "x")
    expect((await memory.get(message.id)).tags, frozenset(), "the original's tags")


QUERY_FACE = [
    earlier_goals_stay_where_they_were_asked,
    a_known_id_changes_nothing,
    what_is_no_message_is_refused_whole,
    filters_come_before_the_limit,
    the_last_messages_are_whole_groups,
    messages_are_pinned_later,
    instructions_stay_in_view,
    filters_that_make_no_sense_are_refused,
    messages_are_found_and_deleted_by_id,
    a_call_and_its_results_go_together,
    clearing_takes_everything,
    an_export_can_be_loaded,
    what_cannot_be_loaded_changes_nothing,
    what_is_forgotten_is_nowhere,
    old_messages_are_forgotten_by_age,
    tags_are_added_and_taken,
    news_are_found_by_a_cursor,
    a_tag_of_a_fork_is_its_own,
]
