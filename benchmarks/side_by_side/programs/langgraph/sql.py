"""An agent for a database with LangGraph and LangChain's `create_agent`."""

import sqlite3
from contextlib import closing
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

# Offline: a database, and what a model and a person say
from scripted import Scripted, call
from stand_ins import person, shop

shop()
model = Scripted(
    [
        call("read", sql="SELECT cost FROM goods"),
        call("read", sql="SELECT price FROM goods WHERE name = 'tea'"),
        call("write", sql="UPDATE goods SET price = 5"),
        call("write", sql="UPDATE goods SET price = 5 WHERE name = 'tea'"),
        "Tea costs 5 euros now.",
    ]
)
ask = person("That changes all prices", "yes")


# The program
def execute(sql: str, mode: str) -> Any:
    try:
        with closing(sqlite3.connect(f"file:shop.db?mode={mode}", uri=True)) as database, database:
            return database.execute(sql).fetchall()
    except sqlite3.Error as error:
        return f"Error: {error}"


@tool
def read(sql: str) -> Any:
    """Query the database."""
    return execute(sql, "ro")


@tool
def write(sql: str) -> Any:
    """Change the database."""
    return execute(sql, "rw")


agent = create_agent(
    model,
    [read, write],
    system_prompt="Answer from the table goods(name, price).",
    middleware=[HumanInTheLoopMiddleware({"write": True})],
    checkpointer=InMemorySaver(),
)
config = {"configurable": {"thread_id": "1"}}
done = agent.invoke({"messages": [("user", "Tea now costs 1 euro more.")]}, config)
while "__interrupt__" in done:
    decisions = []
    for wanted in done["__interrupt__"][0].value["action_requests"]:
        answer = ask(f"{wanted['args']['sql']}?")
        approves = answer == "yes"
        decisions.append({"type": "approve"} if approves else {"type": "reject", "message": answer})
    done = agent.invoke(Command(resume={"decisions": decisions}), config)
print(done["messages"][-1].text)

# Shown: what the database has now
print(execute("SELECT * FROM goods", "ro"))
