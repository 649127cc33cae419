"""The conformance suite for memories, and the behaviours of every memory."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeAlias

import anyio

from agent_brain.brain import Brain
from agent_brain.memories.base import Memory
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.ram import RamJournal
from agent_brain.memories.message import Message
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.nets.library.react import react
from agent_brain.testing.conformance.check import (
    Check,
    behaviours,
    contents,
    expect,
    expect_true,
    ids,
    look_up,
    needs,
)
from agent_brain.testing.conformance.journaled import JOURNALED
from agent_brain.testing.conformance.queries import QUERIES
from agent_brain.testing.models import ScriptedLLM
from agent_brain.tools.action import Action

MakeMemory: TypeAlias = Callable[[], Memory | Awaitable[Memory]]
JournaledMemory: TypeAlias = Callable[[Journal, str, str | None], Memory | Awaitable[Memory]]

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


def memory_conformance(
    factory: MakeMemory,
    *,
    query_face: bool = False,
    journaled: JournaledMemory | None = None,
    journal: Callable[[], Journal] = RamJournal,
    holds: int | None = None,
) -> list[Check]:
    """Return the behaviours that a memory must have, as async checks.

    In a test module::

        @pytest.mark.anyio
        @pytest.mark.parametrize("check", memory_conformance(MyMemory), ids=str)
        async def test_conforms(check):
            await check()

    Args:
        factory: Makes a new, empty memory; sync or async. If it has a parameter ``tools``, as the
            class of a memory has, the tools passed with it are checked.
        query_face: Whether to check the queries of the built-in memories, too (``messages``,
            ``forget`` …).
        journaled: Makes a memory on ``(journal, session, tenant)``, to check persistence. Each
            memory that it makes opens the session.
        journal: Makes a new journal for each of those checks.
        holds: The number of messages that a memory with a limited size is sure to hold; behaviours
            that need more are left out. None: it holds all.
    """
    checks = [Check(behaviour, factory) for behaviour in ANY_MEMORY + QUERIES * query_face]
    if "tools" in inspect.signature(factory).parameters:
        with_tools: Any = factory
        checks.append(Check(tools_passed_to_it_are_offered, partial(with_tools, tools=[look_up])))
    if journaled is not None:
        checks += [Check(behaviour, journaled, journal) for behaviour in JOURNALED]
    return [check for check in checks if holds is None or check.needs <= holds]


async def a_new_memory_is_empty(memory: Memory) -> None:
    """A new memory has no goal, no messages and no state of a run: call super().__init__()."""
    for name in ("goal", "dump", "context"):
        expect(await getattr(memory, name)(), [], f"{name}() of a new memory")
    expect(memory.done, False, "done of a new memory")
    expect(memory.next_action, None, "next_action of a new memory")


async def the_goal_is_shown_to_the_model(memory: Memory) -> None:
    """set_goal() sets what goal() and context() show, once, and dump() leaves out."""
    await memory.set_goal("What is 2 + 2?")
    expect(contents(await memory.goal()), ["What is 2 + 2?"], "goal()")
    expect(contents(await memory.context()), ["What is 2 + 2?"], "context()")
    expect(await memory.dump(), [], "dump(), which leaves out the current goal")


async def a_goal_may_be_a_message(memory: Memory) -> None:
    """set_goal() takes text or a message, whose fields it keeps."""
    goal = Message.user("hello", name="Ann", metadata={"a": 1})
    await memory.set_goal(goal)
    expect(await memory.goal(), [goal], "goal()")


@needs(4)
async def messages_keep_their_order(memory: Memory) -> None:
    """update() adds each message once, at the end, in the given order."""
    await memory.set_goal("goal")
    written = [Message.user("one"), Message.assistant("two"), Message.user("three")]
    for some in (written[:2], [], written[2:]):
        await memory.update(some)
    expect(ids(await memory.dump()), ids(written), "dump()")
    shown = [i for i in ids(await memory.context()) if i in ids(written)]
    expect(shown, ids(written)[-len(shown) :], "the messages shown by context()")


async def lists_are_copied(memory: Memory) -> None:
    """Copy the lists that you get and return: callers may change them afterwards."""
    await memory.set_goal("goal")
    given = [Message.user("one")]
    await memory.update(given)
    given.clear()
    for name in ("goal", "dump", "context", "turn"):
        (await getattr(memory, name)()).clear()
    expect(contents(await memory.goal()), ["goal"], "goal() after the caller cleared its lists")
    expect(contents(await memory.context()), ["goal", "one"], "context() after it")


async def a_known_id_changes_nothing(memory: Memory) -> None:
    """update() ignores a message whose ID it holds: what was interrupted may be written again."""
    message, goal = Message.user("one"), Message.user("goal")
    same = message.model_copy(update={"content": "other"})
    for added in ([message.id], []):
        told = await memory.update([message, message, same])
        expect(added if told is None else [*told], added, "the IDs that update() returns")
    expect(await memory.dump(), [message], "dump()")
    await memory.set_goal(goal)
    await memory.update([goal])
    shown = ids(await memory.context())
    expect(shown.count(goal.id), 1, "how often context() shows the goal")


@needs(6)
async def earlier_goals_stay_where_they_were_asked(memory: Memory) -> None:
    """set_goal() moves the goal before it into the messages, and removes none of them."""
    for number in ("first", "second", "third"):
        await memory.set_goal(f"{number} question")
        await memory.update([Message.assistant(f"{number} answer")])
    said = [f"{n} {what}" for n in ("first", "second", "third") for what in ("question", "answer")]
    held = [text for text in said if text != "third question"]
    expect(contents(await memory.dump()), held, "dump() of three turns")
    shown = contents(await memory.context())
    in_order = [text for text in said if text in shown]
    expect([text for text in shown if text in said], in_order, "context() of three turns")


async def instructions_stay_in_view(memory: Memory) -> None:
    """context() always shows the goal, system messages and pinned messages."""
    await memory.update([Message.system("rules"), Message.user("pinned", pinned=True)])
    await memory.set_goal("goal")
    for number in range(40):
        await memory.update([Message.assistant(str(number))])
    shown = contents(await memory.context())
    for text in ("goal", "rules", "pinned"):
        expect_true(text in shown, f"{text!r} has left context(), which shows {shown!r:.500}")
    before = shown[: shown.index("goal")]
    expect_true("rules" in before, f"No system message is before the goal: {shown!r:.500}")


@needs(9)
async def any_text_survives(memory: Memory) -> None:
    """Texts are kept as they are: empty, long, with any character."""
    texts = [*TEXTS, "x" * 1_000_000]
    await memory.update([Message.user(text) for text in texts])
    expect(contents(await memory.dump()), texts, "dump()")


@needs(3)
async def calls_and_results_survive(memory: Memory) -> None:
    """Messages are kept with all their fields: calls, call IDs, errors."""
    calls = [Action(name="f", args={"x": [1, {"y": None}]}), Action(name="g", args={})]
    written = [
        Message.assistant("", calls, cause_by="Reasoning"),
        *[Message.tool("done", call, is_error=True) for call in calls],
    ]
    await memory.update(written)
    expect(await memory.dump(), written, "dump()")


@needs(2)
async def a_turn_begins_with_its_goal(memory: Memory) -> None:
    """turn() returns the current goal and what was added since, without earlier turns."""
    for goal, answer in (("first", "answer one"), ("second", "answer two")):
        await memory.set_goal(goal)
        await memory.update([Message.assistant(answer)])
    expect(contents(await memory.turn()), ["second", "answer two"], "turn()")


@needs(2)
async def a_snapshot_is_json_and_restores(memory: Memory, other: Memory) -> None:
    """restore(snapshot()) brings back goal, messages and control in another memory."""
    await memory.set_goal("goal")
    await memory.update([Message.assistant("one"), Message.user("two")])
    memory.control.step = 7
    memory.control.scratch["note"] = {"a": [1, 2]}
    call = Action(name="f", args={"x": 1})
    memory.control.request_calls([call])
    memory.control.finish_call(call, Message.tool("done", call))
    text = (await memory.snapshot()).model_dump_json()
    await other.restore(Snapshot.from_json(text))
    expect(await other.goal(), await memory.goal(), "goal() after restore()")
    expect(await other.dump(), await memory.dump(), "dump() after restore()")
    expect(other.control, memory.control, "control after restore()")


async def results_are_shown_with_their_call(memory: Memory) -> None:
    """context() shows the last group whole: the call, then its results, then what came between."""
    await memory.set_goal("goal")
    calls = [Action(name="f", args={}), Action(name="g", args={})]
    asking, between = Message.assistant("", calls), Message.user("by the way")
    results = [Message.tool("done", call) for call in calls]
    for message in (asking, results[1], between, results[0]):
        await memory.update([message])
    shown = ids(await memory.context())
    expect_true(asking.id in shown, "The last message with calls is not in context()")
    at = shown.index(asking.id)
    together = ids([asking, results[1], results[0]])
    expect(shown[at : at + 3], together, "context(), from a call with late results on")
    expect_true(between.id not in shown[:at], "A later message is shown before the call")


async def the_whole_turn_is_returned(memory: Memory) -> None:
    """turn() returns all of a turn, however much context() shows."""
    await memory.update([Message.user("before")])
    goal = Message.user("goal")
    await memory.begin(goal, "run", "START")
    said = [Message.assistant(str(number)) for number in range(4)]
    for message in said:
        await memory.update([message])
    expect(ids(await memory.turn()), ids([goal, *said]), "turn()")
    await memory.begin(Message.user("next"), "run-2", "START")
    expect(contents(await memory.turn()), ["next"], "turn() of the next turn")


@needs(4)
async def begin_starts_a_turn_and_a_run(memory: Memory) -> None:
    """begin() adds ``before``, then sets the goal and the registers of the run."""
    call = Action(name="f", args={})
    await memory.update([Message.assistant("", [call])])
    memory.control.scratch["old"] = True
    left, goal = Message.tool("not run", call, is_error=True), Message.user("goal")
    await memory.begin(goal, "run-1", "START", before=[left])
    expect(ids(await memory.goal()), [goal.id], "goal() after begin()")
    expect(ids(await memory.dump())[-1:], [left.id], "the end of dump() after begin(before=…)")
    control = memory.control
    expect((control.run_id, control.state), ("run-1", "START"), "run_id and state")
    expect((control.status, control.scratch), ("running", {}), "status and scratch")


@needs(4)
async def a_run_uses_the_methods_of_a_subclass(memory: Memory) -> None:
    """set_goal(), update(), goal() and dump() are called in a run as a subclass has them."""
    kind, called = type(memory), set[str]()

    def noted(name: str) -> Any:
        inherited = getattr(kind, name)

        async def method(self: Memory, *arguments: Any) -> Any:
            called.add(name)
            return await inherited(self, *arguments)

        return method

    methods = ("set_goal", "update", "goal", "dump")
    call = Action(name="f", args={})
    await memory.update([Message.assistant("", [call])])
    memory.control.request_calls([call])  # left open by an earlier run
    memory.__class__ = type(kind.__name__, (kind,), {name: noted(name) for name in methods})
    net = react(ScriptedLLM(["answer"]), prompt="Reach the goal: {goal}")
    await Brain(net, memory).run(Message.user("goal"))
    expect(sorted(called), sorted(methods), "the methods of a subclass that a run has called")
    expect(contents(await memory.goal()), ["goal"], "goal() after the run")
    expect(contents(await memory.turn()), ["goal", "answer"], "turn() after the run")


@needs(6)
async def turns_tell_what_belongs_to_each_goal(memory: Memory) -> None:
    """turns() has a record of each goal: its messages, its run and its answer."""
    expect(await memory.turns(), [], "turns() of a new memory")
    written = [
        [Message.user("one"), Message.user("more"), Message.assistant("1")],
        [Message.user("two"), Message.assistant("2")],
    ]
    for number, (goal, *said) in enumerate(written):
        await memory.begin(goal, f"run-{number}", "A")
        await memory.update(said)
        memory.control.stop("done", seconds=1, reached_end=True)
        await memory.checkpoint()
    turns = await memory.turns()
    expect([[*turn.messages] for turn in turns], written, "the messages of turns()")
    expect([turn.run_id for turn in turns], ["run-0", "run-1"], "run_id of turns()")
    expect([turn.stop_reason for turn in turns], ["done", "done"], "stop_reason of turns()")
    expect([turn.answer for turn in turns], ["1", "2"], "answer of turns()")
    await memory.set_goal("three")
    last = (await memory.turns())[-1]
    expect((last.goal.content, last.run_id), ("three", None), "the turn of a goal without a run")


async def the_last_result_is_that_of_the_last_run(memory: Memory) -> None:
    """last_result() says how the last run ended: None before, and while it is in progress."""
    expect(await memory.last_result(), None, "last_result() of a new memory")
    await memory.begin(Message.user("goal"), "run-1", "A")
    expect(await memory.last_result(), None, "last_result() while the run is in progress")
    memory.control.failure = "it broke"
    memory.control.stop("failed", seconds=1, reached_end=False)
    await memory.checkpoint()
    result = await memory.last_result()
    expect_true(result is not None, "last_result() after the run: expected a result")
    if result is not None:
        expect(result.run_id, "run-1", "run_id of last_result()")
        expect((result.stop_reason, result.failure), ("failed", "it broke"), "why it ended")
        expect(contents(result.messages), ["goal"], "messages of last_result()")


async def a_snapshot_does_not_change(memory: Memory) -> None:
    """A snapshot is a copy of messages and control."""
    await memory.update([Message.user("one")])
    snapshot = await memory.snapshot()
    before = snapshot.model_dump_json()
    await memory.update([Message.user("two")])
    memory.control.scratch["new"] = True
    expect(snapshot.model_dump_json(), before, "an earlier snapshot")


@needs(2)
async def a_fork_is_independent(memory: Memory) -> None:
    """fork() copies goal, messages, control and view, and shares the tools."""
    await memory.set_goal("goal")
    await memory.update([Message.user("common")])
    fork = await memory.fork()
    await fork.update([Message.user("only in the fork")])
    await memory.update([Message.user("only in the original")])
    fork.control.step = 99
    own = await fork.dump()
    expect(contents(own)[-1], "only in the fork", "the fork's dump()")
    expect(contents(await memory.dump())[-1], "only in the original", "dump()")
    expect(ids(own)[:-1], ids(await memory.dump())[:-1], "the messages that both hold")
    expect(await fork.goal(), await memory.goal(), "the fork's goal()")
    await fork.set_goal("other")
    expect(contents(await memory.goal()), ["goal"], "goal() after the fork was given another")
    expect(memory.control.step, 0, "step of the original")


@needs(3)
async def a_fork_has_the_branches_that_wait(memory: Memory) -> None:
    """fork() of a memory whose run waits in branches copies them: call copy_branches()."""
    await memory.begin(Message.user("goal"), "run-1", "STATE")
    branch = await memory.branch("a")
    branch.control.begin_branch("run-1", memory.control, "a", "STATE")
    await branch.update([Message.user("in the branch")])
    branch.control.wait_in_branch("input")
    await branch.checkpoint()
    branch._keep_branch()
    await memory.release()  # the run has stopped
    fork = await memory.fork()
    expect_true(await fork.has_branches(), "A fork lost a branch that waits")
    copied = await fork.branch("a")
    expect_true(copied.resumed, "A branch of a fork does not continue that of the original")
    await copied.update([Message.user("in the copy")])
    own = await memory.branch("a")
    expect(contents(await copied.dump())[-1], "in the copy", "the end of the copied branch")
    expect(contents(await own.dump())[-1], "in the branch", "the end of the original branch")


@needs(40)
async def concurrent_updates_are_all_kept(memory: Memory) -> None:
    """Messages of one update() stay together: do not await between reading and writing."""
    batches = [[Message.user(f"{i}.{j}") for j in range(2)] for i in range(20)]
    async with anyio.create_task_group() as group:
        for batch in batches:
            group.start_soon(memory.update, batch)
    kept = ids(await memory.dump())
    expect(sorted(kept), sorted(i for batch in batches for i in ids(batch)), "the messages")
    for batch in batches:
        at = kept.index(batch[0].id)
        expect(kept[at : at + 2], ids(batch), "the messages of one update")


@needs(2)
async def a_cancelled_update_is_whole_or_absent(memory: Memory) -> None:
    """update() adds all of its messages or none, also if it is cancelled."""
    batch = [Message.user("one"), Message.user("two")]
    with anyio.CancelScope() as scope:
        scope.cancel()
        await memory.update(batch)
    expect_true(ids(await memory.dump()) in ([], ids(batch)), "A cancelled update was kept in part")
    await memory.update([Message.user("three")])
    expect(contents(await memory.dump())[-1], "three", "an update after a cancelled one")


async def open_and_aclose_are_idempotent(memory: Memory) -> None:
    """open() and aclose() may be called twice."""
    await memory.open()
    await memory.open()
    await memory.aclose()
    await memory.aclose()


async def added_tools_are_offered(memory: Memory) -> None:
    """add_tools() makes tools available, and forks share them."""
    memory.add_tools([look_up])
    fork = await memory.fork()
    for which, name in ((memory, "the memory"), (fork, "a fork")):
        tool = which.get_tool("look_up")
        expect_true(tool is not None, f"get_tool() of {name} does not find an added tool")
        expect_true(tool is memory.get_tool("look_up"), f"{name} has a copy of the tool")
        expect_true("look_up" in which.offered_tools(), f"offered_tools() of {name} lacks it")
        expect_true("look_up" in json.loads(which.list_tools()), f"list_tools() of {name} lacks it")


ANY_MEMORY = behaviours(globals())


async def tools_passed_to_it_are_offered(memory: Memory) -> None:
    """Pass ``tools`` on: super().__init__(tools)."""
    found = sorted(memory.available_tools)
    expect_true("look_up" in found, f"available_tools lacks a tool that was passed: {found}")
    expect_true("look_up" in memory.offered_tools(), "offered_tools() lacks it")
