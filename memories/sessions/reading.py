"""A stored session as it is, or as it was at a step, and how two conversations differ."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message
from agent_brain.memories.messages import MessagesMemory
from agent_brain.memories.sessions.timeline import SavedStep
from agent_brain.memories.store.expiry import utc_now
from agent_brain.memories.store.session import read_session_key
from agent_brain.memories.stored import StoredMemory

MEASURED = {"run_id", "spent", "fingerprints"}  # registers that differ from run to run


async def memory_at(journal: Journal, key: str, step: SavedStep | None = None) -> StoredMemory:
    """Return a memory that shows all of a session, as it is or as it was at a step.

    What had not expired then is there.

    Args:
        journal: The journal; nothing is written to it.
        key: The session's key.
        step: A step that the journal has.
    """
    then = None if step is None else step.time
    session, tenant = read_session_key(key)
    memory = MessagesMemory(
        journal=journal,
        session=session,
        tenant=tenant,
        readonly=True,
        clock=utc_now if then is None else lambda: then,
    )
    await memory.open()
    return memory if step is None else await memory.as_of(step)


@dataclass(frozen=True, slots=True)
class Side:
    """One of two conversations that are compared.

    Attributes:
        messages: All messages, in order.
        state: The registers of the run, and the values beside the messages, without IDs.
    """

    messages: list[Message]
    state: dict[str, Any]

    def said(self) -> list[tuple[Any, ...]]:
        """Return what can be compared of each message: without IDs and times."""
        return [
            (m.role, m.content, m.is_error, [(c.name, c.args, c.unparsed) for c in m.tool_calls])
            for m in self.messages
        ]


@dataclass(frozen=True, slots=True)
class Difference:
    """How two conversations differ.

    Attributes:
        common: How many messages both begin with.
        rests: The messages of each from there on.
        state: What differs in their states: a name, and the value of each; None if it has none.
    """

    common: int
    rests: tuple[list[Message], list[Message]]
    state: list[tuple[str, tuple[Any, Any]]]

    def __bool__(self) -> bool:
        return any(self.rests) or bool(self.state)


async def side_of(memory: Memory) -> Side:
    """Return what is compared of a memory."""
    snapshot = await memory.snapshot()
    messages = snapshot.messages
    registers = snapshot.control.model_dump(mode="json", exclude=MEASURED)
    calls = [call.id for message in messages for call in message.tool_calls]
    calls += [call["id"] for call in registers["next_actions"]]
    return Side(messages, _without_ids(registers | snapshot.views, calls))


def compare(one: Side, other: Side) -> Difference:
    """Return how two conversations differ; IDs, times, tokens and cost are not compared."""
    pairs = zip(one.said(), other.said(), strict=False)
    common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    names = {**one.state, **other.state}
    state = {name: (one.state.get(name), other.state.get(name)) for name in names}
    differing = [(name, values) for name, values in state.items() if values[0] != values[1]]
    return Difference(common, (one.messages[common:], other.messages[common:]), differing)


def _without_ids(state: dict[str, Any], calls: Sequence[str]) -> dict[str, Any]:
    """Return ``state`` with the IDs of calls replaced by their places in the conversation."""
    text = json.dumps(state)
    for place, call in enumerate(dict.fromkeys(calls)):
        text = text.replace(json.dumps(call), f'"call {place + 1}"')
    found: dict[str, Any] = json.loads(text)
    return found
