"""Record what a step reports: the text and events that it streams."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import chain, pairwise
from typing import Any

from agent_brain.common.text import clean
from agent_brain.limits import StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role
from agent_brain.memories.runs.human_requests import key_of_branch
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import (
    NOWHERE,
    ActionFinished,
    ActionRequested,
    ApprovalRequested,
    Event,
    InputRequested,
    PartialOutput,
    Position,
    ResponseStarted,
    SleepRequested,
    TextDelta,
    UsageReported,
    set_position,
)
from agent_brain.states.models.llm import Thought
from agent_brain.states.usage import Usage
from agent_brain.states.work import StreamItem
from agent_brain.usage.budget import Budget

ASSISTANT = Role.ASSISTANT  # looking up an enum member is slow


class StepReport:
    """The report of a step.

    Attributes:
        said: The text that it streamed, without thoughts, in pieces.
        said_before: The text of the last step before it that streamed any.
        thought: Its thoughts, in pieces.
        branches: How many of each name it has begun.
        finished: The tool calls that have finished.
        requested: Whether a model requested tool calls.
        waits: What the run waits for within the step, if it does: a person, a time, or to be
            resumed after a pause.
        cut: The limit that was reached within the step, if one was: it has refused a call, or
            stopped an inner net.
        error: What the state raised, if the net has an edge for its errors.
        partial: What has come of the object of an output type, unless its text has come too.
        inner: The text of an inner net that was cut short, if it is that of the state.
        unfinished: Whether the run ends within the step, which is repeated when it is resumed.
        sources: Where in ``said`` the text of another model response begins, and its ID.
    """

    requested = False
    waits: StopReason | None = None
    cut: StopReason | None = None
    error: Exception | None = None
    partial: Any = None
    inner = ""
    branches: dict[str, int] | None = None
    unfinished = False
    sources: tuple[tuple[int, str | None], ...] = ()
    finished: tuple[ActionFinished, ...] = ()

    def __init__(self, last: StepReport | None = None) -> None:  # at every step: no dataclass
        self.said: list[str] = []
        self.thought: list[str] = []
        self.said_before: Sequence[str] = () if last is None else last.said or last.said_before

    def unrecorded(self, recorded: Iterable[str]) -> str:
        """Return the text that no message holds yet.

        Args:
            recorded: The texts of the messages of the assistant in this turn.
        """
        known = [text.strip() for text in recorded if text.strip()]
        missing: list[str] = []
        for of_response, text in self._texts():
            said = text.strip()
            if any(said == one or said.endswith(f"\n{one}") for one in known):
                continue
            if not of_response and known and said.startswith(known[-1]):  # the beginning is
                text = said.removeprefix(known[-1])
            if text.strip():
                missing.append(text)
        return "\n\n".join(missing)

    def _texts(self) -> Iterator[tuple[bool, str]]:
        """Yield what was said, by its sources, and whether they are model responses."""
        texts: dict[str | int, list[str]] = {}
        starts = [(0, None), *self.sources, (len(self.said), None)]
        for (start, source), (end, _) in pairwise(starts):
            texts.setdefault(source or start, []).extend(self.said[start:end])
        for key, parts in texts.items():
            yield isinstance(key, str), "".join(parts)


@dataclass(slots=True, eq=False, repr=False)
class StepRecorder:
    """Records what a step streams: in a report, and in the registers of the run.

    Attributes:
        at: The current step; before the first, where the net begins.
        budget: Counts the usage.
        finish_reason: Why the model response that gave the answer ended, if one did.
        open_responses: The model responses that have begun and not reported their usage, by ID.
        report: The report of the current step.
        used: Whether something was reported in this step.
    """

    _memory: Memory
    budget: Budget
    at: Position
    _: KW_ONLY
    as_thoughts: bool  # text is streamed as thoughts
    asks: bool  # the net can wait for a person
    open_responses: dict[str | None, list[ResponseStarted]] = field(default_factory=dict)
    _counted: frozenset[str | None] = frozenset()  # cut off, before their event
    _answered_by: str | None = None  # the model response that the last text is from
    finish_reason: str | None = None
    _reported: UsageReported | None = None  # the last report: its text may come later
    report: StepReport = field(default_factory=StepReport)
    used: bool = False

    def answer(self) -> str:
        """Return the text of the last step that streamed any."""
        return clean("".join(self.report.said or self.report.said_before))

    def unrecorded(self, messages: Sequence[Message]) -> str:
        """Return the text of the step, as far as no message holds it.

        Args:
            messages: The messages of the turn.
        """
        last = messages[-1] if messages else None
        if last and last.role is ASSISTANT and last.content == "".join(self.report.said):
            return ""  # as mostly
        return self.report.unrecorded(m.content for m in messages if m.role is ASSISTANT)

    def say(self, text: str, finish_reason: str | None) -> None:
        """Record text that was already streamed."""
        self.used = True
        self.report.said.append(text)
        self.report.partial = None
        self._answered_by, self.finish_reason = None, finish_reason

    def note(self, item: StreamItem) -> Event:
        """Record what ``item`` reports; return it as an event that has its position."""
        at = self.at
        if isinstance(item, str):
            if type(item) is Thought:
                return TextDelta(item, thought=True, at=at)
            report, self.used = self.report, True
            report.said.append(item)
            # a state's own remark says nothing about the model
            report.partial = self._answered_by = self.finish_reason = None
            return TextDelta(item, thought=self.as_thoughts, at=at)
        note = _NOTES.get(type(item))
        if note is None and not isinstance(item, Event):
            raise TypeError(
                f"State {at.state!r} yielded {item!r}: yield text, an event from "
                "agent_brain.states, or work such as llm.call(…)"
            )
        event: Event = item  # type: ignore[assignment]
        if event.at is NOWHERE:
            set_position(event, at)
        elif event.at is not at and event.at.path != at.path and event.at.run_id == at.run_id:
            return event  # of an inner net, whose engine has recorded it
        if note is None:
            return event
        self.used = True
        return note(self, event)

    def _note_text(self, event: TextDelta) -> TextDelta:
        if event.thought:
            self.report.thought.append(event.text)
            return event
        said = self.report.said
        if event.response_id is None or event.response_id != self._answered_by:
            if event.response_id is not None or self._answered_by is not None:
                self.report.sources += ((len(said), event.response_id),)
            self._answered_by, self.finish_reason = event.response_id, None
            if (report := self._reported) and report.response_id == event.response_id:
                self.finish_reason = report.finish_reason
        said.append(event.text)
        self.report.partial = None
        return dataclasses.replace(event, thought=True) if self.as_thoughts else event

    def _note_partial(self, event: PartialOutput) -> PartialOutput:
        event = dataclasses.replace(event, thought=True) if self.as_thoughts else event
        if not event.thought:
            self.report.partial = event.output
        return event

    def _note_request(self, event: ActionRequested) -> Event:
        self.report.requested = True
        return event

    def _note_finished(self, event: ActionFinished) -> Event:
        self.report.finished += (event,)
        self.budget.count_tool_call(self._memory.control)
        if (call := self._memory.control.pending.get(event.action.id)) is not None:
            call.uncounted = False
        return event

    def _note_response(self, event: ResponseStarted) -> Event:
        if event.response_id not in self._counted:
            self.open_responses.setdefault(event.response_id, []).append(event)
        return event

    def _note_usage(self, event: UsageReported) -> Event:
        if started := self.open_responses.pop(event.response_id, None):
            if len(started) > 1:  # such as those without an ID
                self.open_responses[event.response_id] = started[1:]
        self.budget.spend(event.usage, event.purpose)
        if event.purpose is not None:  # a call of the memory says nothing to the reader
            return event
        self._reported = event
        if self.report.sources:  # the response is complete
            self.report.sources += ((len(self.report.said), None),)
        if event.response_id is not None and event.response_id == self._answered_by:
            self.finish_reason = event.finish_reason
        return event

    def _check_may_ask(self, event: Event) -> None:
        if not self.asks:
            raise StateDefinitionError(
                f"State {event.at.state!r} asks a person, but runs on a memory that is not found "
                "again when the run is resumed: make it with 'await memory.branch(name)', or ask "
                "before it is used"
            )

    def _note_approval(self, event: ApprovalRequested) -> Event:
        self._check_may_ask(event)
        self.report.waits = StopReason.APPROVAL
        self._memory.control.request_approval(event.actions, event.uncertain)
        return event

    def _note_question(self, event: InputRequested) -> Event:
        self._check_may_ask(event)
        self.report.waits = StopReason.INPUT
        control = self._memory.control
        control.request_input(event.id, event.prompt, event.schema)
        if control.branch and not event.id:  # the outer net knows it by this name
            return dataclasses.replace(event, id=key_of_branch(control.branch))
        return event

    def _note_sleep(self, event: SleepRequested) -> Event:
        self.report.waits = self.report.waits or StopReason.SLEEPING
        self._memory.control.sleep(event.until)
        return event

    def note_unread(self, event: Event) -> None:
        """Record the model calls in an ``event`` that could not be yielded."""
        if isinstance(event, ResponseStarted | UsageReported):
            if isinstance(event, UsageReported) and event.response_id not in self.open_responses:
                self._counted |= {event.response_id}
            self.note(event)

    def count_open_responses(self) -> None:
        """Count the model calls that were closed or cancelled before they reported their usage."""
        if self.open_responses:
            cut, self.open_responses = self.open_responses, {}
            for event in chain.from_iterable(cut.values()):
                self.budget.spend(Usage(), event.purpose)
        self._counted = frozenset()


_NOTES: dict[type, Callable[[StepRecorder, Any], Event]] = {
    TextDelta: StepRecorder._note_text,
    PartialOutput: StepRecorder._note_partial,
    ActionRequested: StepRecorder._note_request,
    ActionFinished: StepRecorder._note_finished,
    ResponseStarted: StepRecorder._note_response,
    UsageReported: StepRecorder._note_usage,
    ApprovalRequested: StepRecorder._note_approval,
    InputRequested: StepRecorder._note_question,
    SleepRequested: StepRecorder._note_sleep,
}
