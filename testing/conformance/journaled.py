"""The behaviours of memories that persist in a journal."""

from __future__ import annotations

from typing import Any

from agent_brain.memories.errors import JournalConflictError
from agent_brain.memories.message import Message
from agent_brain.memories.runs.human_requests import HumanRequests
from agent_brain.memories.store.session import session_key
from agent_brain.testing.conformance.check import (
    Make,
    behaviours,
    contents,
    expect,
    expect_end,
    expect_error,
    expect_true,
    ids,
    needs,
)
from agent_brain.tools.action import Action

NAMES = [
    ("a", None),
    ("a", "a"),
    ("b", "a:b"),
    ("b:b", "a"),
    ('a", "b', "c"),
    ("a", 'b", "c'),
    ("null", None),
    ("/", "//"),
    ("汉", "字"),
    ("a\x00b", "x"),
]


@needs(4)
async def a_later_memory_of_the_session_is_the_same(memory: Any, make: Make) -> None:
    """Another memory that opens the session has its goal, messages, view and control."""
    call = Action(name="f", args={"x": "汉字\x00"})
    await memory.set_goal(Message.user("goal", pinned=True))
    await memory.update([Message.assistant("thinking", [call]), Message.tool("result", call)])
    await memory.tag((await memory.messages())[1].id, "seen")
    memory.control.begin("run-1", "ACTION")
    memory.control.next_actions = [call]
    memory.control.scratch["notes"] = ["a", 1]
    await memory.checkpoint()
    later = await make()
    await later.open()
    expect(await later.goal(), await memory.goal(), "goal() of the later memory")
    expect(await later.dump(), await memory.dump(), "dump() of the later memory")
    expect(await later.context(), await memory.context(), "context() of the later memory")
    expect(later.control, memory.control, "control of the later memory")
    await later.update([Message.user("more")])
    expect((await later.dump())[-1].content, "more", "the end of dump()")


async def sessions_and_tenants_are_separate(make: Make) -> None:
    """A session is found by its name and its tenant, both compared exactly."""
    for session, tenant in NAMES:
        memory = await make(session, tenant)
        expect(await memory.context(), [], f"context() of the new session {session!r}, {tenant!r}")
        await memory.update([Message.user(f"{tenant} {session}", id="same")])
    for session, tenant in NAMES:
        memory = await make(session, tenant)
        said = contents(await memory.messages())
        expect(said, [f"{tenant} {session}"], f"messages() of session {session!r} of {tenant!r}")
    first = await make(*NAMES[0])
    await first.clear()
    second = await make(*NAMES[1])
    expect(await second.count(), 1, "count() of a session after another was cleared")


@needs(4)
async def a_second_writer_gets_an_error(make: Make) -> None:
    """Writing to a session that another memory has written to raises JournalConflictError."""
    first, second = await make(), await make()
    await first.update([Message.user("one")])
    expect(await second.count(), 1, "count() of the second memory")
    await first.update([Message.user("two")])
    late = Message.user("too late")
    await expect_error(second.update([late]), JournalConflictError, "the second writer's update()")
    expect(await second.get(late.id), None, "the message that was not written")
    await first.update([Message.user("three")])
    await second.reopen()
    await second.update([late])
    third = await make()
    said = contents(await third.messages())
    expect_end(said, ["one", "two", "three", "too late"], "messages() of a later memory")
    expect(said, contents(await second.messages()), "messages() of a later memory")


async def an_interrupted_step_is_rolled_back(memory: Any, make: Make) -> None:
    """rollback() returns to the last checkpoint: messages and control."""
    await memory.begin(Message.user("goal"), "run-1", "REASONING")
    await memory.update([Message.assistant("finished step")])
    memory.control.step = 1
    await memory.checkpoint()
    for number in range(5):
        await memory.update([Message.assistant(f"half a step {number}")])
    memory.control.step = 99
    later = memory
    for _ in range(2):
        later = await make()
        await later.open()
        await later.rollback()
        said = contents(await later.turn())
        expect(said, ["goal", "finished step"], "turn() after rollback()")
        expect(later.control.step, 1, "control after rollback()")
    await later.update([Message.assistant("again")])
    for which in (later, await make()):
        said = contents(await which.turn())
        expect(said, ["goal", "finished step", "again"], "turn() after the repeated step")


@needs(3)
async def a_forgotten_message_is_in_no_entry(memory: Any, make: Make) -> None:
    """forget() removes the text from every entry of the journal, also from the control."""
    await memory.set_goal("SECRET goal")
    memory.control.scratch["quote"] = "SECRET"
    await memory.checkpoint()
    await memory.update([Message.user("SECRET"), Message.user("known")])
    await memory.checkpoint()
    await memory.forget(text="SECRET")
    entries = repr(await memory.journal.read(session_key("s")))
    expect_true("SECRET" not in entries, f"The journal has what was forgotten: {entries:.500}")
    later = await make()
    expect(contents(await later.messages()), ["known"], "messages() of a later memory")


@needs(4)
async def turns_and_the_last_result_persist(memory: Any, make: Make) -> None:
    """turns() and last_result() are the same in a later memory of the session, and in a copy."""
    for number in range(2):
        await memory.begin(Message.user(f"goal {number}"), f"run-{number}", "A")
        await memory.update([Message.assistant(f"answer {number}")])
        memory.control.output = {"number": number}
        memory.control.ended[""] = "what was said"
        memory.control.stop("done", seconds=1, reached_end=True)
        await memory.checkpoint()
    later, copied = await make(), await memory.fork()
    result, turns = await memory.last_result(), await memory.turns()
    expect([turn.run_id for turn in turns], ["run-0", "run-1"], "the runs of turns()")
    expect(result.answer, "what was said", "answer of last_result()")
    for memory_of, other in (("the later memory", later), ("the copy", copied)):
        expect(await other.last_result(), result, f"last_result() of {memory_of}")
        expect([t.goal for t in await other.turns()], [t.goal for t in turns], f"of {memory_of}")
        expect([t.run_id for t in await other.turns()], ["run-0", "run-1"], f"of {memory_of}")
    expect(await later.turns(), turns, "turns() of the later memory")


@needs(2)
async def a_fork_writes_nothing_into_the_session(memory: Any, make: Make) -> None:
    """A fork is kept in RAM: only the memory that was forked writes to the session."""
    await memory.update([Message.user("one")])
    fork = await memory.fork()
    await fork.update([Message.user("in the fork")])
    await fork.checkpoint()
    await memory.update([Message.user("two")])
    later = await make()
    expect_end(contents(await later.messages()), ["one", "two"], "messages()")


async def delete_and_clear_persist(memory: Any, make: Make) -> None:
    """What delete() and clear() removed is not there when the session is opened again."""
    for number in range(6):
        await memory.update([Message.user(str(number))])
    memory.control.step = 5
    await memory.checkpoint()
    held = ids(await memory.messages())
    await memory.delete(held[0])
    for which in (memory, await make(), await make()):
        expect(ids(await which.messages()), held[1:], "messages() after delete()")
    await memory.clear()
    later = await make()
    expect(await later.messages(), [], "messages() after clear()")
    expect(later.control.step, 5, "control after clear()")
    await memory.update([Message.user("new")])
    expect(len(await (await make()).messages()), 1, "messages() after clear(), update()")


async def groups_are_in_order_after_reopening(memory: Any, make: Make) -> None:
    """The order of messages does not depend on whether the session was opened again."""
    await memory.set_goal("goal")
    call = Action(name="f", args={})
    await memory.update([Message.assistant("asks", [call])])
    await memory.update([Message.user("by the way")])
    await memory.update([Message.tool("done", call)])
    names = ("context", "messages", "dump")
    before = {name: await getattr(memory, name)() for name in names}
    later = await make()
    for name in names:
        expect(await getattr(later, name)(), before[name], f"{name}() after reopening")


async def restore_persists(make: Make) -> None:
    """What restore() puts into a memory is written to its session."""
    memory, other = await make(), await make("t", None)
    await memory.set_goal("goal")
    await memory.update([Message.user("one")])
    memory.control.step = 3
    await other.update([Message.user("to be replaced")])
    await other.restore(await memory.snapshot())
    later = await make("t", None)
    await later.open()
    expect(await later.context(), await memory.context(), "context() of a restored session")
    expect(later.control, memory.control, "control of a restored session")


async def a_turn_begins_in_one_write(memory: Any, make: Make) -> None:
    """begin() writes results, goal and control in one append, so that a crash keeps all or none."""
    call = Action(name="f", args={})
    await memory.set_goal("first")
    await memory.update([Message.assistant("", [call])])
    memory.control.begin("run-1", "ACTION")
    memory.control.next_actions = [call]
    await memory.checkpoint()
    key = session_key("s")
    last = await memory.journal.last(key)
    result = Message.tool("not run", call, is_error=True)
    goal = Message.user("second")
    await memory.begin(goal, "run-2", "REASONING", before=[result])
    written = [entry.kind for entry in await memory.journal.read(key, last)]
    expect(sorted(written), ["goal", "message", "part", "step"], "what begin() wrote")
    later = await make()
    await later.open()
    for name, which in (("this", memory), ("a later", later)):
        expect(await which.goal(), [goal], f"goal() of {name} memory")
        last_two = ids(await which.messages())[-2:]
        expect_end(last_two, [result.id, goal.id], f"the end of {name} memory")
        expect(which.control.run_id, "run-2", f"run_id of {name} memory")
        expect(which.control.next_actions, [], f"open calls of {name} memory")
    await later.rollback()
    expect(await later.goal(), [goal], "goal() after a rollback")


async def a_forgotten_call_is_in_no_entry(make: Make) -> None:
    """forget() and clear() remove the open calls of a message too, and end a run that waits."""
    for remove in ("forget", "clear"):
        memory = await make(remove, None)
        call = Action(name="f", args={"x": "SECRET"})
        await memory.set_goal("goal")
        asks = Message.assistant("", [call])
        await memory.update([asks])
        memory.control.begin("run-1", "ACTION")
        memory.control.next_actions = [call]
        memory.control.human_requests = HumanRequests(approvals=[call.id])
        memory.control.status = "waiting"
        await memory.checkpoint()
        await (memory.clear() if remove == "clear" else memory.forget(asks.id))
        expect(memory.control.next_actions, [], f"open calls after {remove}()")
        expect(memory.control.status, "ended", f"status after {remove}()")
        entries = repr(await memory.journal.read(session_key(remove)))
        expect_true("SECRET" not in entries, f"The journal has the arguments: {entries:.500}")
        later = await make(remove, None)
        await later.open()
        expect(later.control, memory.control, "control of a later memory")


JOURNALED = behaviours(globals())
