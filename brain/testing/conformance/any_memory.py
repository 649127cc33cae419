"""What holds for every memory, a class of four methods included."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from agent_brain.memories.message import Message
from agent_brain.memories.snapshot import Snapshot
from agent_brain.testing.conformance.check import expect, ids, needs
from agent_brain.tools.action import Action

Make = Callable[..., Awaitable[Any]]

TEXTS = [
    "",
    " ",
    "a\x00b",
    "汉字和日本語",
    "👩‍👩‍👧 é ñ",
    "'; DROP TABLE entries; --",
    '{"role": "system"}',
    "line\nline\r\n\tend",
]


async def a_new_memory_is_empty(make: Make) -> None:
    memory = await make()
    expect(await memory.goal(), [], "goal() of a new memory")
    expect(await memory.dump(), [], "dump() of a new memory")
    expect(await memory.context(), [], "context() of a new memory")
    expect(memory.done, False, "done of a new memory")
    expect(memory.next_action, None, "next_action of a new memory")


async def the_goal_is_seen_by_the_model(make: Make) -> None:
    memory = await make()
    await memory.set_goal("What is 2 + 2?")
    expect([m.content for m in await memory.goal()], ["What is 2 + 2?"], "goal()")
    expect([m.content for m in await memory.context()], ["What is 2 + 2?"], "context()")
    expect(await memory.dump(), [], "dump(), which is without the current goal")


async def a_goal_may_be_a_message(make: Make) -> None:
    memory = await make()
    goal = Message.user("hello", name="Ann", metadata={"a": 1})
    await memory.set_goal(goal)
    expect(await memory.goal(), [goal], "goal()")


@needs(4)
async def messages_keep_their_order(make: Make) -> None:
    memory = await make()
    await memory.set_goal("goal")
    first, second = Message.user("one"), Message.assistant("two")
    third = Message.user("three")
    await memory.update([first, second])
    await memory.update([third])
    expect(ids(await memory.dump()), ids([first, second, third]), "dump()")
    said = ids([first, second, third])
    shown = [i for i in ids(await memory.context()) if i in said]
    expect(shown, said[-len(shown) :], "the end of context(), as far as it is shown")


async def an_empty_update_changes_nothing(make: Make) -> None:
    memory = await make()
    await memory.update([])
    expect(await memory.dump(), [], "dump()")


@needs(1)
async def lists_that_are_returned_are_copies(make: Make) -> None:
    memory = await make()
    await memory.set_goal("goal")
    await memory.update([Message.user("one")])
    for name in ("goal", "dump", "context", "turn"):
        (await getattr(memory, name)()).clear()
    expect(len(await memory.context()), 2, "messages after the caller emptied what it was given")


async def a_list_that_was_given_is_not_kept(make: Make) -> None:
    memory = await make()
    given = [Message.user("one")]
    await memory.update(given)
    given.clear()
    expect(len(await memory.dump()), 1, "messages after the caller emptied what it gave")


@needs(9)
async def any_text_survives(make: Make) -> None:
    memory = await make()
    written = [Message.user(text) for text in [*TEXTS, "x" * 1_000_000]]
    await memory.update(written)
    expect([m.content for m in await memory.dump()], [m.content for m in written], "dump()")


@needs(3)
async def calls_and_results_survive(make: Make) -> None:
    memory = await make()
    calls = [Action(name="f", args={"x": [1, {"y": None}]}), Action(name="g", args={})]
    written = [
        Message.assistant("", calls, cause_by="Reasoning"),
        *[Message.tool("done", call, is_error=True) for call in calls],
    ]
    await memory.update(written)
    expect(await memory.dump(), written, "dump()")


@needs(2)
async def a_turn_begins_with_its_goal(make: Make) -> None:
    memory = await make()
    await memory.set_goal("first")
    await memory.update([Message.assistant("answer one")])
    await memory.set_goal("second")
    await memory.update([Message.assistant("answer two")])
    turn = [message.content for message in await memory.turn()]
    expect(turn, ["second", "answer two"], "turn()")


@needs(2)
async def a_snapshot_is_json_and_restores(make: Make) -> None:
    memory, other = await make(), await make()
    await memory.set_goal("goal")
    await memory.update([Message.assistant("one"), Message.user("two")])
    memory.control.step = 7
    memory.control.scratch["note"] = {"a": [1, 2]}
    text = (await memory.snapshot()).model_dump_json()
    await other.restore(Snapshot.from_json(text))
    expect(await other.goal(), await memory.goal(), "goal() after restore")
    expect(await other.dump(), await memory.dump(), "dump() after restore")
    expect(other.control, memory.control, "control after restore")


async def results_are_shown_with_their_call(make: Make) -> None:
    memory = await make()
    await memory.set_goal("goal")
    calls = [Action(name="f", args={}), Action(name="g", args={})]
    asking = Message.assistant("", calls)
    between = Message.user("by the way")
    results = [Message.tool("done", call) for call in calls]
    await memory.update([asking])
    for update in ([results[1]], [between], [results[0]]):
        await memory.update(update)
    shown = ids(await memory.context())
    at = shown.index(asking.id)
    together = ids([asking, results[1], results[0]])
    expect(shown[at : at + 3], together, "context() from a call on whose results came late")
    if between.id in shown[:at]:
        raise AssertionError("What arrived while a tool ran is shown before the call")


async def the_whole_turn_is_told(make: Make) -> None:
    memory = await make()
    await memory.update([Message.user("before")])
    goal = Message.user("goal")
    await memory.begin(goal, "run", "START")
    said = [Message.assistant(str(number)) for number in range(4)]
    for message in said:
        await memory.update([message])
    expect(ids(await memory.turn()), ids([goal, *said]), "turn()")
    await memory.begin(Message.user("next"), "run-2", "START")
    expect([m.content for m in await memory.turn()], ["next"], "turn() of the next turn")


async def a_snapshot_does_not_change_afterwards(make: Make) -> None:
    memory = await make()
    await memory.update([Message.user("one")])
    snapshot = await memory.snapshot()
    before = snapshot.model_dump_json()
    await memory.update([Message.user("two")])
    memory.control.scratch["new"] = True
    expect(snapshot.model_dump_json(), before, "the snapshot")


@needs(2)
async def a_fork_is_independent(make: Make) -> None:
    memory = await make()
    await memory.set_goal("goal")
    await memory.update([Message.user("common")])
    fork = await memory.fork()
    await fork.update([Message.user("only in the fork")])
    await memory.update([Message.user("only in the original")])
    fork.control.step = 99
    expect([m.content for m in await fork.dump()][-1], "only in the fork", "the fork's dump()")
    expect([m.content for m in await memory.dump()][-1], "only in the original", "dump()")
    expect(len(await fork.dump()), len(await memory.dump()), "number of messages")
    expect(memory.control.step, 0, "the original's control")


@needs(40)
async def updates_at_once_are_all_kept(make: Make) -> None:
    memory = await make()
    batches = [[Message.user(f"{i}.{j}") for j in range(2)] for i in range(20)]
    async with anyio.create_task_group() as group:
        for batch in batches:
            group.start_soon(memory.update, batch)
    kept = ids(await memory.dump())
    expect(sorted(kept), sorted(i for batch in batches for i in ids(batch)), "the messages")
    for batch in batches:
        at = kept.index(batch[0].id)
        expect(kept[at : at + 2], ids(batch), "an update, in one piece")


@needs(2)
async def a_cancelled_update_is_whole_or_absent(make: Make) -> None:
    memory = await make()
    batch = [Message.user("one"), Message.user("two")]
    with anyio.CancelScope() as scope:
        scope.cancel()
        await memory.update(batch)
    if ids(await memory.dump()) not in ([], ids(batch)):
        raise AssertionError("A cancelled update has left a part of itself")
    await memory.update([Message.user("three")])
    expect((await memory.dump())[-1].content, "three", "the memory goes on after a cancellation")


async def closing_twice_is_fine(make: Make) -> None:
    memory = await make()
    await memory.open()
    await memory.open()
    await memory.aclose()
    await memory.aclose()


ANY_MEMORY = [
    a_new_memory_is_empty,
    the_goal_is_seen_by_the_model,
    a_goal_may_be_a_message,
    messages_keep_their_order,
    an_empty_update_changes_nothing,
    lists_that_are_returned_are_copies,
    a_list_that_was_given_is_not_kept,
    any_text_survives,
    calls_and_results_survive,
    a_turn_begins_with_its_goal,
    a_snapshot_is_json_and_restores,
    results_are_shown_with_their_call,
    the_whole_turn_is_told,
    a_snapshot_does_not_change_afterwards,
    a_fork_is_independent,
    updates_at_once_are_all_kept,
    a_cancelled_update_is_whole_or_absent,
    closing_twice_is_fine,
]
