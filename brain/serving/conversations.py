"""Many conversations, a brain each."""

from __future__ import annotations

import inspect
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self, TypeAlias

import anyio

from agent_brain.controller import Brain
from agent_brain.errors import BrainUseError

MakeBrain: TypeAlias = Callable[[], Brain | Awaitable[Brain]]


@dataclass(slots=True)
class _Conversation:
    brain: Brain
    turn: anyio.Lock = field(default_factory=anyio.Lock)
    users: int = 0


class Conversations:
    """Brains by the conversation that they are in; closed with it.

    Names that this class gives out cannot be guessed: who knows one may go on with it. With more
    conversations than may be kept, the one that has rested longest is forgotten.

    Args:
        make_brain: Makes the brain of a new conversation, with a memory of its own.
        most: How many are kept; more only while they are all being used.
    """

    def __init__(self, make_brain: MakeBrain, *, most: int = 1000) -> None:
        self._make_brain = make_brain
        self._most = most
        self._known: OrderedDict[str, _Conversation] = OrderedDict()
        self._making = anyio.Lock()

    @asynccontextmanager
    async def take(self, name: str | None, *, own: str | None = None) -> AsyncIterator[Turn]:
        """The brain of a conversation, for one turn; others who want it wait.

        Args:
            name: The conversation to go on with; None for the caller's own one.
            own: The caller's own conversation, made when it is first asked for; None for a new one
                each time.

        Raises:
            BrainUseError: There is no such conversation, or no longer.
        """
        name, conversation = await self._find(name, own)
        conversation.users += 1
        try:
            async with conversation.turn:
                yield Turn(name, conversation.brain)
        finally:
            conversation.users -= 1

    async def _find(self, name: str | None, own: str | None) -> tuple[str, _Conversation]:
        if name is not None and name not in self._known:
            raise BrainUseError(
                "There is no such conversation, or it was forgotten: leave it out to begin anew"
            )
        async with self._making:
            name = name or own or secrets.token_urlsafe(16)
            conversation = self._known.get(name)
            if conversation is None:
                made = self._make_brain()
                brain = await made if inspect.isawaitable(made) else made
                conversation = self._known[name] = _Conversation(brain)
            self._known.move_to_end(name)
            conversation.users += 1  # it is not to be forgotten before it is used
            try:
                await self._forget_oldest()
            finally:
                conversation.users -= 1
        return name, conversation

    async def _forget_oldest(self) -> None:
        idle = [name for name, conversation in self._known.items() if not conversation.users]
        for name in idle[: max(0, len(self._known) - self._most)]:
            await self._known.pop(name).brain.aclose()

    async def aclose(self) -> None:
        """Close all brains."""
        while self._known:
            _, conversation = self._known.popitem()
            await conversation.brain.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            await self.aclose()


@dataclass(frozen=True, slots=True)
class Turn:
    """A conversation while one caller has it.

    Attributes:
        name: What it is called.
        brain: Whom to ask.
    """

    name: str
    brain: Brain
