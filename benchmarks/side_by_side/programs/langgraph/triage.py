"""Triage with LangGraph."""

from typing import Any, Literal

from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from pydantic import BaseModel, Field

# Offline: what a model says
from scripted import Scripted, call

model = Scripted(
    [
        call("Ticket", topic="billing", angry=False),
        "Under Account, Invoices.",
        call("Ticket", topic="billing", angry=True),
        "We are sorry: you get 20 euros back.",
    ]
)


# The program
class Ticket(BaseModel):
    """A ticket."""

    topic: Literal["billing", "technical", "other"]
    angry: bool


class Offer(BaseModel):
    refund: int = Field(ge=0, le=50)
    note: str


def sort(state: MessagesState) -> Command[Literal["escalate", "reply"]]:
    ticket = model.with_structured_output(Ticket).invoke(
        [("system", "Sort the ticket."), *state["messages"]]
    )
    return Command(goto="escalate" if ticket.angry else "reply")


def escalate(state: MessagesState) -> dict[str, Any]:
    offer = interrupt("What do we offer?")
    return {"messages": [("user", f"What do we offer? {offer}")]}


def reply(state: MessagesState) -> dict[str, Any]:
    messages = [("system", "Reply to the customer."), *state["messages"]]
    return {"messages": [model.invoke(messages)]}


builder = StateGraph(MessagesState)
builder.add_node(sort)
builder.add_node(escalate)
builder.add_node(reply)
builder.add_edge(START, "sort")
builder.add_edge("escalate", "reply")


def run(chat: str, given: Any) -> str:
    with SqliteSaver.from_conn_string("chats.db") as saver:
        config = {"configurable": {"thread_id": chat}}
        done = builder.compile(checkpointer=saver).invoke(given, config)
    return "A colleague will answer soon." if "__interrupt__" in done else done["messages"][-1].text


def receive(chat: str, text: str) -> str:
    return run(chat, {"messages": [("user", text)]})


def decide(chat: str, offer: str) -> str:
    return run(chat, Command(resume=Offer.model_validate_json(offer).model_dump_json()))


# Shown: a chat, each line of which may run in a process of its own
print(receive("ann", "Where are my invoices?"))
print(receive("ann", "This is the third wrong bill!"))
print(decide("ann", '{"refund": 20, "note": "sorry"}'))
