"""An agent for a database with Pydantic AI."""

import sqlite3
from contextlib import closing
from typing import Any

from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelRetry, ToolDenied

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
def execute(sql: str, mode: str) -> list[Any]:
    try:
        with closing(sqlite3.connect(f"file:shop.db?mode={mode}", uri=True)) as database, database:
            return database.execute(sql).fetchall()
    except sqlite3.Error as error:
        raise ModelRetry(str(error)) from error


agent = Agent(
    model,
    output_type=[str, DeferredToolRequests],
    instructions="Answer from the table goods(name, price).",
)


@agent.tool_plain
def read(sql: str) -> list[Any]:
    """Query the database."""
    return execute(sql, "ro")


@agent.tool_plain(requires_approval=True)
def write(sql: str) -> list[Any]:
    """Change the database."""
    return execute(sql, "rw")


result = agent.run_sync("Tea now costs 1 euro more.")
while isinstance(result.output, DeferredToolRequests):
    decided = DeferredToolResults()
    for wanted in result.output.approvals:
        answer = ask(f"{wanted.args_as_dict()['sql']}?")
        decided.approvals[wanted.tool_call_id] = answer == "yes" or ToolDenied(answer)
    result = agent.run_sync(message_history=result.all_messages(), deferred_tool_results=decided)
print(result.output)

# Shown: what the database has now
print(execute("SELECT * FROM goods", "ro"))
