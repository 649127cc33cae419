"""A memory of a conversation that shows what is known about the user."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.aio import is_being_cancelled
from agent_brain.common.secrets import get_logger
from agent_brain.common.text import count_tokens
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message
from agent_brain.memories.user.learning import Learned, check_tenant, tell_learned
from agent_brain.memories.user.rendering import brief_of
from agent_brain.memories.wrapper import WrappingMemory

if TYPE_CHECKING:
    from agent_brain.memories.user.user_memory import UserMemory

log = get_logger(__name__)


class UserAwareMemory(WrappingMemory):
    """A memory of a conversation that shows what is known about the user, before the goal.

    Shown are the profile (what the user has said, as far as its tokens reach) and blocks, other
    current facts that fit the goal, and messages of other conversations that fit it; none of them
    twice. Facts of others are quoted with their origin and are never part of the profile.

    Args:
        inner: The memory of the conversation.
        user: What is known.
        close: Close ``inner`` with it.
        learn: Learn from it when it is closed, if the program writes.
    """

    def __init__(
        self, inner: Memory, user: UserMemory, *, close: bool = True, learn: bool = True
    ) -> None:
        check_tenant(user, inner)
        if any(isinstance(memory, UserAwareMemory) for memory in (inner, *inner.wrapped)):
            raise MemoryDefinitionError("The memory shows what is known about a user already")
        super().__init__(inner)
        self.user = user
        self._closes = close
        self._learns = learn and user.learns
        self._shown: tuple[object, Message | None] = (None, None)
        self._tools = user.tools() if user.mode != "program" else []
        for tool in self._tools:
            tool.always_offered = True
        self.add_tools(self._tools)

    async def context(self) -> list[Message]:
        """Return what the inner memory shows, with what is known just before the goal."""
        context = await self.inner.context()
        goal = await self.inner.goal()
        if not goal:
            return context
        asked = goal[-1].content
        await tell_learned(self.user, self.run_work)
        await self.user.log.look()
        self.user.log.facts()
        state = [message.id for message in goal], self.user.log.known.version
        if self._shown[0] != state:
            with self.work_for("user"):
                brief = await brief_of(self.user, asked, [*context, *goal])
            shown = Message.user(brief.text, id=f"user:{goal[-1].id}", metadata={"recalled": []})
            self._shown = state, shown if brief.text else None
            if brief.items:
                tokens = count_tokens(brief.text)
                self.report("recalled", query=asked, items=tuple(brief.items), tokens=tokens)
        message = self._shown[1]
        if message is None:
            return context
        at = next((i for i, m in enumerate(context) if m.id == goal[-1].id), 0)
        return [*context[:at], message, *context[at:]]

    async def learn(self) -> Learned:
        """Learn what is new in this conversation, as :meth:`UserMemory.learn` does."""
        with self.work_for("learn"):
            return await self.user.learn(self.inner)

    async def aclose(self) -> None:
        """Learn from the conversation if the program writes, and close it.

        An error of learning does not keep it from being closed, and is
        :attr:`UserMemory.learning_error`. If the task is being cancelled, nothing is learned now.
        """
        try:
            if self._learns and not self.readonly and not is_being_cancelled():
                await self.learn()
                self.user.learning_error = None
        except Exception as error:  # what was not learned now is learned the next time
            self.user.learning_error = error
            log.warning(
                "The end of a conversation could not be learned from: %s", error, exc_info=True
            )
        finally:
            if self._closes:
                await self.inner.aclose()

    async def _over(self, inner: Memory) -> UserAwareMemory:
        """Return a memory that shows the same over a copy of the inner one, and learns nothing."""
        for mine in self._tools:
            inner.available_tools.pop(mine.name, None)
        return type(self)(inner, self.user, learn=False)  # no conversation with the user
