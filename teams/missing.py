"""Agents whose turns of a task were interrupted, and which a team does not have."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AsyncExitStack

from agent_brain.errors import ResumeError
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.memories.sharing.shared import SharedMemory
from agent_brain.memories.store.session import is_branch, read_session_key, session_key
from agent_brain.states.answering import last_answer
from agent_brain.teams.notes import works_on
from agent_brain.teams.rounds import Answers, is_over
from agent_brain.teams.tools import addresses


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
    if await Answers().is_over(member, task) or addresses(await member.turn()):
        return False
    return bool((member.control.ended.get("") or await last_answer(member)).strip())
