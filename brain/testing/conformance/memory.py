"""The conformance suite for memories, and the behaviours of every memory."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

import anyio

from agent_brain.memories.base import Memory
from agent_brain.memories.journal import Journal, RamJournal
from agent_brain.memories.message import Message
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.testing.conformance.check import (
    Check,
    behaviours,
    contents,
    expect,
    expect_true,
    ids,
    needs,
)
from agent_brain.testing.conformance.journaled import JOURNALED
from agent_brain.testing.conformance.queries import QUERIES
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
        factory: Makes a new, empty memory; sync or async.
        query_face: Whether to check the queries of the built-in memories, too (``messages``,
            ``forget`` …).
        journaled: Makes a memory on ``(journal, session, tenant)``, to check persistence. Each
            memory that it makes opens the session.
        journal: Makes a new journal for each of those checks.
        holds: The number of messages that a memory with a limited size is sure to hold; behaviours
            that need more are left out. None: it holds all.
    """
    checks = [Check(behaviour, factory) for behaviour in ANY_MEMORY + QUERIES * query_face]
    if journaled is not None:
        checks += [_JournaledCheck(behaviour, journaled, journal) for behaviour in JOURNALED]
    return [check for check in checks if holds is None or check.needs <= holds]


class _JournaledCheck(Check):
    """A check whose memories share one journal, which is closed afterwards."""

    def __init__(
        self, behaviour: Any, make: JournaledMemory, journal: Callable[[], Journal]
    ) -> None:
        super().__init__(behaviour, make)
        self._new_journal = journal

    async def __call__(self) -> None:
        journal = self._new_journal()

        def make(session: str = "s", tenant: str | None = None) -> Any:
            return self._make(journal, session, tenant)

        try:
            await Check(self._behaviour, make)()
        finally:
            await journal.aclose()


async def a_new_memory_is_empty(memory: Memory) -> None:
    for name in ("goal", "dump", "context"):
        expect(await getattr(memory, name)(), [], f"{name}() of a new memory")
    expect(memory.done, False, "done of a new memory")
    expect(memory.next_action, None, "next_action of a new memory")


async def the_goal_is_shown_to_the_model(memory: Memory) -> None:
    await memory.set_goal("What is 2 + 2?")
    expect(contents(await memory.goal()), ["What is 2 + 2?"], "goal()")
    expect(contents(await memory.context()), ["What is 2 + 2?"], "context()")
    expect(await memory.dump(), [], "dump(), which leaves out the current goal")


async def a_goal_may_be_a_message(memory: Memory) -> None:
    goal = Message.user("hello", name="Ann", metadata={"a": 1})
    await memory.set_goal(goal)
    expect(await memory.goal(), [goal], "goal()")


@needs(4)
async def messages_keep_their_order(memory: Memory) -> None:
    await memory.set_goal("goal")
    written = [Message.user("one"), Message.assistant("two"), Message.user("three")]
    await memory.update(written[:2])
    await memory.update(written[2:])
    expect(ids(await memory.dump()), ids(written), "dump()")
    shown = [i for i in ids(await memory.context()) if i in ids(written)]
    expect(shown, ids(written)[-len(shown) :], "the messages shown by context()")


async def an_empty_update_changes_nothing(memory: Memory) -> None:
    await memory.update([])
    expect(await memory.dump(), [], "dump()")


async def returned_lists_are_copies(memory: Memory) -> None:
    await memory.set_goal("goal")
    await memory.update([Message.user("one")])
    for name in ("goal", "dump", "context", "turn"):
        (await getattr(memory, name)()).clear()
    expect(len(await memory.context()), 2, "messages after the caller cleared returned lists")


async def the_list_passed_to_update_is_copied(memory: Memory) -> None:
    given = [Message.user("one")]
    await memory.update(given)
    given.clear()
    expect(len(await memory.dump()), 1, "messages after the caller cleared the list")


@needs(9)
async def any_text_survives(memory: Memory) -> None:
    texts = [*TEXTS, "x" * 1_000_000]
    await memory.update([Message.user(text) for text in texts])
    expect(contents(await memory.dump()), texts, "dump()")


@needs(3)
async def calls_and_results_survive(memory: Memory) -> None:
    calls = [Action(name="f", args={"x": [1, {"y": None}]}), Action(name="g", args={})]
    written = [
        Message.assistant("", calls, cause_by="Reasoning"),
        *[Message.tool("done", call, is_error=True) for call in calls],
    ]
    await memory.update(written)
    expect(await memory.dump(), written, "dump()")


@needs(2)
async def a_turn_begins_with_its_goal(memory: Memory) -> None:
    for goal, answer in (("first", "answer one"), ("second", "answer two")):
        await memory.set_goal(goal)
        await memory.update([Message.assistant(answer)])
    expect(contents(await memory.turn()), ["second", "answer two"], "turn()")


@needs(2)
async def a_snapshot_is_json_and_restores(memory: Memory, other: Memory) -> None:
    await memory.set_goal("goal")
    await memory.update([Message.assistant("one"), Message.user("two")])
    memory.control.step = 7
    memory.control.scratch["note"] = {"a": [1, 2]}
    text = (await memory.snapshot()).model_dump_json()
    await other.restore(Snapshot.from_json(text))
    expect(await other.goal(), await memory.goal(), "goal() after restore()")
    expect(await other.dump(), await memory.dump(), "dump() after restore()")
    expect(other.control, memory.control, "control after restore()")


async def results_are_shown_with_their_call(memory: Memory) -> None:
    await memory.set_goal("goal")
    calls = [Action(name="f", args={}), Action(name="g", args={})]
    asking, between = Message.assistant("", calls), Message.user("by the way")
    results = [Message.tool("done", call) for call in calls]
    for message in (asking, results[1], between, results[0]):
        await memory.update([message])
    shown = ids(await memory.context())
    at = shown.index(asking.id)
    together = ids([asking, results[1], results[0]])
    expect(shown[at : at + 3], together, "context(), from a call with late results on")
    expect_true(between.id not in shown[:at], "A later message is shown before the call")


async def the_whole_turn_is_returned(memory: Memory) -> None:
    await memory.update([Message.user("before")])
    goal = Message.user("goal")
    await memory.begin(goal, "run", "START")
    said = [Message.assistant(str(number)) for number in range(4)]
    for message in said:
        await memory.update([message])
    expect(ids(await memory.turn()), ids([goal, *said]), "turn()")
    await memory.begin(Message.user("next"), "run-2", "START")
    expect(contents(await memory.turn()), ["next"], "turn() of the next turn")


async def a_snapshot_does_not_change(memory: Memory) -> None:
    await memory.update([Message.user("one")])
    snapshot = await memory.snapshot()
    before = snapshot.model_dump_json()
    await memory.update([Message.user("two")])
    memory.control.scratch["new"] = True
    expect(snapshot.model_dump_json(), before, "an earlier snapshot")


@needs(2)
async def a_fork_is_independent(memory: Memory) -> None:
    await memory.set_goal("goal")
    await memory.update([Message.user("common")])
    fork = await memory.fork()
    await fork.update([Message.user("only in the fork")])
    await memory.update([Message.user("only in the original")])
    fork.control.step = 99
    expect(contents(await fork.dump())[-1], "only in the fork", "the fork's dump()")
    expect(contents(await memory.dump())[-1], "only in the original", "dump()")
    expect(len(await fork.dump()), len(await memory.dump()), "number of messages")
    expect(memory.control.step, 0, "step of the original")


@needs(40)
async def concurrent_updates_are_all_kept(memory: Memory) -> None:
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
    batch = [Message.user("one"), Message.user("two")]
    with anyio.CancelScope() as scope:
        scope.cancel()
        await memory.update(batch)
    expect_true(ids(await memory.dump()) in ([], ids(batch)), "A cancelled update was kept in part")
    await memory.update([Message.user("three")])
    expect(contents(await memory.dump())[-1], "three", "an update after a cancelled one")


async def open_and_aclose_are_idempotent(memory: Memory) -> None:
    await memory.open()
    await memory.open()
    await memory.aclose()
    await memory.aclose()


ANY_MEMORY = behaviours(globals())
