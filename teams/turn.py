"""One turn of an agent of a team, and its answer."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent_brain.human_input import Decisions
from agent_brain.limits import OWN
from agent_brain.memories.message import Message
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.result import Result
from agent_brain.teams.notes import works_on
from agent_brain.teams.tools import addresses


@dataclass(slots=True, eq=False)
class Turn:
    """A turn of one agent: a new one, or one that continues.

    Attributes:
        name: The agent.
        round: The number of the round.
        upto: The place in the record up to which the round takes messages.
        goal: The last message that it takes; None to continue the last turn.
        decisions: Of a person, for one that continues.
        over: Whether its run had ended before, and only its answer was to be sent.
        result: Its result, once it has ended.
        completed: Whether it has ended without an error.
        error: Why it failed.
    """

    name: str
    round: int
    upto: int
    goal: Message | None = None
    decisions: Decisions = field(default_factory=Decisions)
    over: bool = False
    result: Result | None = None
    completed: bool = False
    error: Exception | None = None


class Answers:
    """The answers of turns, each sent once."""

    def __init__(self) -> None:
        self._sent: set[str] = set()  # the runs whose answers were sent, if there were any

    async def send(self, member: MemberMemory, result: Result) -> None:
        """Send the answer of a turn, unless the agent has addressed others in it."""
        if result.answer.strip() and not addresses(result.messages):
            await member.send(Message.assistant(result.answer, id=_id_of(result.run_id)))
        self._sent.add(result.run_id)

    async def is_over(self, member: MemberMemory, task: str) -> bool:
        """Return whether the last turn of an agent for a task has ended and its answer is sent."""
        control = member.control
        if not works_on(member, task) or control.run_id in self._sent:
            return True
        if not is_over(member):
            return False
        return await member.shared_memory.get(_id_of(control.run_id)) is not None


def is_over(member: MemberMemory) -> bool:
    """Return whether the last run of an agent came to an end of its own."""
    return member.control.status == "ended" and member.control.stop_reason in OWN


def _id_of(run_id: str | None) -> str:
    return f"{run_id}/answer"
