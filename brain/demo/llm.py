"""The demo model behind the model port."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from anyio.lowlevel import checkpoint
from pydantic import BaseModel

from agent_brain.demo.conversation import read_cards, read_turns
from agent_brain.demo.output import fill_output
from agent_brain.demo.plan import Plan, make_plan
from agent_brain.demo.talk import WHO
from agent_brain.memories.message import Message
from agent_brain.states.llm import LLM, Thought
from agent_brain.states.usage import Usage
from agent_brain.tools import Action, BaseTool, count_tokens
from agent_brain.tools.text import to_compact_json


class DemoLLM(LLM):
    """A small rule-based program in the place of a language model: offline, free, deterministic.

    It reads the user's words with patterns, picks among the tools it is given by their names,
    descriptions and schemas, and answers from their results. What it does not understand it says so
    about; it never invents a fact. Equal messages and tools give equal output, but for the unique
    ids of its actions.

    Args:
        native: False for a model without native tool calls: it reads the tools in a system message
            and writes a thought that ends with one JSON object
            (see :data:`agent_brain.states.prompts.REASONING_TEXT`).
    """

    model = "demo"

    def __init__(self, *, native: bool = True) -> None:
        self.supports_tools = native

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[str | Action | Usage]:
        """One call of the model, see :meth:`agent_brain.states.llm.LLM.stream`. Raises nothing."""
        written: list[str] = []
        for piece in self._pieces(messages, tools, output_type):
            await checkpoint()
            written.append(piece if isinstance(piece, str) else to_compact_json(piece.args))
            yield piece
        yield _usage(messages, tools, "".join(written))

    def _pieces(
        self,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        output_type: type[BaseModel] | None,
    ) -> Iterator[str | Action]:
        turns = read_turns(messages)
        cards = read_cards(messages, tools, native=self.supports_tools)
        plan = make_plan(turns, cards)
        if plan.calls and cards:
            yield from self._requested(plan)
        elif cards and not self.supports_tools:
            yield from _words(f"I know enough to answer now. {_without_braces(plan.text)}")
        elif output_type is not None:
            filled = fill_output(output_type, plan, turns[-1])
            yield from [filled] if filled else _words(_cannot_fill(output_type, plan))
        else:
            yield from _words(plan.text)

    def _requested(self, plan: Plan) -> Iterator[str | Action]:
        actions = [Action(name=name, args=args) for name, args in plan.calls]
        if self.supports_tools:
            yield Thought(_thought(actions, plan))
            yield from actions
        else:
            yield from _words(_thought(actions[:1], plan))
            yield "\n" + to_compact_json({"name": actions[0].name, "args": actions[0].args})


def _thought(actions: Sequence[Action], plan: Plan) -> str:
    calls = [f"{action.name} with {_told(action.args)}" for action in actions]
    so_far = "With what I know so far, " if plan.solved else ""
    if len(calls) == 1:
        return f"{so_far}I will call {calls[0]}."
    return f"{so_far}I will make {len(calls)} calls at once: {'; '.join(calls)}."


def _told(args: dict[str, Any]) -> str:
    return ", ".join(f"{name} = {value!r}" for name, value in args.items()) or "no arguments"


def _without_braces(text: str) -> str:
    """In the text mode a JSON object would be taken for a call."""
    return text.replace("{", "(").replace("}", ")")


def _cannot_fill(output_type: type[BaseModel], plan: Plan) -> str:
    return f"I cannot fill in {output_type.__name__} from what I know. {plan.text} {WHO}"


def _words(text: str) -> list[str]:
    return re.findall(r"\s*\S+\s*", text)


def _usage(messages: Sequence[Message], tools: Sequence[BaseTool], written: str) -> Usage:
    read = sum(count_tokens(message.content) for message in messages)
    read += sum(count_tokens(to_compact_json(tool.to_dict())) for tool in tools)
    return Usage(read, count_tokens(written), 0.0, 1, DemoLLM.model)
