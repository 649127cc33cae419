"""A net of your own: a support desk that sorts a message, looks up the order and replies.

Run it with::

    python examples/support_desk.py

Without a model in ``AGENT_BRAIN_MODEL`` a script answers in its place. Its tests are in
``test_support_desk.py``.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from enum import Enum
from typing import Literal

from pydantic import BaseModel

from agent_brain import LLM, AnswerState, Brain, LiteLLM, Memory, Message, Net, State
from agent_brain.states import Notes, StreamItem, StructuredRequest, build_messages
from agent_brain.testing import ScriptedLLM

ORDERS = {1042: "shipped on Monday, arrives on Thursday", 1043: "waits for payment"}


class Desk(Enum):
    SORT = "sort"
    LOOK_UP = "look_up"
    REPLY = "reply"


class Ticket(BaseModel):
    """What a customer wants."""

    topic: Literal["order", "other"]
    order_number: int | None = None


class Case(Notes):
    """What the states of one run know."""

    ticket: Ticket = Ticket(topic="other")


class Sort(State):
    """Ask the model what the message is about."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        messages = await build_messages(self.llm, memory, "You sort messages to a bookshop.")
        request = StructuredRequest(self.llm, messages, Ticket)
        yield request  # the brain makes the call, streams it and closes it
        Case(ticket=request.output).write(memory)

    async def next_state(self, memory: Memory) -> Literal[Desk.LOOK_UP, Desk.REPLY]:
        return Desk.LOOK_UP if Case.read(memory).ticket.topic == "order" else Desk.REPLY


class LookUp(State):
    """Find the order in our own books: no model is needed for that."""

    def __init__(self, orders: Mapping[int, str]) -> None:
        self.orders = orders

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        number = Case.read(memory).ticket.order_number
        status = "unknown" if number is None else self.orders.get(number, "unknown")
        await memory.update([Message.system(f"Status of order {number}: {status}.")])
        yield f"[order {number}: {status}]\n"

    async def next_state(self, memory: Memory) -> Literal[Desk.REPLY]:
        return Desk.REPLY


def support_desk(llm: LLM, orders: Mapping[int, str] = ORDERS) -> Net:
    """Build the net. The edges come from the annotations of ``next_state``."""
    return Net(
        {
            Desk.SORT: Sort(llm),
            Desk.LOOK_UP: LookUp(orders),
            Desk.REPLY: AnswerState(llm, ask=True, prompt="You answer customers of a bookshop."),
        }
    )


def model() -> LLM:
    """Return the model that ``AGENT_BRAIN_MODEL`` names, or a script for the question below."""
    if name := os.environ.get("AGENT_BRAIN_MODEL"):
        return LiteLLM(name)
    return ScriptedLLM(
        [
            '{"topic": "order", "order_number": 1042}',
            "Your order is on its way: expect it Thursday.",
        ]
    )


if __name__ == "__main__":
    net = support_desk(model())
    print(net.to_mermaid())
    print(Brain(net).run_sync("Where is my order 1042?").answer)
