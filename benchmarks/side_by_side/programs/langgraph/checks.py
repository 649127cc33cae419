"""Which mistakes LangGraph finds before a run."""

import json
import sys
from collections.abc import Callable
from typing import Any, Literal

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.agents.structured_output import ToolStrategy
from langchain.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from scripted import Scripted


def nowhere(state: MessagesState) -> Command[Literal["nowhere else"]]:
    return Command(goto="nowhere else")


def nothing(state: MessagesState) -> dict[str, Any]:
    return {}


def graph(nodes: list[Any], *edges: tuple[str, str]) -> Any:
    builder = StateGraph(MessagesState)
    for name, node in zip("ab", nodes, strict=False):
        builder.add_node(name, node)
    for edge in ((START, "a"), *edges):
        builder.add_edge(*edge)
    return builder.compile()


@tool
def write(text: str) -> str:
    """Write."""
    return text


@tool("write")
def another(text: str) -> str:
    """Write."""
    return text


def refused(make: Callable[[], Any]) -> bool:
    try:
        make()
    except Exception as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return True
    return False


print(
    json.dumps(
        {
            "edge": refused(lambda: graph([nowhere])),
            "unreachable": refused(lambda: graph([nothing, nothing])),
            "loop": refused(lambda: graph([nothing, nothing], ("a", "b"), ("b", "a"))),
            "tools": refused(lambda: create_agent(Scripted([]), [write, another])),
            "approval": refused(
                lambda: create_agent(
                    Scripted([]), [write], middleware=[HumanInTheLoopMiddleware({"wriet": True})]
                )
            ),
            "type": refused(
                lambda: create_agent(Scripted([]), [], response_format=ToolStrategy(object()))
            ),
        }
    )
)
