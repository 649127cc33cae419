"""LangGraph: StateGraphs and `create_agent` with a checkpointer."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Annotated, Any
from uuid import uuid4

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from benchmarks.journals.places import Place
from benchmarks.journals.texts import text
from benchmarks.peers.programs.langgraph import GO, Counting, add


class Number(TypedDict):
    number: int


class Chat(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]


class Requesting(BaseChatModel):
    """Requests a number of results at once, and then answers."""

    calls: int
    characters: int

    @property
    def _llm_type(self) -> str:
        return "requesting"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        message = AIMessage(content="done")
        if isinstance(messages[-1], HumanMessage):
            made = [{"number": n, "characters": self.characters} for n in range(self.calls)]
            calls = [
                {"name": "fetch", "args": args, "id": f"call_{args['number']}"} for args in made
            ]
            message = AIMessage(content="", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


@tool
async def fetch(number: int, characters: int) -> str:
    """Fetch a text."""
    return text(number, characters)


def circle(schema: Any, node: Any, goes_on: Callable[[Any], bool]) -> StateGraph:
    """Return a graph of two nodes that take turns."""
    graph = StateGraph(schema)
    for name, other in (("a", "b"), ("b", "a")):
        graph.add_node(name, node)
        graph.add_conditional_edges(
            name, lambda state, other=other: other if goes_on(state) else END, [other, END]
        )
    graph.add_edge(START, "a")
    return graph


def saying(steps: int, characters: int, fails_at: int | None = None) -> StateGraph:
    async def say(state: Chat) -> Any:
        step = len(state["messages"]) - 1
        if step == fails_at:
            raise RuntimeError("interrupted")
        return {"messages": [AIMessage(content=text(step, characters))]}

    return circle(Chat, say, lambda state: len(state["messages"]) <= steps)


class Runs:
    """Runs over one checkpointer, each over a new thread."""

    def __init__(self, saver: Any, durability: str) -> None:
        self.saver = saver
        self.options = {"durability": durability} if saver else {}

    def config(self, thread: str) -> Any:
        return {"recursion_limit": 10_000, "configurable": {"thread_id": thread}}

    async def run(self, graph: Any, given: Any, thread: str = "") -> Any:
        return await graph.ainvoke(given, self.config(thread or uuid4().hex), **self.options)

    async def hops(self, steps: int) -> None:
        async def hop(state: Number) -> Number:
            return {"number": state["number"] + 1}

        graph = circle(Number, hop, lambda state: state["number"] < steps)
        done = await self.run(graph.compile(self.saver), {"number": 0})
        assert done["number"] == steps

    async def react(self, rounds: int) -> None:
        agent = create_agent(Counting(turns=rounds), [add], checkpointer=self.saver)
        assert (await self.run(agent, GO))["messages"][-1].text == "word " * 10

    async def say(self, steps: int, characters: int) -> None:
        done = await self.run(saying(steps, characters).compile(self.saver), GO)
        assert len(done["messages"]) == steps + 1

    async def fan_out(self, calls: int, characters: int) -> None:
        model = Requesting(calls=calls, characters=characters)
        done = await self.run(create_agent(model, [fetch], checkpointer=self.saver), GO)
        assert sum(len(message.text) for message in done["messages"]) > calls * characters

    async def fill(self, messages: int, characters: int) -> str:
        """Return a thread with messages, all of one checkpoint: this is the least it stores."""
        thread = uuid4().hex
        made = [HumanMessage("go"), *(AIMessage(text(n, characters)) for n in range(messages))]
        graph = saying(messages, characters).compile(self.saver)
        await graph.aupdate_state(self.config(thread), {"messages": made}, as_node="a")
        return thread

    async def open(self, thread: str) -> Callable[[], Awaitable[int]]:
        """Get the state of a thread, and return what counts its messages."""
        state = await saying(1, 1).compile(self.saver).aget_state(self.config(thread))

        async def read() -> int:
            return len(state.values["messages"])

        return read

    async def interrupt(self, step: int, characters: int) -> str:
        """Return a thread whose run was interrupted at a step."""
        thread = uuid4().hex
        try:
            await self.run(saying(step + 1, characters, step).compile(self.saver), GO, thread)
        except RuntimeError:
            return thread
        raise AssertionError("the run was not interrupted")

    async def resume(self, thread: str, step: int, characters: int) -> AsyncIterator[Any]:
        """Yield the events of a resumed run: the first one is the start of the step's node."""
        graph = saying(step + 1, characters).compile(self.saver)
        async for event in graph.astream(
            None, self.config(thread), stream_mode="tasks", **self.options
        ):
            yield event


@asynccontextmanager
async def connected(storage: str, durability: str, place: Place) -> AsyncIterator[Runs]:
    """Yield what runs over a place; threads in RAM end with it."""
    if storage == "sqlite":
        async with AsyncSqliteSaver.from_conn_string(place.address) as saver:
            yield Runs(saver, durability)
    elif storage == "postgres":
        async with AsyncPostgresSaver.from_conn_string(place.address) as saver:
            if not place.prepared:
                await saver.setup()
                place.prepared = True
            yield Runs(saver, durability)
    else:
        yield Runs(InMemorySaver() if storage == "ram" else None, durability)
