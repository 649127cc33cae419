"""The rounds of a task: which agents have a turn, and with which messages."""

from __future__ import annotations

from collections.abc import Mapping

from agent_brain.human_input import Decisions
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.memories.sharing.shared import SharedMemory
from agent_brain.teams.decisions import asks
from agent_brain.teams.notes import TurnNotes
from agent_brain.teams.turn import Answers, Turn


class Rounds:
    """The rounds of one task.

    In a round, every agent for which there are messages at its beginning has one turn with them.
    Turns note their round, so that one which was interrupted is completed first, by the same agents
    and with the same messages.

    Attributes:
        number: The number of the current round, from 1; 0 before the first one.

    Args:
        members: The memories of the agents.
        shared: The record.
        task: The ID of the task.
        answers: The answers.
    """

    def __init__(
        self,
        members: Mapping[str, MemberMemory],
        shared: SharedMemory,
        task: str,
        answers: Answers,
    ) -> None:
        self._members = members
        self._shared = shared
        self._task = task
        self._answers = answers
        notes = [TurnNotes.of(member, task) for member in members.values()]
        self.number = max(note.round for note in notes)
        self._upto = max(note.upto for note in notes)

    async def due(self, given: Mapping[str, Decisions]) -> list[Turn]:
        """Return the turns that the current round lacks, or else those of the next one.

        An agent that waits for a person, and is given nothing, has no turn.

        Args:
            given: Decisions of a person by agent.
        """
        turns = []
        for name, member in self._members.items():
            await member.open()
            if await self._answers.is_over(member, self._task):
                turns += await self._new(self.number, self._upto, [name])
            elif not asks(member) or name in given:
                decisions = given.get(name, Decisions())
                turns.append(Turn(name, self.number, self._upto, decisions=decisions))
        return turns or await self._next()

    async def _next(self) -> list[Turn]:
        _, upto = await self._shared.find_news(self._upto)
        free = [
            name
            for name, member in self._members.items()
            if await self._answers.is_over(member, self._task)
        ]
        turns = await self._new(self.number + 1, upto, free)
        if turns:
            self._upto = upto
        return turns

    async def _new(self, number: int, upto: int, names: list[str]) -> list[Turn]:
        """Return turns with what is in inboxes up to a place."""
        turns = []
        for name in names:
            places = [(self._shared.place_of(m.id), m) for m in await self._members[name].inbox()]
            mail = [message for place, message in places if place is not None and place <= upto]
            if mail:
                turns.append(Turn(name, number, upto, goal=mail[-1]))
        return turns
