"""The suites for memories and journals accept correct ones, and name the rule that others break."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Sequence
from typing import Any

import anyio
import pytest

from agent_brain import Memory, Message, MessagesMemory
from agent_brain.memories import Control, Entry, Journal, RamJournal, Snapshot
from agent_brain.memories.journal.lease import Lease
from agent_brain.testing import Check, journal_conformance, memory_conformance

pytestmark = pytest.mark.anyio


class ListMemory(Memory):
    """A memory of four methods, as the documentation has it."""

    def __init__(self, tools: Any = ()) -> None:
        super().__init__(tools)
        self.current: list[Message] = []
        self.said: list[Message] = []

    async def set_goal(self, goal: str | Message) -> None:
        self.current = [goal if isinstance(goal, Message) else Message.user(goal)]
        self.said += self.current

    async def update(self, messages: list[Message]) -> None:
        for message in messages:
            if message.id not in {known.id for known in self.said}:
                self.said.append(message)

    async def goal(self) -> list[Message]:
        return list(self.current)

    async def dump(self) -> list[Message]:
        return [message for message in self.said if message not in self.current]


class DoublesMessages(ListMemory):
    async def update(self, messages: list[Message]) -> None:
        self.said += [m for message in messages for m in (message, message)]


class AddsKnownMessages(ListMemory):
    async def update(self, messages: list[Message]) -> None:
        self.said += messages


class ShowsTheGoalTwice(ListMemory):
    async def dump(self) -> list[Message]:
        return list(self.said)


class DropsEarlierTurns(ListMemory):
    async def set_goal(self, goal: str | Message) -> None:
        self.said.clear()
        await super().set_goal(goal)


class DropsEarlierGoals(ListMemory):
    async def set_goal(self, goal: str | Message) -> None:
        self.said = await self.dump()
        await super().set_goal(goal)


class MovesEarlierGoals(ListMemory):
    async def set_goal(self, goal: str | Message) -> None:
        self.said = [*await self.dump(), *self.current]
        await super().set_goal(goal)


class IgnoresTools(ListMemory):
    def __init__(self, tools: Any = ()) -> None:
        super().__init__()


class ForksWithoutTools(ListMemory):
    async def fork(self) -> Memory:
        fork = copy.deepcopy(self)
        fork.available_tools = {}
        return fork


class HidesToolResults(ListMemory):
    async def context(self) -> list[Message]:
        return [m for m in await super().context() if not (m.tool_calls or m.tool_call_id)]


class DropsTheFieldsOfCalls(ListMemory):
    async def update(self, messages: list[Message]) -> None:
        await super().update([m.model_copy(update={"tool_calls": ()}) for m in messages])


class ShowsTheLastFive(ListMemory):
    async def context(self) -> list[Message]:
        return (await super().context())[-5:]


class NewestFirst(ListMemory):
    async def dump(self) -> list[Message]:
        return (await super().dump())[::-1]


class ReturnsItsList(ListMemory):
    async def goal(self) -> list[Message]:
        return self.current


class KeepsTheTextOfGoals(ListMemory):
    async def set_goal(self, goal: str | Message) -> None:
        await super().set_goal(goal if isinstance(goal, str) else goal.content)


class ForksShareMessages(ListMemory):
    async def fork(self) -> Memory:
        fork = copy.copy(self)
        fork.control = copy.deepcopy(self.control)
        return fork


class ForksShareControl(ListMemory):
    async def fork(self) -> Memory:
        fork = copy.deepcopy(self)
        fork.control = self.control
        return fork


class SnapshotsWithoutControl(ListMemory):
    async def snapshot(self) -> Snapshot:
        return Snapshot(goal=self.current, messages=await self.dump(), control=Control())


class SnapshotsWithoutCalls(ListMemory):
    async def snapshot(self) -> Snapshot:
        snapshot = await super().snapshot()
        snapshot.control.close_calls()
        return snapshot


class LosesConcurrentUpdates(ListMemory):
    async def update(self, messages: list[Message]) -> None:
        said = list(self.said)
        await anyio.lowlevel.checkpoint()
        self.said = said + messages


class UpdatesInPieces(ListMemory):
    async def update(self, messages: list[Message]) -> None:
        for message in messages:
            await super().update([message])
            await anyio.lowlevel.checkpoint()


class BeginsWithoutTheOpenResults(ListMemory):
    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        await super().begin(goal, run_id, state)


class BeginsNoRun(ListMemory):
    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        await self.update([*before])
        await self.set_goal(goal)


class StripsTexts(ListMemory):
    async def update(self, messages: list[Message]) -> None:
        await super().update(
            [m.model_copy(update={"content": m.content.strip()}) for m in messages]
        )


class ClosesOnce(ListMemory):
    async def aclose(self) -> None:
        del self.said


MEMORIES: dict[type[Memory], str] = {
    DoublesMessages: "messages_keep_their_order",
    AddsKnownMessages: "a_known_id_changes_nothing",
    ShowsTheGoalTwice: "the_goal_is_shown_to_the_model",
    DropsEarlierTurns: "earlier_goals_stay_where_they_were_asked",
    DropsEarlierGoals: "earlier_goals_stay_where_they_were_asked",
    MovesEarlierGoals: "earlier_goals_stay_where_they_were_asked",
    IgnoresTools: "tools_passed_to_it_are_offered",
    ForksWithoutTools: "added_tools_are_offered",
    HidesToolResults: "results_are_shown_with_their_call",
    DropsTheFieldsOfCalls: "calls_and_results_survive",
    ShowsTheLastFive: "instructions_stay_in_view",
    NewestFirst: "messages_keep_their_order",
    ReturnsItsList: "lists_are_copied",
    KeepsTheTextOfGoals: "a_goal_may_be_a_message",
    ForksShareMessages: "a_fork_is_independent",
    ForksShareControl: "a_fork_is_independent",
    SnapshotsWithoutControl: "a_snapshot_is_json_and_restores",
    SnapshotsWithoutCalls: "a_snapshot_is_json_and_restores",
    LosesConcurrentUpdates: "concurrent_updates_are_all_kept",
    UpdatesInPieces: "a_cancelled_update_is_whole_or_absent",
    BeginsWithoutTheOpenResults: "begin_starts_a_turn_and_a_run",
    BeginsNoRun: "begin_starts_a_turn_and_a_run",
    StripsTexts: "any_text_survives",
    ClosesOnce: "open_and_aclose_are_idempotent",
}


async def failures(checks: list[Check]) -> dict[str, str]:
    failed = {}
    for check in checks:
        try:
            await check()
        except AssertionError as error:
            failed[check.name] = str(error)
    return failed


def assert_explained(failed: dict[str, str], rule: str) -> None:
    assert rule in failed, failed
    for name, message in failed.items():
        problem, explained = message.rsplit("\n", 1)
        assert problem.strip(": ")
        assert explained.startswith(f"The rule is {name!r}: ")
        assert explained.endswith(".")


@pytest.mark.parametrize("memory", MEMORIES, ids=lambda memory: memory.__name__)
async def test_a_wrong_memory_fails_the_check_of_the_rule_that_it_breaks(
    memory: type[Memory],
) -> None:
    assert_explained(await failures(memory_conformance(memory)), MEMORIES[memory])


async def test_a_memory_of_four_methods_conforms() -> None:
    assert await failures(memory_conformance(ListMemory)) == {}


class OnAnotherSession(MessagesMemory):
    """Forgets whose the session is."""

    def __init__(self, *, tenant: str | None, **options: Any) -> None:
        super().__init__(**options)


class ForgetsControl(MessagesMemory):
    async def checkpoint(self) -> None:
        """Write nothing."""


class NeverRollsBack(MessagesMemory):
    async def rollback(self) -> None:
        """Drop nothing."""


class ClearsInRam(MessagesMemory):
    async def clear(self, **options: Any) -> int:
        return 0


JOURNALED: dict[type[Memory], str] = {
    OnAnotherSession: "sessions_and_tenants_are_separate",
    ForgetsControl: "a_later_memory_of_the_session_is_the_same",
    NeverRollsBack: "an_interrupted_step_is_rolled_back",
    ClearsInRam: "delete_and_clear_persist",
}


@pytest.mark.parametrize("memory", JOURNALED, ids=lambda memory: memory.__name__)
async def test_a_memory_that_does_not_persist_fails_the_check_of_it(memory: Any) -> None:
    def opened(journal: Journal, session: str, tenant: str | None) -> Memory:
        return memory(journal=journal, session=session, tenant=tenant)

    checks = memory_conformance(MessagesMemory, journaled=opened)
    assert_explained(await failures(checks), JOURNALED[memory])


class Wrong(RamJournal):
    """A journal with a fault: one method of it is replaced."""

    def __init__(self, fault: Callable[..., Any]) -> None:
        super().__init__()
        self.fault = fault

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        if self.fault.__name__.startswith("append"):
            return await self.fault(super(), session, entries, expect)
        return await super().append(session, entries, expect=expect, lease=lease)

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        if self.fault.__name__.startswith("read"):
            return await self.fault(super(), session, after)
        return await super().read(session, after, history=history)

    async def sessions(self, prefix: str = "") -> list[str]:
        if self.fault.__name__.startswith("sessions"):
            return await self.fault(super(), prefix)
        return await super().sessions(prefix)

    async def delete(
        self, session: str, seqs: Collection[int] | None = None, *, scrub: bool = True
    ) -> int:
        if self.fault.__name__.startswith("delete"):
            return await self.fault(super(), session, seqs)
        return await super().delete(session, seqs, scrub=scrub)

    async def aclose(self) -> None:
        if not self.fault.__name__.startswith("aclose"):
            await super().aclose()


async def append_without_kinds(journal: Any, session: str, entries: Any, expect: Any) -> int:
    return await journal.append(session, [Entry("k", e.data) for e in entries], expect=expect)


async def append_whatever_is_expected(journal: Any, session: str, entries: Any, expect: Any) -> int:
    return await journal.append(session, entries)


async def append_before_it_compares(journal: Any, session: str, entries: Any, expect: Any) -> int:
    before = await journal.last(session)
    last = await journal.append(session, entries)
    if expect not in (None, before):
        await journal.append(session, [], expect=expect)
    return last


async def append_after_a_look(journal: Any, session: str, entries: Any, expect: Any) -> int:
    if expect is not None:
        await journal.append(session, [], expect=expect)
    await anyio.lowlevel.checkpoint()
    return await journal.append(session, entries)


async def append_one_by_one(journal: Any, session: str, entries: Any, expect: Any) -> int:
    last = await journal.append(session, [], expect=expect)
    for entry in entries:
        last = await journal.append(session, [entry])
        await anyio.lowlevel.checkpoint()
    return last


async def append_to_names_without_case(
    journal: Any, session: str, entries: Any, expect: Any
) -> int:
    return await journal.append(session.lower(), entries, expect=expect)


async def read_from_the_number_on(journal: Any, session: str, after: int) -> list[Entry]:
    return await journal.read(session, after - 1 if after else 0)


async def read_newest_first(journal: Any, session: str, after: int) -> list[Entry]:
    return (await journal.read(session, after))[::-1]


async def sessions_by_pattern(journal: Any, prefix: str) -> list[str]:
    found = await journal.sessions()
    return [n for n in found if all(p in ("_", c) for p, c in zip(prefix, n, strict=False))]


async def delete_all_if_none_are_named(journal: Any, session: str, seqs: Any) -> int:
    return await journal.delete(session, seqs or None)


async def delete_nothing(journal: Any, session: str, seqs: Any) -> int:
    return 0


async def aclose_never() -> None: ...


JOURNALS: dict[Callable[..., Any], str] = {
    append_without_kinds: "entries_are_read_as_written",
    append_whatever_is_expected: "a_conflicting_append_writes_nothing",
    append_before_it_compares: "a_conflicting_append_writes_nothing",
    append_after_a_look: "one_of_many_writers_wins",
    append_one_by_one: "a_cancelled_append_is_whole_or_absent",
    append_to_names_without_case: "sessions_are_separate",
    read_from_the_number_on: "entries_are_read_as_written",
    read_newest_first: "entries_are_read_as_written",
    sessions_by_pattern: "sessions_are_separate",
    delete_all_if_none_are_named: "numbers_are_never_reused",
    delete_nothing: "numbers_are_never_reused",
    aclose_never: "a_closed_journal_raises",
}


@pytest.mark.parametrize("fault", JOURNALS, ids=lambda fault: fault.__name__)
async def test_a_wrong_journal_fails_the_check_of_the_rule_that_it_breaks(
    fault: Callable[..., Any],
) -> None:
    assert_explained(await failures(journal_conformance(lambda: Wrong(fault))), JOURNALS[fault])


class SharesData(RamJournal):
    """Keeps the objects that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[Entry] = []

    async def append(
        self,
        session: str,
        entries: Sequence[Entry],
        *,
        expect: int | None = None,
        lease: Lease | None = None,
    ) -> int:
        self.kept += entries
        return await super().append(session, entries, expect=expect, lease=lease)

    async def read(self, session: str, after: int = 0, *, history: bool = False) -> list[Entry]:
        return self.kept


async def test_a_journal_that_shares_data_with_its_callers_fails() -> None:
    assert_explained(await failures(journal_conformance(SharesData)), "entries_are_copies")


class TakesAnyLease(RamJournal):
    """Lets whoever has the lease of another session write."""

    async def append(self, session: str, entries: Any, **options: Any) -> int:
        held = (self._held or {}).get(session)
        if options.get("lease") is not None and held is not None:
            options["lease"] = held
        return await super().append(session, entries, **options)


async def test_a_journal_that_takes_any_lease_fails() -> None:
    failed = await failures(journal_conformance(TakesAnyLease))
    assert_explained(failed, "a_lease_excludes_others")
