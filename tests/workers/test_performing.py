"""A part of a run is done once, wherever the process that does it ends."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import anyio
import pytest

from agent_brain import Brain, StopReason, tool
from agent_brain.memories import RamJournal
from agent_brain.memories.errors import JournalError, LeaseLostError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.nets import react
from agent_brain.states import AnswerState, PartialOutput
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, BaseTool, SleepNeeded, ToolContext, report_progress
from agent_brain.workers.event_log import RunEvent, RunLog, log_key, read_rows
from agent_brain.workers.part import Part
from agent_brain.workers.performing import MAX_STARTS, Performance
from agent_brain.workers.workflows import Outcome
from benchmarks.workers.crowd import problems_of_events
from benchmarks.workers.program import CALLS, Clerk

pytestmark = pytest.mark.anyio

PART = Part("run 1", "ann", "session", "clerk", "Work pause 0")


class Only(Enum):
    """The state of a net that only answers."""

    ANSWER = "answer"


class Killed(BaseException):
    """The process has ended."""


class MortalJournal(RamJournal):
    """A journal of a process that ends at a write, before or after it is stored."""

    def __init__(self) -> None:
        super().__init__()
        self.writes = 0
        self.dies_at: tuple[int, bool] | None = None

    async def append(self, session, entries, **options):
        number, self.writes = self.writes, self.writes + 1
        at, stored = self.dies_at or (None, False)
        if at is not None and number >= at:
            if number == at and stored:
                await super().append(session, entries, **options)
            raise Killed
        return await super().append(session, entries, **options)

    def revive(self) -> None:
        self.dies_at, self.writes, self._held = None, 0, None


class Work:
    """Performances of one part by processes that end."""

    def __init__(self) -> None:
        self.journal = MortalJournal()
        self.calls: list[tuple[int, str]] = []

        @tool(idempotent=True)
        def note(number: int, context: ToolContext) -> str:
            """Leave a trace."""
            self.calls.append((number, context.key))
            return f"noted {number}"

        self.brain = Brain(react(Clerk()), "windowed", tools=[note])

    async def perform(self, dies_at: tuple[int, bool] | None = None) -> Outcome | None:
        self.journal.revive()
        self.journal.dies_at = dies_at
        with suppress(Killed):
            return await Performance(PART, self.brain, self.journal).perform()
        return None


async def events_of(journal: Journal, part: Part = PART) -> list[RunEvent]:
    return read_rows(await journal.rows(log_key(part.id, part.tenant)), 0)


async def test_a_run_is_done_with_its_events() -> None:
    work = Work()

    outcome = await work.perform()

    assert outcome is not None
    assert outcome.to_result().answer.endswith(f"Done after {CALLS} calls.")
    assert outcome.to_result().run_id == "ann:run%201"
    assert problems_of_events(await events_of(work.journal)) == []


@pytest.mark.thorough
async def test_a_run_that_is_killed_at_any_write_is_continued() -> None:
    whole = Work()
    await whole.perform()

    for at in range(whole.journal.writes):
        for stored in (False, True):
            work = Work()
            if await work.perform((at, stored)) is not None:
                continue  # it had fewer writes this time: events are stored by the clock

            outcome = await work.perform()

            assert outcome is not None
            assert outcome.to_result().answer.endswith(f"Done after {CALLS} calls."), (at, stored)
            assert len({key for _, key in work.calls}) == CALLS, (at, stored)
            problems = problems_of_events(await events_of(work.journal))
            assert problems == [], (at, stored)


async def test_a_run_that_is_killed_twice_is_continued() -> None:
    for first in range(0, 12, 3):
        for second in range(0, 8, 2):
            work = Work()
            await work.perform((first, True))
            await work.perform((second, True))

            outcome = await work.perform()

            assert outcome is not None
            assert len({key for _, key in work.calls}) == CALLS
            assert problems_of_events(await events_of(work.journal)) == [], (first, second)


async def test_readers_are_told_what_a_repeated_step_undoes() -> None:
    told = 0
    for at in range(2, 14):
        work = Work()
        await work.perform((at, True))
        rows = await work.journal.rows(log_key(PART.id, PART.tenant))
        known = read_rows(rows, 0)
        await work.perform()

        more = await work.journal.rows(log_key(PART.id, PART.tenant), rows.seqs[-1])
        news = read_rows(more, known[-1].number if known else 0)
        undone = {n for event in news for numbers in event.undone for n in numbers}
        assert {event.event.kind for event in news if event.undone} <= {"run_started"}, at
        counting = {event.number for event in await events_of(work.journal)}
        assert undone == {event.number for event in known} - counting, at
        told += len(undone)
    assert told


async def test_a_part_that_has_ended_is_not_done_again() -> None:
    work = Work()
    first = await work.perform()

    assert await work.perform() == first
    assert len(work.calls) == CALLS


async def test_a_step_that_ends_every_worker_is_given_up() -> None:
    work = Work()
    for _ in range(MAX_STARTS):
        await work.perform((1, True))

    outcome = await work.perform()

    assert outcome is not None
    assert outcome.error is not None
    assert "workers have ended" in outcome.error["message"]


async def test_a_process_that_ends_at_the_first_model_call_counts() -> None:
    journal = MortalJournal()

    class Deadly(Clerk):
        async def stream(self, messages, *, tools=(), output_type=None):
            journal.dies_at = (journal.writes, False)
            raise Killed
            yield ""

    for _ in range(MAX_STARTS):
        journal.revive()
        with suppress(Killed):
            await Performance(PART, Brain(react(Deadly())), journal).perform()

    journal.revive()
    outcome = await Performance(PART, Brain(react(Deadly())), journal).perform()

    assert outcome.error is not None
    assert f"{MAX_STARTS} workers have ended" in outcome.error["message"]


async def test_a_run_that_was_passed_on_twice_ends_once() -> None:
    work = Work()
    await work.perform((5, True))
    first = await work.perform()

    again = await Performance(PART.following(), work.brain, work.journal).perform()

    assert again == first
    assert problems_of_events(await events_of(work.journal)) == []


def perform(part: Part, journal: Journal, *turns: object, **options) -> Performance:
    brain = Brain(react(ScriptedLLM([*turns])), "messages", **options)
    return Performance(part, brain, journal)


async def test_a_run_that_failed_says_so_without_secrets() -> None:
    error = ValueError("no luck with sk-proj-abcdefghijklmnopqrstuvwxyz012345")
    outcome = await perform(PART, RamJournal(), error).perform()

    assert outcome.kind == "failed"
    assert outcome.error == {"type": "ValueError", "message": "no luck with [hidden]"}


async def test_a_run_that_failed_is_continued_when_it_is_resumed() -> None:
    journal = RamJournal()
    await perform(PART, journal, ValueError("no luck")).perform()

    outcome = await perform(PART.resumed(begun=True, decisions=None), journal, "Fine.").perform()

    assert outcome.to_result().answer == "Fine."
    kinds = [item.event.kind for item in await events_of(journal)]
    assert kinds.count("run_failed") == kinds.count("run_finished") == 1


async def test_a_run_that_waits_is_continued_with_the_decision() -> None:
    charged = []

    @tool(requires_approval=True)
    def charge(euros: int) -> str:
        """Charge the customer."""
        charged.append(euros)
        return "charged"

    journal, call = RamJournal(), Action(name="charge", args={"euros": 30})
    waiting = await perform(PART, journal, call, tools=[charge]).perform()
    assert waiting.waits
    following = PART.resumed(begun=True, decisions={"approve": [call.id]})

    outcome = await perform(following, journal, "Done.", tools=[charge]).perform()

    assert outcome.to_result().answer == "Done."
    assert charged == [30]
    assert await perform(following.following(), journal, tools=[charge]).perform() == outcome


def make_charge() -> tuple[BaseTool, list[str]]:
    charged: list[str] = []

    @tool(requires_approval=True, idempotent=True)
    def charge(euros: int, context: ToolContext) -> str:
        """Charge the customer."""
        charged.append(context.key)
        return "charged"

    return charge, charged


@pytest.mark.parametrize("stored", [False, True])
async def test_a_decision_is_taken_in_once_wherever_the_process_ends(stored: bool) -> None:
    call = Action(name="charge", args={"euros": 30})
    for at in range(12):
        charge, charged = make_charge()
        journal = MortalJournal()
        await perform(PART, journal, call, tools=[charge]).perform()
        following = PART.resumed(begun=True, decisions={"approve": True})
        journal.revive()
        journal.dies_at = (at, stored)
        with suppress(Killed):
            await perform(following, journal, "Done.", tools=[charge]).perform()
        journal.revive()

        outcome = await perform(following, journal, "Done.", tools=[charge]).perform()

        assert outcome.to_result().answer == "Done.", at
        assert len(set(charged)) == 1, at


async def test_a_run_whose_session_has_another_run_fails() -> None:
    journal = RamJournal()
    await perform(PART, journal, "One.").perform()
    other = Part("run 2", "ann", "session", "clerk", "Again")
    await perform(other, journal, "Two.").perform()

    outcome = await perform(PART.resumed(begun=True, decisions=None), journal, "Three.").perform()

    assert outcome.error is not None
    assert "Another run has begun in session 'session'" in outcome.error["message"]


async def test_a_run_that_is_handed_back_ends_after_its_step_and_is_continued() -> None:
    journal = RamJournal()
    call = Action(name="wait", args={})
    performances: list[Performance] = []

    @tool
    def wait() -> str:
        """Wait."""
        performances[0].hand_back()
        return "waited"

    performances.append(perform(PART, journal, call, tools=[wait]))
    assert (await performances[0].perform()).kind == "passed_on"

    outcome = await perform(PART.following(), journal, "Done.", tools=[wait]).perform()

    assert outcome.to_result().answer == "Done."
    kinds = [item.event.kind for item in await events_of(journal)]
    assert kinds.count("run_started") == 2
    assert kinds.count("run_finished") == kinds.count("action_started") == 1


async def test_a_run_that_is_cancelled_ends_at_once() -> None:
    journal = RamJournal()
    performances: list[Performance] = []

    @tool
    async def wait() -> None:
        """Wait."""
        performances[0].cancel()
        await anyio.sleep_forever()

    call = Action(name="wait", args={})
    performances.append(perform(PART, journal, call, tools=[wait]))

    outcome = await performances[0].perform()

    assert outcome.to_result().stop_reason is StopReason.CANCELLED


async def test_a_run_that_is_cancelled_before_it_begins_is_cancelled() -> None:
    performance = perform(PART, RamJournal(), "Hello.")
    performance.cancel()

    outcome = await performance.perform()

    assert outcome.to_result().stop_reason is StopReason.CANCELLED


async def test_text_is_stored_before_the_model_has_ended() -> None:
    journal = RamJournal()
    go_on = anyio.Event()

    class Slow(Clerk):
        async def stream(self, messages, *, tools=(), output_type=None):
            yield "Well, "
            await go_on.wait()
            yield "done."

    performance = Performance(PART, Brain(react(Slow())), journal)
    async with anyio.create_task_group() as group:
        group.start_soon(performance.perform)
        while not any(e.event.kind == "text_delta" for e in await events_of(journal)):
            await anyio.sleep(0.01)
        go_on.set()

    texts = [e.event.text for e in await events_of(journal) if e.event.kind == "text_delta"]
    assert texts == ["Well, ", "done."]


async def test_a_run_that_is_dropped_leaves_what_a_process_that_ends_does() -> None:
    journal = RamJournal()
    calls: list[int] = []
    performances: list[Performance] = []

    @tool(idempotent=True)
    async def wait() -> str:
        """Wait."""
        calls.append(len(calls))
        if len(calls) == 1:
            performances[0].drop()
            await anyio.sleep_forever()
        return "waited"

    call = Action(name="wait", args={})
    performances.append(perform(PART, journal, call, tools=[wait]))
    with pytest.raises(LeaseLostError):
        await performances[0].perform()

    outcome = await perform(PART.following(), journal, "Done.", tools=[wait]).perform()

    assert outcome.to_result().answer == "Done."
    assert calls == [0, 1]
    kinds = [item.event.kind for item in await events_of(journal)]
    assert kinds.count("action_finished") == kinds.count("run_finished") == 1


class ForgetfulJournal(RamJournal):
    """A journal that fails to store the events of a run once."""

    def __init__(self, fails_at: int) -> None:
        super().__init__()
        self.left = fails_at

    async def append(self, session, entries, **options):
        if "agent-brain/events" in session:
            self.left -= 1
            if self.left == 0:
                raise JournalError("The server is away")
        return await super().append(session, entries, **options)


async def test_a_run_does_not_get_ahead_of_events_that_could_not_be_stored() -> None:
    work = Work()
    for at in range(1, 18):
        journal = ForgetfulJournal(at)
        try:
            await Performance(PART, work.brain, journal).perform()
        except JournalError:
            await Performance(PART, work.brain, journal).perform()

        assert problems_of_events(await events_of(journal)) == [], at


async def test_nothing_is_stored_after_events_that_could_not_be_while_a_tool_works() -> None:
    class Away(RamJournal):
        fails = failed = False
        late: list[str] = []

        async def append(self, session, entries, **options):
            if self.fails and "agent-brain/events" in session:
                self.failed = True
                raise JournalError("The server is away")
            if self.failed:
                self.late += [entry.kind for entry in entries]
            return await super().append(session, entries, **options)

    journal = Away()

    @tool
    async def wait() -> str:
        """Wait."""
        journal.fails = True
        report_progress(1)
        await anyio.sleep_forever()
        return "waited"

    performance = perform(PART, journal, Action(name="wait", args={}), tools=[wait])
    with pytest.raises(JournalError, match="The server is away"):
        await performance.perform()

    assert journal.failed
    assert journal.late == []


async def test_a_run_that_sleeps_says_until_when_and_is_resumed() -> None:
    ready: list[bool] = []
    tomorrow = datetime.now(UTC) + timedelta(days=1)

    @tool
    def fetch() -> str:
        """Fetch it."""
        if not ready:
            raise SleepNeeded(tomorrow)
        return "fetched"

    llm = ScriptedLLM([Action(name="fetch", args={}), "Here it is."])
    brain, journal = Brain("react", tools=[fetch], llm=llm), RamJournal()

    slept = await Performance(PART, brain, journal).perform()
    again = Outcome.from_json(slept.to_json())
    assert (again.to_result().stop_reason, again.to_result().wake_at) == ("sleeping", tomorrow)

    ready.append(True)
    resumed = PART.resumed(begun=True, decisions={})
    done = await Performance(resumed, brain, journal).perform()
    assert done.to_result().answer == "Here it is."


async def test_a_log_that_is_written_while_it_is_read_is_not_written_from_an_old_state() -> None:
    class Slow(RamJournal):
        writes_now = False

        async def last(self, session: str) -> int:
            found = await super().last(session)
            await self.meanwhile(session)
            return found

        async def rows(self, session: str, *args: Any, **options: Any) -> Rows:
            found = await super().rows(session, *args, **options)
            await self.meanwhile(session)
            return found

        async def meanwhile(self, session: str) -> None:
            if self.writes_now and session == log_key(PART.id, PART.tenant):
                self.writes_now = False
                await super().append(session, [Entry("begun", {"part": 0})])

    journal = Slow()
    log = RunLog(journal, log_key(PART.id, PART.tenant))
    journal.writes_now = True
    await log.open()
    if log.seq != await RamJournal.last(journal, log_key(PART.id, PART.tenant)):
        with pytest.raises(LeaseLostError):
            await log.begin(0)
    assert log.starts == log.seq


async def test_an_object_that_grows_is_stored_as_far_as_it_has_come_at_each_write() -> None:
    work = Work()
    text = json.dumps([f"stop {number}" for number in range(200)])
    pieces = ['{"value": ', *(text[i : i + 7] for i in range(0, len(text), 7)), "}"]
    state = AnswerState(ScriptedLLM([pieces]), output_type=list[str])
    work.brain = Brain({Only.ANSWER: state}, "windowed")

    outcome = await work.perform()

    assert outcome is not None
    stored = [each.event for each in await events_of(work.journal)]
    grown = [event for event in stored if isinstance(event, PartialOutput)]
    assert 1 <= len(grown) < 20  # more only if the machine stands still between the pieces
    assert grown[-1].output == json.loads(text)
