"""The rounds of a task: which agents have a turn, with which messages, and their answers."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from agent_brain.errors import ResumeError
from agent_brain.human_input import Decisions
from agent_brain.limits import OWN
from agent_brain.memories.message import Message
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.memories.sharing.shared import SharedMemory
from agent_brain.memories.store.session import is_branch, read_session_key, session_key
from agent_brain.result import Result
from agent_brain.states.answering import last_answer
from agent_brain.teams.decisions import asks
from agent_brain.teams.notes import TurnNotes, works_on
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


def is_over(member: MemberMemory) -> bool:
    """Return whether the last run of an agent came to an end of its own."""
    return member.control.status == "ended" and member.control.stop_reason in OWN


async def is_sent(member: MemberMemory, task: str) -> bool:
    """Return whether an agent has no turn for a task, or its last one ended with a message."""
    if not works_on(member, task):
        return True
    if not is_over(member):
        return False
    return await member.shared_memory.get(_id_of(member.control.run_id)) is not None


def _id_of(run_id: str | None) -> str:
    return f"{run_id}/answer"


@dataclass(eq=False, repr=False)
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
    """

    _members: Mapping[str, MemberMemory]
    _shared: SharedMemory
    _task: str
    _sent: set[str] = field(default_factory=set)  # the runs whose answers were sent, if any

    def __post_init__(self) -> None:
        notes = [TurnNotes.of(member, self._task) for member in self._members.values()]
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
            if await self._has_ended(member):
                turns += await self._new(self.number, self._upto, [name])
            elif not asks(member) or name in given:
                decisions = given.get(name, Decisions())
                turns.append(Turn(name, self.number, self._upto, decisions=decisions))
        return turns or await self._next()

    async def _next(self) -> list[Turn]:
        _, upto = await self._shared.find_news(self._upto)
        free = [name for name, member in self._members.items() if await self._has_ended(member)]
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

    async def send(self, name: str, result: Result) -> None:
        """Send the answer of a turn, unless the agent has addressed others in it."""
        if result.answer.strip() and not addresses(result.messages):
            answer = Message.assistant(result.answer, id=_id_of(result.run_id))
            await self._members[name].send(answer)
        self._sent.add(result.run_id)

    async def _has_ended(self, member: MemberMemory) -> bool:
        """Return whether an agent's last turn for the task has ended and its answer is sent."""
        return member.control.run_id in self._sent or await is_sent(member, self._task)


async def check_agents(shared: SharedMemory, agents: Collection[str], task: str) -> None:
    """Check that the agents of a team include all whose turns of a task have to continue.

    Raises:
        ResumeError: One is missing.
    """
    missing = []
    async with AsyncExitStack() as stack:
        for name in sorted(await _others(shared, agents)):
            member = shared.members.get(name)
            if member is None:
                member = _read_only(shared, name)
                stack.push_async_callback(member.inner.aclose)
            await member.open()
            if works_on(member, task) and await _is_open(member, task):
                missing.append(name)
    if missing:
        listed = ", ".join(map(repr, missing))
        raise ResumeError(
            f"Turns of this task were interrupted, and the team has no agent {listed}: resume it "
            "with a team that has them, or start another task with run(task)"
        )


async def _others(shared: SharedMemory, agents: Collection[str]) -> set[str]:
    """Return the names of the members that are not agents, also of other processes."""
    prefix = f"{shared.session}/"
    found = set(shared.members)
    journal = shared.journal
    if journal is not None:
        for key in await journal.sessions(session_key(prefix, shared.tenant)[: -len('"]')]):
            name = read_session_key(key)[0].removeprefix(prefix)
            if not is_branch(key) and "/" not in name:
                found.add(name)
    return found - {*agents, ""}


def _read_only(shared: SharedMemory, name: str) -> MemberMemory:
    own = MessagesMemory(
        journal=shared.journal, session=f"{shared.session}/{name}", tenant=shared.tenant
    )
    return MemberMemory(own, shared, name)


async def _is_open(member: MemberMemory, task: str) -> bool:
    """Return whether a turn has not ended, or its answer has to be sent."""
    if not is_over(member):
        return True
    if await is_sent(member, task) or addresses(await member.turn()):
        return False
    return bool((member.control.ended.get("") or await last_answer(member)).strip())
