"""Memories for experiments in which a user has several conversations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message
from agent_brain.memories.registry import create_memory
from agent_brain.memories.user.knowing import UserAwareMemory
from agent_brain.memories.user.user_memory import UserMemory
from agent_brain.states.extracting import model_extractor
from agent_brain.states.models.llm import LLM
from agent_brain.tools.toolset import ToolLike


def one_conversation(
    tools: Iterable[ToolLike],
    *,
    journal: Journal,
    session: str,
    tenant: str,
    kind: str,
    **options: Any,
) -> Memory:
    """Return a memory by its name that has all sessions of a case as one long conversation.

    ::

        one = "agent_brain.experiments:one_conversation"
        memories = {"window": (one, {"kind": "windowed", "max_tokens": 400})}

    Args:
        tools: What the agent may call.
        journal: The journal of the case.
        session: Not used.
        tenant: The ID of the case.
        kind: The name of the memory.
        **options: Its options.
    """
    return create_memory(kind, tools, journal=journal, session="all", tenant=tenant, **options)


def with_user(
    tools: Iterable[ToolLike],
    *,
    journal: Journal,
    session: str,
    tenant: str,
    llm: LLM | str,
    kind: str = "messages",
    **options: Any,
) -> UserAwareMemory:
    """Return a memory of a session by its name, with what is known about the user of the case.

    ::

        memories = {"user": ("agent_brain.experiments:with_user", {"llm": "openai/gpt-4.1-mini"})}

    What the sessions before it said is learned in its first run, so that its tokens and cost are
    those of the case.

    Args:
        tools: What the agent may call.
        journal: The journal of the case.
        session: The session.
        tenant: The ID of the case.
        llm: The model that extracts facts.
        kind: The name of the memory of a session.
        **options: Options of :class:`~agent_brain.memories.UserMemory`, such as ``profile_tokens``.
    """
    user = UserMemory(journal=journal, tenant=tenant, extract=model_extractor(llm), **options)
    inner = create_memory(kind, tools, journal=journal, session=session, tenant=tenant)
    return _LearningFirst(inner, user)


class _LearningFirst(UserAwareMemory):
    """Learns from earlier sessions within a run, which counts its calls, not when it is closed."""

    _behind = True

    async def context(self) -> list[Message]:
        if self._behind and self._learns:
            self._behind = False
            with self.work_for("learn"):
                await self.user.learn()
        return await super().context()

    async def aclose(self) -> None:
        await self.inner.aclose()
        await self.user.aclose()
