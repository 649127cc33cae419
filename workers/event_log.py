"""The events of a run, in the journal, where any machine reads them; also after a restart."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from pydantic import JsonValue, TypeAdapter

from agent_brain.memories.control import Control
from agent_brain.memories.errors import JournalConflictError, LeaseLostError
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.runs.calls import Call
from agent_brain.states.events import (
    ActionFinished,
    ActionStarted,
    AgentEvent,
    Event,
    PartialOutput,
    Position,
    StateExited,
)
from agent_brain.workers.workflows import Outcome

PLACE = "agent-brain/events"
_EVENT: TypeAdapter[Any] = TypeAdapter(Event)  # of other kinds too
ENDS = ("run_finished", "run_failed")
Counting = Mapping[int, Mapping[str, Any]]


def log_key(id: str, tenant: str | None) -> str:  # noqa: A002 - what it is
    """Return the key of the events of a run: below a session, so that no list shows it."""
    return json.dumps([tenant, PLACE, id], ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class RunEvent:
    """An event of a run, with its number.

    Attributes:
        number: Its number in the run, from 1. Numbers grow; some may be missing.
        event: The event; an :class:`~agent_brain.states.OtherEvent` if a state has yielded an event
            of a class of its own.
        undone: Ranges of the numbers of earlier events that do not count any more, as their step
            was interrupted and is repeated from here on. Only events that say that the run
            continues have any. A reader that starts later never gets those events.
    """

    number: int
    event: AgentEvent
    undone: tuple[range, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values, with ``number`` beside the fields of the event."""
        undone = [[numbers.start, numbers.stop - 1] for numbers in self.undone]
        return {"number": self.number, **self.event.to_dict(), "undone": undone}


@dataclass(eq=False, repr=False)
class RunLog:
    """The log of the events of a run, for the one worker that writes it, and for its readers.

    Args:
        journal: The journal.
        key: The key of the log.

    Attributes:
        seq: The number of the last entry.
        last: The number of the last event.
        counting: The events that count, as JSON, by their numbers.
        outcomes: What the parts of the run came to, by their numbers.
        started: The numbers of the parts that have events; a decision was then taken in.
        starts: How often workers have begun the run since it last completed a step.
    """

    _journal: Journal
    _key: str
    seq: int = 0
    last: int = 0
    counting: dict[int, dict[str, Any]] = field(default_factory=dict)
    outcomes: dict[int, Outcome] = field(default_factory=dict)
    started: set[int] = field(default_factory=set)
    starts: int = 0
    _part: int = 0
    _waiting: list[dict[str, Any]] = field(default_factory=list)
    _start: dict[str, JsonValue] | None = None

    async def open(self) -> Self:
        """Read what is there."""
        self.seq = await self._journal.last(self._key)  # first: what is written after it is read
        for seq, kind, line in await self._journal.rows(self._key):
            data = json.loads(line)
            self.seq = seq
            if kind == "ended":
                self.outcomes[data["part"]] = Outcome.from_json(data["outcome"])
                self.starts = 0
            elif kind == "begun":
                self.starts += 1
            elif kind == "started":
                self._part = data["part"]
                self._undo(data["undone"])
            for number, event in enumerate(data.get("events", ()), data.get("first", 0)):
                self.last = number
                self.started.add(self._part)
                self.counting[number] = event
                if event["kind"] == "state_exited":
                    self.starts = 0
        return self

    def outcome(self, first: int) -> Outcome | None:
        """Return what the run came to in the parts from a number on; None if it has not ended."""
        return next((self.outcomes[n] for n in sorted(self.outcomes) if n >= first), None)

    def _undo(self, ranges: Iterable[Sequence[int]]) -> None:
        """Count the events of these numbers, first and last, no more."""
        for first, last in ranges:
            for number in range(first, last + 1):
                self.counting.pop(number, None)

    async def begin(self, part: int) -> None:
        """Store that a worker takes up the run, so that it counts even if the process ends now.

        Args:
            part: The number of the part that it does.

        Raises:
            LeaseLostError: Another worker has continued the run.
        """
        await self._append([Entry("begun", {"part": part})])

    def start(self, part: int, undone: Iterable[tuple[int, int]]) -> None:
        """Note that a worker begins or continues the run; stored with the next events.

        Args:
            part: The number of the part that it does.
            undone: The numbers of the events that do not count any more, as ranges.
        """
        ranges = [*undone]
        self._undo(ranges)
        self._start = {"part": part, "undone": [[*numbers] for numbers in ranges]}

    def add(self, event: AgentEvent) -> None:
        """Add an event, to be stored with the next :meth:`flush`.

        An object that grows is stored as far as it has come then.
        """
        if isinstance(event, PartialOutput):
            known = event.kind, event.response_id
            waiting = self._waiting
            self._waiting = [e for e in waiting if (e["kind"], e.get("response_id")) != known]
        self._waiting.append(event.to_dict())

    async def flush(self) -> None:
        """Store what waits.

        Raises:
            LeaseLostError: Another worker has continued the run.
        """
        if self._waiting:  # a start is stored with its first event, which names what is undone
            await self._append(self._take())

    async def end(self, part: int, outcome: Outcome) -> None:
        """Store what waits and what a part of the run came to, in one write.

        Raises:
            LeaseLostError: Another worker has continued the run.
        """
        ended = Entry("ended", {"part": part, "outcome": outcome.to_json()})
        await self._append([*self._take(), ended])

    def _take(self) -> list[Entry]:
        """Return what waits as entries."""
        if not (self._waiting or self._start):
            return []
        events, self._waiting = self._waiting, []
        start, self._start = self._start, None
        data: dict[str, Any] = {"first": self.last + 1, "events": events}
        self.last += len(events)
        return [Entry("events", data) if start is None else Entry("started", {**start, **data})]

    async def _append(self, entries: list[Entry]) -> None:
        if not entries:
            return
        try:
            self.seq = await self._journal.append(self._key, entries, expect=self.seq)
        except JournalConflictError as error:
            raise LeaseLostError(
                "Another worker has continued this run; nothing was written", session=self._key
            ) from error


def read_rows(rows: Rows, after: int) -> list[RunEvent]:
    """Return the events in rows of a log that count and have a number above ``after``."""
    found: dict[int, RunEvent] = {}
    for _, kind, line in rows:
        data = json.loads(line)
        undone = tuple(range(first, last + 1) for first, last in data.get("undone", ()))
        for numbers in undone:
            for number in numbers:
                found.pop(number, None)
        if kind in ("begun", "ended"):
            continue
        for number, event in enumerate(data["events"], data["first"]):
            if number > after:
                found[number] = RunEvent(number, _EVENT.validate_python(event), undone)
            undone = ()
    return [*found.values()]


def missing_exit(counting: Counting, control: Control) -> StateExited | None:
    """Return the end of a step that was stored, if the process ended before its event was.

    Args:
        counting: The events that count, by number.
        control: The registers of the run.
    """
    entered, inside = None, 0
    for event in counting.values():
        kind, path = event["kind"], event["path"]
        if kind == "state_entered" and not path:
            entered, inside = event, 0
        elif kind in ("state_exited", *ENDS) and not path:
            entered = None
        elif kind == "state_exited":
            inside += 1
    if entered is None or control.step <= entered["step"] + inside:
        return None
    if inside and not control.done and control.state == entered["state"]:
        return None  # a step of a net inside, whose event is missing
    at = Position(entered["run_id"], entered["step"], entered["state"])
    return StateExited(None if control.done else control.state, at=at)


def undone(counting: Counting) -> list[tuple[int, int]]:
    """Return the numbers of the events that a repeated step undoes, as ranges.

    These are the events of the interrupted step; of nets inside it and of branches, which continue
    where they were, those of their own interrupted steps.
    """
    complete: dict[tuple[str, ...], int] = {}
    for number, event in counting.items():
        if event["kind"] == "state_exited":
            complete[tuple(event["path"])] = number
        elif event["kind"] in ENDS:
            complete[()] = number
    outer = complete.get((), 0)
    lost = [
        number
        for number, event in counting.items()
        if event["state"] is not None and number > max(outer, complete.get(tuple(event["path"]), 0))
    ]
    return _ranges(lost)


def kept_calls(counting: Counting, pending: Mapping[str, Call], at: Position) -> list[AgentEvent]:
    """Return the events of calls that are not repeated, for a step that is.

    Args:
        counting: The events that count, by number.
        pending: The calls of the step, by ID.
        at: The repeated step.
    """
    shown = {
        event["action"]["id"] for event in counting.values() if event["kind"] == "action_finished"
    }
    events: list[AgentEvent] = []
    for call in pending.values():
        if call.result is not None and call.reported and call.action.id not in shown:
            events.append(ActionStarted(call.action, at=at))
            events.append(ActionFinished(call.action, call.result, at=at))
    return events


def _ranges(numbers: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found
