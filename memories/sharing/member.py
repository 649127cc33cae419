"""The memory of one of the agents that share a record of messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field, JsonValue

from agent_brain.memories.base import Memory
from agent_brain.memories.branches.copying import AsOf, Copying, Fork, copy_of, fork_of
from agent_brain.memories.errors import MemoryUseError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.filters import Keep, Names
from agent_brain.memories.wrapper import WrappingMemory

if TYPE_CHECKING:
    from agent_brain.memories.sharing.shared import SharedMemory

KEPT_AS = "SharedMemory"


class _Taken(BaseModel):
    """What a member keeps in ``control.session``, written with the beginning of a turn.

    Attributes:
        upto: The place in the record up to which it has taken its messages.
        notes: Of who runs it.
    """

    upto: int = 0
    notes: dict[str, JsonValue] = Field(default_factory=dict)


class MemberMemory(WrappingMemory):
    """The memory of an agent of a :class:`SharedMemory`; made by :meth:`SharedMemory.member`.

    It holds what the agent sees: its own steps, and the messages that it has taken from its inbox.
    A turn whose goal is a message of the inbox takes that message and those before it, which are
    recorded ahead of it. One write takes them and begins the turn, so that after a crash none is
    lost and none is taken twice. The text of another agent begins with its name.

    Attributes:
        name: The agent's name.
        shared_memory: The record.
        watch: Values of ``cause_by`` that it wants; None for all messages that are to all.
        send_to: The receivers of its answers; empty for all.
        description: What it does.
    """

    def __init__(
        self,
        inner: Memory,
        shared: SharedMemory,
        name: str,
        *,
        watch: frozenset[str] | None = None,
        send_to: Sequence[str] = (),
        description: str = "",
    ) -> None:
        super().__init__(inner)
        self.name = name
        self.shared_memory = shared
        self.watch = watch
        self.send_to = tuple(send_to)
        self.description = description
        self._next_notes: Mapping[str, JsonValue] = {}
        self._unwanted = 0, 0  # from a place that was taken to another one nothing is wanted
        self._unsure = False  # whether the last begin() was written

    async def inbox(self) -> list[Message]:
        """Return the messages for this agent that it has not taken, in the order of the record.

        They are as the agent will see them: messages of a user, with the sender as ``name``.
        """
        await self.open()
        taken, unwanted = self._taken.upto, self._unwanted
        after = unwanted[1] if unwanted[0] == taken else taken
        news, end = await self.shared_memory.find_news(after)
        found = [as_received(message) for message in news if self.wants(message)]
        if not found:
            self._unwanted = taken, end
        return found

    def wants(self, message: Message) -> bool:
        """Return whether a message of the record is for this agent."""
        if message.sent_from == self.name:
            return False
        if self.name in message.send_to or (self.watch and message.cause_by in self.watch):
            return True
        return not message.send_to and self.watch is None

    async def send(
        self, message: str | Message, *, send_to: Names | None = None, cause_by: str | None = None
    ) -> Message:
        """Add a message of this agent to the record, once; return it.

        Args:
            message: A text, or a message.
            send_to: The receivers; None for those of the agent's answers.
            cause_by: What caused it; None for the agent.
        """
        return await self.shared_memory.send(
            Message.assistant(message) if isinstance(message, str) else message,
            sent_from=self.name,
            send_to=self.send_to if send_to is None else send_to,
            cause_by=cause_by or self.name,
        )

    @property
    def notes(self) -> Mapping[str, JsonValue]:
        """What :meth:`note_next_turn` was given for the current turn."""
        return self._taken.notes

    def note_next_turn(self, **notes: JsonValue) -> None:
        """Store values with the session in the write that begins the next turn."""
        self._next_notes = notes

    @property
    def _taken(self) -> _Taken:
        return _Taken.model_validate(self.control.session.get(KEPT_AS, {}))

    async def open(self) -> None:
        """Open the agent's own memory; read it again if the last turn may have begun."""
        if self._unsure:
            await self._with("reopen").reopen()
            self._unsure = False
        await self.inner.open()

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Start a turn and a run of it; take the goal and what is before it from the inbox.

        Raises:
            MemoryUseError: The goal was taken from the inbox before.
        """
        mail = await self.inbox()
        at = next((at for at, message in enumerate(mail) if message.id == goal.id), None)
        taken = self._taken
        if at is None:
            await self._refuse_taken(goal)
        else:
            before = [*before, *mail[:at]]
            goal = mail[at]
            taken.upto = self.shared_memory.place_of(goal.id) or taken.upto
        taken.notes, self._next_notes = dict(self._next_notes), {}
        known = self.control.session.get(KEPT_AS)
        self.control.session[KEPT_AS] = taken.model_dump(mode="json")
        try:
            await super().begin(goal, run_id, state, before=before)
        except BaseException:
            self._unsure = self.inner.durable
            if known is None:
                self.control.session.pop(KEPT_AS, None)
            else:
                self.control.session[KEPT_AS] = known
            raise

    async def _refuse_taken(self, goal: Message) -> None:
        found = await self.shared_memory.get(goal.id)
        if found is not None and self.wants(found):
            raise MemoryUseError(
                f"{self.name!r} has taken the message {goal.id!r} already: run the messages that "
                "inbox() returns, or resume() the run that has taken it"
            )

    async def clear(self, *, keep: Keep | None = None) -> int:
        """Erase everything of the agent's own memory; what it has taken does not come back."""
        upto = self._taken.upto
        count = await super().clear(keep=keep)
        self.control.session[KEPT_AS] = _Taken(upto=upto).model_dump(mode="json")
        await self.checkpoint()
        return count

    async def fork(self) -> Memory:  # type: ignore[override]
        """Return a copy of the agent's own memory, which has no inbox."""
        return await fork_of(self, Fork())

    async def _copied(self, copying: Copying) -> Memory:
        """Return a copy of the agent's own memory; only as of a step it has the inbox."""
        copied = await copy_of(self.inner, copying)
        if not isinstance(copying, AsOf):
            return copied
        earlier = self._shallow_copy()
        earlier.inner = copied
        return earlier


def as_received(message: Message) -> Message:
    """Return a message of the record as its receivers see it: said by a user of that name."""
    sender = message.sent_from
    if sender is None:
        return message
    fields: dict[str, Any] = {"role": Role.USER, "name": message.name or sender}
    fields |= {"content": f"{sender}: {message.content}", "tool_calls": ()}
    fields["attachments"] = tuple(
        a if a.at is None else a.model_copy(update={"at": a.at + len(sender) + 2})
        for a in message.attachments
    )
    return message.model_copy(update=fields)
