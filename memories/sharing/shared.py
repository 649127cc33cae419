"""One record of messages for several agents, each with a memory and an inbox of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.journal.ram import RamJournal
from agent_brain.memories.message import Message, as_message
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.registry import create_memory
from agent_brain.memories.sharing.member import MemberMemory
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.filters import Names, names
from agent_brain.memories.store.options import JournalLike
from agent_brain.tools.toolset import ToolLike

USER = "user"
"""The name of who gives the tasks; no agent has it."""
TASK = "task"
"""``cause_by`` of a task, and its tag; no agent has it as a name."""


class SharedMemory(MessagesMemory):
    """A record of messages that several agents read and append to.

    Every message has its sender (``sent_from``), its receivers (``send_to``; empty for all) and
    what caused it (``cause_by``). :meth:`member` returns the memory of one agent, which holds what
    only this agent sees, and its inbox: the messages that are for it and that it has not taken::

        shared = SharedMemory("team.db", session="article")
        writer = Brain("react", shared.member("writer"))
        critic = Brain("react", shared.member("critic", watch={"writer"}))
        await shared.send("Write about the sea.", send_to="writer")
        for message in await writer.memory.inbox():
            result = await writer.run(message)

    :class:`agent_brain.Team` runs the agents and sends their answers. Queries (``messages``,
    ``find_news``), ``tag``, ``delete``, ``forget`` and ``export`` apply to the record, those of a
    member to its own memory. Agents of several processes may use one record.

    Args:
        journal: Where the record and the memories of the members are stored: a journal, or its
            place; None keeps them in RAM.
        session: The session of the record. The member ``writer`` has the session
            ``"SESSION/writer"``.
        tenant: Whose sessions they are.
        ttl: How long messages of the record are kept, in seconds or as a timedelta.
        clock: Returns the time (aware) by which messages expire.

    Raises:
        MemoryDefinitionError: Options that make no sense.
    """

    def __init__(
        self,
        journal: JournalLike | None = None,
        *,
        session: str = "shared",
        tenant: str | None = None,
        ttl: timedelta | float | None = None,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        super().__init__(
            journal=RamJournal() if journal is None else journal,
            session=session,
            tenant=tenant,
            ttl=ttl,
            clock=clock,
            shared=True,
        )
        self._members: dict[str, MemberMemory] = {}

    @property
    def members(self) -> Mapping[str, MemberMemory]:
        """The memories that :meth:`member` has returned, by the names of the agents."""
        return MappingProxyType(self._members)

    def member(
        self,
        name: str,
        *,
        watch: Names | None = None,
        send_to: Names = (),
        description: str = "",
        memory: str | Memory = "messages",
        memory_options: Mapping[str, Any] | None = None,
        tools: Iterable[ToolLike] = (),
    ) -> MemberMemory:
        """Return the memory of an agent.

        Its inbox has the messages of others that are addressed to it. Of those to all, it has every
        one if ``watch`` is None. Otherwise it has, whomever they are addressed to, the messages
        whose ``cause_by`` is in ``watch``.

        Args:
            name: The agent's name, which its messages have as ``sent_from``.
            watch: Values of ``cause_by``, such as names of agents; empty for none.
            send_to: The receivers of its answers; empty for all.
            description: What the agent does, for the models of the others.
            memory: Its own memory: the name of a registered one, which is stored in the journal of
                the record, or a memory.
            memory_options: For a memory by name: options of its class.
            tools: What the agent may call.

        Raises:
            MemoryDefinitionError: The name is taken or cannot be used, or a memory that is not one.
        """
        self._check_name(name)
        watched = None if watch is None else frozenset(names("watch", watch))
        receivers = tuple(sorted(names("send_to", send_to)))
        if isinstance(memory, str):
            options = dict(memory_options or {})
            place: dict[str, Any] = {
                "journal": self.journal,
                "session": f"{self.session}/{name}",
                "tenant": self.tenant,
            }
            if taken := place.keys() & options:
                raise MemoryDefinitionError(
                    f"memory_options={{{min(taken)!r}: …}}: the memory of a member is stored "
                    "beside the record; give journal=, session= and tenant= to SharedMemory"
                )
            memory = create_memory(memory, **place, **options)
        elif memory_options:
            raise MemoryDefinitionError("memory_options= go with a memory by name, not an object")
        else:
            _check_own(memory)
        made = MemberMemory(
            memory, self, name, watch=watched, send_to=receivers, description=description
        )
        made.add_tools(tools)
        self._members[name] = made
        return made

    def _check_name(self, name: str) -> None:
        usable = isinstance(name, str) and bool(name.strip()) and name.isprintable()
        if not usable or "/" in name or name in (USER, TASK):
            raise MemoryDefinitionError(
                f"{name!r} cannot be the name of a member: use a text that is not empty and not "
                f"{USER!r} or {TASK!r}, without '/' and control characters"
            )
        if name in self._members:
            raise MemoryDefinitionError(
                f"There is a member {name!r} already: members[{name!r}] is its memory"
            )
        if not self.shared:
            raise MemoryDefinitionError(
                "This is a copy of a record, which has no members: make them of the SharedMemory"
            )

    async def send(
        self,
        message: str | Message,
        *,
        sent_from: str | None = None,
        send_to: Names = (),
        cause_by: str | None = None,
    ) -> Message:
        """Add a message to the record, once; return it.

        Args:
            message: A text of the user, or a message. Fields that it has are not replaced.
            sent_from: The sender.
            send_to: The receivers; empty for all.
            cause_by: What caused it.

        Raises:
            MemoryUseError: It is neither a text nor a message, or it is empty.
        """
        sent = as_message(message)
        if not (sent.content.strip() or sent.attachments or sent.tool_calls):
            raise MemoryUseError("The message is empty: send a text")
        fields = {
            "sent_from": sent.sent_from or sent_from,
            "send_to": sent.send_to or tuple(sorted(names("send_to", send_to))),
            "cause_by": sent.cause_by or cause_by,
        }
        sent = sent.model_copy(update=fields)
        await self.update([sent])
        return sent

    def place_of(self, message_id: str) -> int | None:
        """Return the place of a message in the order of the record; None if it is not here."""
        return self.store.log.find(message_id)

    async def begin(
        self, goal: Message, run_id: str, state: str, *, before: Sequence[Message] = ()
    ) -> None:
        """Refuse to run a brain over the record.

        Raises:
            MemoryUseError: Always.
        """
        raise MemoryUseError(
            "A brain does not run over a SharedMemory, but over the memory of a member: "
            'Brain("react", shared.member("writer"))'
        )

    async def _forked(self) -> None:
        self._members = {}

    async def aclose(self) -> None:
        """Close the memories of the members, and the journal if its place was given."""
        async with AsyncExitStack() as stack:  # one that fails does not keep the others open
            stack.push_async_callback(super().aclose)
            for member in self._members.values():
                stack.push_async_callback(member.aclose)


def _check_own(memory: object) -> None:
    """Check that a memory can be that of one agent.

    Raises:
        MemoryDefinitionError: It is a record, or the memory of a member.
    """
    if isinstance(memory, SharedMemory | MemberMemory):
        kind = "a SharedMemory" if isinstance(memory, SharedMemory) else "that of another member"
        raise MemoryDefinitionError(
            f"memory={memory!r:.100} is {kind}: give each member a memory of its own, such as "
            "MessagesMemory()"
        )
    for inner in getattr(memory, "wrapped", ()):
        _check_own(inner)
