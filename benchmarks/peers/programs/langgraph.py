"""LangGraph: `create_agent` over a chat model, and a StateGraph of two nodes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from typing_extensions import TypedDict

IMPORT = "from langchain.agents import create_agent\nfrom langgraph.graph import StateGraph"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


class Counting(BaseChatModel):
    turns: int
    pause: float = 0.0
    talk: int = 10

    @property
    def _llm_type(self) -> str:
        return "counting"

    def bind_tools(self, tools: Any, **_: Any) -> Any:
        return self

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> ChatResult:
        if self.pause:
            await asyncio.sleep(self.pause)
        last = messages[-1]
        k = int(str(last.content)) if isinstance(last, ToolMessage) else 0
        if k < self.turns:
            call = {"name": "add", "args": {"a": k, "b": 1}, "id": f"call_{k}"}
            message = AIMessage(content="", tool_calls=[call])
        else:
            message = AIMessage(content="word " * 10)
        return ChatResult(generations=[ChatGeneration(message=message)])


class Talking(Counting):
    async def _astream(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **_: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        for _ in range(self.talk):
            await asyncio.sleep(0)
            chunk = ChatGenerationChunk(message=AIMessageChunk(content="word "))
            if run_manager:
                await run_manager.on_llm_new_token("word ", chunk=chunk)
            yield chunk


def agent(turns: int, pause: float = 0.0, **options: Any) -> Any:
    return create_agent(Counting(turns=turns, pause=pause), [add], **options)


GO = {"messages": [{"role": "user", "content": "go"}]}


async def run(agent: Any, turns: int) -> None:
    done = await agent.ainvoke(GO, {"recursion_limit": 10_000})
    assert len(done["messages"]) == 2 * turns + 2
    assert done["messages"][-1].text == "word " * 10


async def react(turns: int) -> None:
    await run(agent(turns), turns)


async def many(runs: int) -> None:
    shared = agent(2, 0.01)
    await asyncio.gather(*(run(shared, 2) for _ in range(runs)))


async def chunks(count: int) -> AsyncIterator[str]:
    talking = create_agent(Talking(turns=0, talk=count), [add])
    async for message, _ in talking.astream(GO, stream_mode="messages"):
        if message.text:
            yield message.text


class Step(TypedDict):
    number: int


async def hops(count: int) -> None:
    async def hop(state: Step) -> Step:
        return {"number": state["number"] + 1}

    graph = StateGraph(Step)
    for name, other in (("a", "b"), ("b", "a")):
        graph.add_node(name, hop)
        graph.add_conditional_edges(
            name, lambda state, other=other: other if state["number"] < count else END, [other, END]
        )
    graph.add_edge(START, "a")
    done = await graph.compile().ainvoke({"number": 0}, {"recursion_limit": count + 10})
    assert done["number"] == count


async def sessions(count: int) -> Any:
    """Threads of one agent with a checkpointer in memory."""
    shared = agent(0, checkpointer=InMemorySaver())
    for number in range(count):
        await shared.ainvoke(GO, {"configurable": {"thread_id": str(number)}})
    return shared
