"""What an agent notes at the beginning of each turn, and what it has used for a task."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, Field

from agent_brain.memories.control import Control
from agent_brain.memories.runs.counts import Spent
from agent_brain.memories.sharing.member import MemberMemory


class TurnNotes(BaseModel):
    """Kept with the session of an agent, and written when a turn begins.

    Attributes:
        task: The ID of the task; empty if the agent had no turn.
        round: The number of the round, from 1.
        upto: The place in the record up to which the round takes messages.
        steps: Steps of the agent's earlier turns for the task.
        spent: What these turns used.
    """

    task: str = ""
    round: int = 0
    upto: int = 0
    steps: int = 0
    spent: Spent = Field(default_factory=Spent)

    @classmethod
    def read(cls, member: MemberMemory) -> TurnNotes:
        """Return the notes of an agent's last turn."""
        return cls.model_validate(member.notes)

    @classmethod
    def of(cls, member: MemberMemory, task: str) -> TurnNotes:
        """Return the notes of an agent's last turn, if it was for a task; else empty ones."""
        notes = cls.read(member)
        return notes if notes.task == task else cls()


def works_on(member: MemberMemory, task: str) -> bool:
    """Return whether the last turn of an agent was for a task."""
    return TurnNotes.of(member, task).task == task


def note_next_turn(member: MemberMemory, task: str, number: int, upto: int) -> None:
    """Have an agent note a turn when it begins: its round, and what it has used until then."""
    used = used_by([member], task)
    notes = TurnNotes(task=task, round=number, upto=upto, steps=used.step, spent=used.spent)
    member.note_next_turn(**notes.model_dump(mode="json"))


def used_by(members: Iterable[MemberMemory], task: str) -> Control:
    """Return registers with the steps and the spending of all turns of agents for a task."""
    total = Control.fresh()
    for member in members:
        notes = TurnNotes.of(member, task)
        if notes.task == task:
            total.step += notes.steps + member.control.step
            total.spent = total.spent.plus(notes.spent).plus(member.control.spent)
    return total
