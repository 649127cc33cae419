"""Learning about a user from a conversation: read, extract, check and write."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from enum import Enum
from typing import Any, TypeAlias

from pydantic import Field

from agent_brain.common.text import count_of
from agent_brain.memories.base import Memory
from agent_brain.memories.user import learning
from agent_brain.memories.user.checking import Draft
from agent_brain.memories.user.learning import Extract, Reading
from agent_brain.memories.user.user_memory import UserMemory
from agent_brain.nets.net import Net
from agent_brain.states.extracting import model_extractor
from agent_brain.states.function import FunctionState
from agent_brain.states.models.llm import LLM
from agent_brain.states.session_state import Notes

Users: TypeAlias = UserMemory | Callable[[str | None], UserMemory]


class Learn(Enum):
    """The states of :func:`learn`."""

    EXTRACT = "extract"
    WRITE = "write"


class LearnNotes(Notes):
    """What a run of :func:`learn` knows between its steps.

    Attributes:
        drafts: What the extractor returned for the messages that were read.
        last: The ID of the last of these messages.
        messages: How many messages were read.
        facts: How many facts were stored.
        refused: How many were refused.
    """

    drafts: list[dict[str, Any]] = Field(default=[])
    last: str = ""
    messages: int = 0
    facts: int = 0
    refused: int = 0


def learn(llm: LLM | str | None = None, *, user: Users, extract: Extract | None = None) -> Net:
    """Learn about a user from a conversation: the goal of a run is the name of its session.

    It reads at most 20 messages at a time, has facts extracted from them, checks these, and stores
    them with how far it has read, until all is read. A run that is interrupted continues: nothing
    is learned twice. Run it when a conversation has ended, or on a queue.

    Args:
        llm: The model that extracts; None for ``extract``, or the extractor of the user's memory.
        user: What is known about the user; or a function from the tenant of the run's memory to
            that, which is then opened and closed for each step.
        extract: Extracts in place of a model.
    """
    make = extract or (None if llm is None else model_extractor(llm))

    @asynccontextmanager
    async def next_of(memory: Memory) -> AsyncIterator[tuple[UserMemory, Reading | None]]:
        """Yield what is known, and the next messages of the session."""
        session = (await memory.goal())[-1].content
        async with AsyncExitStack() as stack:
            if isinstance(user, UserMemory):
                known = user
            else:
                known = await stack.enter_async_context(user(memory.tenant))
            async with learning.opened(known, session) as opened:
                reading = await learning.read_next(known, opened) if opened else None
            yield known, reading

    async def extracted(memory: Memory) -> str | None:
        notes = LearnNotes.read(memory)
        async with next_of(memory) as (known, reading):
            if reading is not None:
                with memory.work_for("learn"):
                    drafts = await learning.extract(make or known.required_extractor, reading)
                notes.drafts = [draft.model_dump(mode="json") for draft in drafts]
                notes.last = reading.batch.messages[-1].id
        notes.ended = reading is None
        notes.write(memory)
        if reading is not None:
            return None
        told = f"Learned {count_of(notes.facts, 'fact')} from {count_of(notes.messages, 'message')}"
        return f"{told}, refused {notes.refused}."

    async def write(memory: Memory) -> None:
        notes = LearnNotes.read(memory)
        drafts = [Draft.model_validate(draft) for draft in notes.drafts]
        async with next_of(memory) as (known, reading):
            # if more was said meanwhile, the drafts are not of all that was read: read it again
            if reading is not None and reading.batch.messages[-1].id == notes.last:
                learned = await learning.write(known, reading, drafts)
                await learning.tell_learned(known, memory.run_work)
                notes.messages += learned.messages
                notes.facts += len(learned.facts)
                notes.refused += len(learned.refused)
        notes.drafts = []
        notes.write(memory)

    def next_state(memory: Memory) -> Learn | None:
        return None if LearnNotes.read(memory).ended else Learn.WRITE

    return Net(
        {
            Learn.EXTRACT: FunctionState(extracted, choose=next_state),
            Learn.WRITE: FunctionState(write, on_done=Learn.EXTRACT),
        },
        transitions={Learn.EXTRACT: [Learn.WRITE, None], Learn.WRITE: [Learn.EXTRACT]},
        name="learn",
    )
