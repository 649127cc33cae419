"""Drive the demo model as a ReAct loop would, without a net."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo

from agent_brain.demo import DemoLLM, demo_tools
from agent_brain.memories import Message
from agent_brain.states.models.llm import LLM, Thought
from agent_brain.states.usage import Usage
from agent_brain.tools import Action, BaseTool, call_tool

NOON = datetime(2026, 3, 10, 14, 30, tzinfo=UTC)


def fixed_clock(zone: tzinfo) -> datetime:
    """The clock of the tests."""
    return NOON.astimezone(zone)


@dataclass
class Talk:
    """What happened in one turn."""

    answer: str = ""
    thoughts: list[str] = field(default_factory=list)
    actions: list[list[Action]] = field(default_factory=list)
    usages: list[Usage] = field(default_factory=list)
    chunks: list[str] = field(default_factory=list)
    messages: list[Message] = field(default_factory=list)

    @property
    def calls(self) -> list[tuple[str, dict[str, object]]]:
        """Every call by name and arguments, in order."""
        return [(action.name, dict(action.args)) for group in self.actions for action in group]


async def ask(
    question: str,
    tools: Sequence[BaseTool] | None = None,
    *,
    before: Sequence[Message] = (),
    llm: LLM | None = None,
) -> Talk:
    """Ask until the model answers without an action; at most ten calls."""
    tools = demo_tools(clock=fixed_clock) if tools is None else tools
    talk = Talk(messages=[*before, Message.user(question)])
    for _ in range(10):
        actions, chunks = await _call(llm or DemoLLM(), talk, tools)
        if not actions:
            talk.chunks = chunks
            talk.answer = "".join(chunks)
            talk.messages.append(Message.assistant(talk.answer))
            return talk
        talk.actions.append(actions)
        talk.messages.append(Message.assistant("".join(chunks), actions))
        for action in actions:
            outcome = await call_tool(action, {tool.name: tool for tool in tools})
            talk.messages.append(Message.tool(outcome.content, action, is_error=outcome.is_error))
    raise AssertionError(f"no answer after ten calls: {talk.calls}")


async def _call(llm: LLM, talk: Talk, tools: Sequence[BaseTool]) -> tuple[list[Action], list[str]]:
    actions: list[Action] = []
    chunks: list[str] = []
    async for piece in llm.stream(talk.messages, tools=tools):
        if isinstance(piece, Action):
            actions.append(piece)
        elif isinstance(piece, Usage):
            talk.usages.append(piece)
        elif isinstance(piece, Thought):
            talk.thoughts.append(piece)
        elif isinstance(piece, str):
            chunks.append(piece)
    return actions, chunks
