"""Triage with Pydantic AI."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, Field
from pydantic_ai import Agent, ModelMessage, ModelMessagesTypeAdapter

# Offline: what a model says
from scripted import Scripted, call

model = Scripted(
    [
        call("final_result", topic="billing", angry=False),
        "Under Account, Invoices.",
        call("final_result", topic="billing", angry=True),
        "We are sorry: you get 20 euros back.",
    ]
)


# The program
class Ticket(BaseModel):
    topic: Literal["billing", "technical", "other"]
    angry: bool


class Offer(BaseModel):
    refund: int = Field(ge=0, le=50)
    note: str


sorter = Agent(model, output_type=Ticket, instructions="Sort the ticket.")
writer = Agent(model, instructions="Reply to the customer.")


def history(chat: str) -> list[ModelMessage]:
    file = Path(f"{chat}.json")
    return ModelMessagesTypeAdapter.validate_json(file.read_bytes()) if file.exists() else []


def reply(chat: str, text: str) -> str:
    result = writer.run_sync(text, message_history=history(chat))
    Path(f"{chat}.json").write_bytes(result.all_messages_json())
    return result.output


def receive(chat: str, text: str) -> str:
    if sorter.run_sync(text, message_history=history(chat)).output.angry:
        Path(f"{chat}.waits").write_text(text)
        return "A colleague will answer soon."
    return reply(chat, text)


def decide(chat: str, offer: str) -> str:
    text = Path(f"{chat}.waits").read_text()
    decided = Offer.model_validate_json(offer)
    return reply(chat, f"{text}\nWhat do we offer? {decided.model_dump_json()}")


# Shown: a chat, each line of which may run in a process of its own
print(receive("ann", "Where are my invoices?"))
print(receive("ann", "This is the third wrong bill!"))
print(decide("ann", '{"refund": 20, "note": "sorry"}'))
