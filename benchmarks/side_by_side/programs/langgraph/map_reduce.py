"""Map-reduce over documents with LangGraph."""

import operator
from typing import Annotated, Any, TypedDict

from langchain_core.callbacks import UsageMetadataCallbackHandler
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

# Offline: what a model says
from scripted import Scripted


def said(text: str) -> str:
    return "All are dear." if "\n" in text else f"{text.partition(' ')[0]} is dear."


model = Scripted([said] * 20)
documents = [
    f"{city} has many people." for city in ("Rome", "Oslo", "Bonn", "Bern", "Riga", "Kyiv")
]


# The program
class State(TypedDict):
    documents: list[str]
    summaries: Annotated[list[str], operator.add]
    report: str


class Context(TypedDict):
    budget: int
    usage: UsageMetadataCallbackHandler


class OverBudgetError(Exception):
    pass


def ask(prompt: str, text: str, context: Context) -> str:
    spent = context["usage"].usage_metadata.values()
    if sum(usage["total_tokens"] for usage in spent) >= context["budget"]:
        raise OverBudgetError
    return model.invoke([("system", prompt), ("user", text)]).text


def each(state: State) -> list[Send]:
    return [Send("summarize", document) for document in state["documents"]]


def summarize(document: str, runtime: Runtime[Context]) -> dict[str, Any]:
    return {"summaries": [ask("Summarize in one line.", document, runtime.context)]}


def write(state: State, runtime: Runtime[Context]) -> dict[str, Any]:
    summaries = "\n".join(state["summaries"])
    return {"report": ask("Report on the summaries.", summaries, runtime.context)}


builder = StateGraph(State, context_schema=Context)
builder.add_node(summarize)
builder.add_node(write)
builder.add_conditional_edges(START, each, ["summarize"])
builder.add_edge("summarize", "write")
graph = builder.compile(checkpointer=InMemorySaver())
usage = UsageMetadataCallbackHandler()
config = {"configurable": {"thread_id": "1"}, "callbacks": [usage], "max_concurrency": 2}
try:
    done = graph.invoke({"documents": documents}, config, context={"budget": 300, "usage": usage})
except OverBudgetError:
    print("stopped at the budget")
    done = graph.invoke(None, config, context={"budget": 2000, "usage": usage})
print(done["report"])
