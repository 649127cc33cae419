"""The turns of a session, and the result of its last run, as a memory has recorded them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from agent_brain.memories.control import SUSPENDED, Control
from agent_brain.memories.message import Message, Role
from agent_brain.memories.runs.counts import Spent
from agent_brain.memories.runs.human_requests import open_requests
from agent_brain.memories.runs.turn_notes import TurnNote
from agent_brain.tools.action import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRecord:
    """A turn of a session: a goal, and what was recorded until the next one.

    Attributes:
        goal: The message that set the goal.
        messages: The goal and the other messages of the turn, in order, as far as the memory still
            has them.
        answer: The answer of the run; of earlier turns, the last text of the model for the reader.
        run_id: The ID of the run; None if there was none, or it is not known any more.
        stop_reason: Why the run ended, or what it waits for; None if it is in progress, was
            interrupted, or is not known.
        steps: How many steps the run has made.
        spent: What the run has spent: tokens, cost, calls, seconds.
        began: When the goal was created (aware).
        ended: When the run ended, or began to wait, by the journal (aware, UTC); None if it has
            not, or the session has no journal.
    """

    goal: Message
    messages: tuple[Message, ...]
    answer: str
    run_id: str | None = None
    stop_reason: str | None = None
    steps: int = 0
    spent: Spent
    began: datetime
    ended: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredResult:
    """The result of a run, as a memory has it; :meth:`Brain.stored_result` makes it a ``Result``.

    Attributes:
        answer: The text of the last state that said anything, without thoughts.
        output: The output of the net, if it makes one: JSON if a journal has it.
        output_class: The name of its class.
        stop_reason: Why the run ended, such as ``"done"``, ``"failed"`` or ``"approval"``.
        failure: The text of the error of a run that failed.
        steps: Number of steps.
        usage: What the run has spent: tokens, cost, calls, seconds.
        messages: The goal of its turn and what was recorded since, in order.
        run_id: The ID of the run.
        finish_reason: Why the model response that gave the answer ended, if the provider said so.
        wake_at: When a run that sleeps must be resumed (aware, UTC).
        approvals: The calls that wait for a person's decision.
        questions: The questions that wait for a person's answer, by their IDs.
    """

    answer: str
    output: Any
    stop_reason: str
    failure: str | None
    steps: int
    usage: Spent
    messages: list[Message]
    run_id: str
    finish_reason: str | None
    wake_at: datetime | None
    output_class: str | None = None
    approvals: Sequence[Action] = ()
    questions: Mapping[str, str] = field(default_factory=dict)


def turns_of(
    notes: Iterable[TurnNote], messages: Sequence[Message], control: Control
) -> list[TurnRecord]:
    """Return the turns that messages consist of.

    Args:
        notes: What is known of the turns; those whose goal is gone are left out.
        messages: The messages of the session, in order.
        control: The state of the last run.
    """
    places = {message.id: at for at, message in enumerate(messages)}
    begun = {places[note.goal_id]: note for note in notes if note.goal_id in places}
    starts = sorted(begun)
    return [
        _turn(begun[start], tuple(messages[start:end]), control)
        for start, end in pairwise([*starts, len(messages)])
    ]


def _turn(note: TurnNote, messages: tuple[Message, ...], control: Control) -> TurnRecord:
    is_last = note.run_id is not None and note.run_id == control.run_id
    kept = control.ended.get("") if is_last else None
    return TurnRecord(
        goal=messages[0],
        messages=messages,
        answer=answer_of(messages) if kept is None else kept,
        run_id=note.run_id,
        stop_reason=note.stop_reason,
        steps=note.steps,
        spent=replace(note.spent),
        began=messages[0].created_at,
        ended=note.ended,
    )


def result_of(turns: Sequence[TurnRecord], control: Control) -> StoredResult | None:
    """Return the result of the last run; None if none has ended, or its goal is gone."""
    turn = next((turn for turn in turns if turn.run_id == control.run_id), None)
    if turn is None or turn.run_id is None or control.stop_reason is None:
        return None
    if control.status != "ended" and control.stop_reason not in SUSPENDED:
        return None
    return StoredResult(
        answer=turn.answer,
        output=control.output,
        stop_reason=control.stop_reason,
        failure=control.failure,
        steps=control.step,
        usage=replace(control.spent),
        messages=[*turn.messages],
        run_id=turn.run_id,
        finish_reason=control.finish_reason,
        wake_at=control.wake_at,
        output_class=control.output_class,
        **open_requests(control.human_requests),
    )


def answer_of(messages: Sequence[Message]) -> str:
    """Return the last text for the reader among ``messages``; empty if there is none."""
    for message in reversed(messages):
        if is_answer(message):
            return message.content
    return ""


def is_answer(message: Message) -> bool:
    """Return whether ``message`` is text or pictures of the model for the reader, no thought."""
    return (
        message.role is Role.ASSISTANT
        and bool(message.content or message.attachments)
        and not message.tool_calls
        and not message.metadata.get("thought")
    )
