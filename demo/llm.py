"""The demo model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

from anyio.lowlevel import checkpoint
from pydantic import TypeAdapter

from agent_brain.common.text import to_compact_json
from agent_brain.demo.filling import Filler
from agent_brain.demo.questions import Turn, pick, read_sum, read_turns
from agent_brain.memories.message import Message, Role
from agent_brain.states.models.llm import LLM, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.tools import Action, BaseTool, call_tool, count_tokens
from agent_brain.tools.builtin import calculate

WHO = (
    "I am the built-in demo model of Agent Brain: a small rule-based program, not a language "
    "model. I can calculate, and call tools that your question names. "
    'For a real model, set AGENT_BRAIN_MODEL or pass llm="provider/model".'
)
MAX_CALLS = 20  # in a turn

_SENTENCE = re.compile(r"(?<=[?!;:])\s+|\n|(?<=[^\W\d][.])\s+|(?<=\d[.])\s+(?=[A-Z])")
_CONJUNCTIONS = (r",?\s*\b(?:and )?then\b\s*", r"\s*,?\s+and\s+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LISTED = re.compile(r"^- ([\w-]+)(?::|$)", re.MULTILINE)


class DemoLLM(LLM):
    """A rule-based program instead of a language model: offline, free and deterministic.

    It calculates, calls the tool whose name or words are in the question, and answers with the
    results. Structured output of any shape gets plausible values, so every net can be watched.
    Equal messages and tools give equal output, except for the IDs of actions.

    Example::

        result = Brain("react", tools=demo_tools(), llm=DemoLLM()).run_sync("What is 17 times 23?")
    """

    model = "demo"
    rule_based = True

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Piece]:
        """Answer ``messages``; see :meth:`agent_brain.states.models.llm.LLM.stream`."""
        turns, written = read_turns(messages), []
        turns[-1].request |= output_type is not None
        turns = _join_requests(turns, tools)
        calls, answer = _calls(turns, tools), await _answer(turns)
        pieces: list[str | Action] = re.findall(r"\s*\S+\s*", answer)
        if calls:
            pieces = [Thought(f"I will call {' and '.join(call.name for call in calls)}."), *calls]
        elif output_type is not None:
            schema = TypeAdapter(output_type).json_schema()
            numbers = _NUMBER.findall(turns[-1].calls[-1][1].content if turns[-1].calls else answer)
            prompts = "\n".join(each.content for each in messages if each.role is Role.SYSTEM)
            filler = Filler(
                root=schema,
                question=turns[-1].question,
                parts=_parts(turns[-1].question, []),
                answer=answer,
                number=float(numbers[-1]) if numbers else 1.0,
                names=_LISTED.findall(prompts),
            )
            pieces = [json.dumps(filler.fill(schema))]
        for piece in pieces:
            await checkpoint()
            written.append(to_compact_json(piece.args) if isinstance(piece, Action) else piece)
            yield piece
        read = sum(count_tokens(message.content) for message in messages)
        read += sum(count_tokens(to_compact_json(tool.to_dict())) for tool in tools)
        yield Usage(read, count_tokens("".join(written)), 0.0, 1, self.model)


def _join_requests(turns: list[Turn], tools: Sequence[BaseTool]) -> list[Turn]:
    """Return the turns with the requests of states joined with the question they are about."""
    first = max(number for number, turn in enumerate(turns) if not (number and turn.request))
    asked = [turn.question for turn in turns[first:]]
    able = [text for text in asked if any(_can_do(part, tools) for part in _parts(text, tools))]
    done = [call for turn in turns[first:] for call in turn.calls]
    return [*turns[:first], Turn(able[-1] if able else asked[0], calls=done)]


def _can_do(part: str, tools: Sequence[BaseTool]) -> bool:
    return bool(read_sum(part, "1") or pick(part, tools, "1"))


def _calls(turns: Sequence[Turn], tools: Sequence[BaseTool]) -> list[Action]:
    """Return the calls that the last question asks for and that have no result yet."""
    turn, earlier = turns[-1], _earlier(turns)
    wanted: list[Action] = []
    for part in _parts(turn.question, tools) if tools else ():
        call = pick(part, tools, earlier)
        if call is not None:
            key = (call.name, call.args)
            same = [result for made, result in turn.calls if (made.name, made.args) == key]
            earlier = same[0].content if same else "?"  # the next part may depend on it
            new = not same and key not in [(each.name, each.args) for each in wanted]
            if new and len(turn.calls) < MAX_CALLS:
                wanted.append(call)
    return wanted


def _parts(question: str, tools: Sequence[BaseTool]) -> list[str]:
    """Return the sentences of a question, split at "then" and "and" if each part can be done."""
    parts = [part.strip() for part in _SENTENCE.split(question) if part.strip()]
    for conjunction in _CONJUNCTIONS:
        split = [re.split(conjunction, part)[:MAX_CALLS] for part in parts]
        parts = [
            piece
            for part, pieces in zip(parts, split, strict=True)
            for piece in (pieces if all(_can_do(one, tools) for one in pieces) else [part])
        ]
    return parts


def _earlier(turns: Sequence[Turn]) -> str:
    """Return the last result, or the last number in an answer, before the last question."""
    for turn in reversed(turns[:-1]):
        found = [turn.calls[-1][1].content] if turn.calls else _NUMBER.findall(turn.answer)
        if found:
            return str(found[-1])
    return ""


async def _answer(turns: Sequence[Turn]) -> str:
    """Return the answer to the last question; without calls, calculate what it asks for."""
    turn = turns[-1]
    sums = [] if turn.calls else _calls(turns, [calculate])
    while sums:
        for action in sums:
            done = await call_tool(action, {calculate.name: calculate})
            result = Message.tool(done.content, action, is_error=done.is_error)
            turn.calls.append((action, result))
        sums = _calls(turns, [calculate])
    if turn.calls:
        return " ".join(dict.fromkeys(_say(*call, turn.question) for call in turn.calls))
    if len(turns) > 1 and "first question" in turn.question:
        return f"Your first question was: “{turns[0].question}”"
    asked = " ".join(turn.question.split())[:100]
    return f"I have no tool for “{asked}”. {WHO}" if len(asked.split()) > 1 else f"Hello! {WHO}"


def _say(action: Action, result: Message, question: str) -> str:
    content = result.content.strip()
    if result.is_error:
        return f"The tool {action.name} reported an error: {content}"
    if expression := action.args.get("expression") or read_sum(question):
        return f"{expression} = {content}."
    end = "" if content.endswith((".", "!", "?")) else "."
    return f"{action.name}({', '.join(map(str, action.args.values()))}) says: {content}{end}"
