"""Where two conversations part, and how their states differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message

MEASURED = {"run_id", "spent", "fingerprints"}  # registers that differ from run to run


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
    common = _common(one.said(), other.said())
    rests = one.messages[common:], other.messages[common:]
    return Difference(common, rests, [*_differing(one.state, other.state)])


def _without_ids(state: dict[str, Any], calls: Sequence[str]) -> dict[str, Any]:
    """Return ``state`` with the IDs of calls replaced by their places in the conversation."""
    text = json.dumps(state)
    for place, call in enumerate(dict.fromkeys(calls)):
        text = text.replace(json.dumps(call), f'"call {place + 1}"')
    found: dict[str, Any] = json.loads(text)
    return found


def _common(one: Sequence[Any], other: Sequence[Any]) -> int:
    """Return how many items both begin with."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def _differing(one: dict[str, Any], other: dict[str, Any]) -> Iterator[tuple[str, tuple[Any, Any]]]:
    for name in {**one, **other}:
        values = one.get(name), other.get(name)
        if values[0] != values[1]:
            yield name, values
