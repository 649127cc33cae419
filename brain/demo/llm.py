"""The demo model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

from anyio.lowlevel import checkpoint
from pydantic import TypeAdapter

from agent_brain.demo.filling import Filler
from agent_brain.demo.questions import DemoCall, DemoTurn, pick, read_sum, read_turns
from agent_brain.memories.message import Message, Role
from agent_brain.states.models.llm import LLM, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.tools import Action, BaseTool, ToolError, count_tokens
from agent_brain.tools.builtin import calculate
from agent_brain.tools.text import to_compact_json

WHO = (
    "I am the built-in demo model of Agent Brain: a small rule-based program, not a language "
    "model. I can calculate, and call tools that your question names. "
    'For a real model, set AGENT_BRAIN_MODEL or pass llm="provider/model".'
)
MAX_READ = 2_000  # characters of a question
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
            thought = Thought(f"I will call {' and '.join(call.name for call in calls)}.")
            pieces = [thought, *(Action(name=call.name, args=dict(call.args)) for call in calls)]
        elif output_type is not None:
            schema = TypeAdapter(output_type).json_schema()
            pieces = [json.dumps(_filler(schema, turns, messages, answer).fill(schema))]
        for piece in pieces:
            await checkpoint()
            written.append(to_compact_json(piece.args) if isinstance(piece, Action) else piece)
            yield piece
        read = sum(count_tokens(message.content) for message in messages)
        read += sum(count_tokens(to_compact_json(tool.to_dict())) for tool in tools)
        yield Usage(read, count_tokens("".join(written)), 0.0, 1, self.model)


def _join_requests(turns: list[DemoTurn], tools: Sequence[BaseTool]) -> list[DemoTurn]:
    """Return the turns with the user's last question joined with the requests of states about it.

    The last one that can be done counts, otherwise the user's.
    """
    first = len(turns) - 1
    while first and turns[first].request:
        first -= 1
    asked = turns[first:]
    able = [
        turn.question
        for turn in asked
        if any(_can_do(part, tools) for part in _parts(turn.question, tools))
    ]
    question = able[-1] if able else asked[0].question
    return [
        *turns[:first],
        DemoTurn(question, calls=[call for turn in asked for call in turn.calls]),
    ]


def _can_do(part: str, tools: Sequence[BaseTool]) -> bool:
    return bool(read_sum(part, "1") or pick(part, tools, "1"))


def _calls(turns: Sequence[DemoTurn], tools: Sequence[BaseTool]) -> list[DemoCall]:
    """Return the calls that the last question asks for and that have no result yet."""
    turn, earlier = turns[-1], _earlier(turns)
    wanted: list[DemoCall] = []
    for part in _parts(turn.question, tools) if tools else ():
        call = pick(part, tools, earlier)
        if call is not None:
            same = [c for c in turn.calls if (c.name, dict(c.args)) == (call.name, dict(call.args))]
            earlier = same[0].content if same else "?"  # the next part may depend on it
            if not same and len(turn.calls) < MAX_CALLS and call not in wanted:
                wanted.append(call)
    return wanted


def _parts(question: str, tools: Sequence[BaseTool]) -> list[str]:
    """Return the sentences of a question, split at "then" and "and" if each part can be done."""
    parts = [part.strip() for part in _SENTENCE.split(question[:MAX_READ]) if part.strip()]
    for conjunction in _CONJUNCTIONS:
        split = [re.split(conjunction, part)[:MAX_CALLS] for part in parts]
        parts = [
            piece
            for part, pieces in zip(parts, split, strict=True)
            for piece in (pieces if all(_can_do(one, tools) for one in pieces) else [part])
        ]
    return parts


def _earlier(turns: Sequence[DemoTurn]) -> str:
    """Return the last result, or the last number in an answer, before the last question."""
    for turn in reversed(turns[:-1]):
        found = [turn.calls[-1].content] if turn.calls else _NUMBER.findall(turn.answer)
        if found:
            return str(found[-1])
    return ""


async def _answer(turns: Sequence[DemoTurn]) -> str:
    turn = turns[-1]
    calls = turn.calls or await _sums(turns)
    if calls:
        return " ".join(dict.fromkeys(_result(call, turn.question) for call in calls))
    if len(turns) > 1 and "first question" in turn.question:
        return f"Your first question was: “{turns[0].question}”"
    asked = " ".join(turn.question.split())[:100]
    return f"I have no tool for “{asked}”. {WHO}" if len(asked.split()) > 1 else f"Hello! {WHO}"


async def _sums(turns: Sequence[DemoTurn]) -> list[DemoCall]:
    """Return the arithmetic in the last question, calculated without the model asking for it."""
    earlier, done = _earlier(turns), []
    for part in _parts(turns[-1].question, []):
        if expression := read_sum(part, earlier):
            args = {"expression": expression}
            try:
                earlier = await calculate.execute(**args)
                done.append(DemoCall(calculate.name, args, earlier))
            except ToolError as error:
                done.append(DemoCall(calculate.name, args, str(error), is_error=True))
    return done


def _result(call: DemoCall, question: str) -> str:
    content = call.content.strip()
    if call.is_error:
        return f"The tool {call.name} reported an error: {content}"
    if expression := call.args.get("expression") or read_sum(question):
        return f"{expression} = {content}."
    end = "" if content.endswith((".", "!", "?")) else "."
    return f"{call.name}({', '.join(map(str, call.args.values()))}) says: {content}{end}"


def _filler(
    schema: dict[str, Any], turns: Sequence[DemoTurn], messages: Sequence[Message], answer: str
) -> Filler:
    turn = turns[-1]
    numbers = _NUMBER.findall(turn.calls[-1].content if turn.calls else answer)
    prompts = "\n".join(message.content for message in messages if message.role is Role.SYSTEM)
    return Filler(
        root=schema,
        question=turn.question,
        parts=_parts(turn.question, []),
        answer=answer,
        number=float(numbers[-1]) if numbers else 1.0,
        names=_LISTED.findall(prompts),
    )
