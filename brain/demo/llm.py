"""The demo model behind the model port."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Sequence
from typing import Any

from anyio.lowlevel import checkpoint
from pydantic import TypeAdapter

from agent_brain.demo.filling import Known, fill
from agent_brain.demo.picking import pick
from agent_brain.demo.reading import Call, Turn, read_turns
from agent_brain.demo.sums import read_sum
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
_JOINTS = (r",?\s*\b(?:and )?then\b\s*", r"\s*,?\s+and\s+")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_LISTED = re.compile(r"^- ([\w-]+)(?::|$)", re.MULTILINE)


class DemoLLM(LLM):
    """A small rule-based program in the place of a language model: offline, free, deterministic.

    It calculates, calls the tool whose name or words are in the question, and answers from the
    results. Data of any shape is filled in with plausible values, so that every net can be watched.
    Equal messages and tools give equal output, but for the ids of actions.
    """

    model = "demo"

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
    ) -> AsyncIterator[Piece]:
        """Answer ``messages``, as :meth:`agent_brain.states.models.llm.LLM.stream` does."""
        turns, written = read_turns(messages), []
        turns[-1].request |= output_type is not None
        turns = _current(turns, tools)
        calls, answer = _wanted(turns, tools), await _answer(turns)
        pieces: list[str | Action] = re.findall(r"\s*\S+\s*", answer)
        if calls:
            thought = Thought(f"I will call {' and '.join(call.name for call in calls)}.")
            pieces = [thought, *(Action(name=call.name, args=dict(call.args)) for call in calls)]
        elif output_type is not None:
            schema = TypeAdapter(output_type).json_schema()
            pieces = [json.dumps(fill(schema, schema, _known(turns, messages, answer)))]
        for piece in pieces:
            await checkpoint()
            written.append(to_compact_json(piece.args) if isinstance(piece, Action) else piece)
            yield piece
        read = sum(count_tokens(message.content) for message in messages)
        read += sum(count_tokens(to_compact_json(tool.to_dict())) for tool in tools)
        yield Usage(read, count_tokens("".join(written)), 0.0, 1, self.model)


def _current(turns: list[Turn], tools: Sequence[BaseTool]) -> list[Turn]:
    """``turns`` with what the user asked last at the end, where a state has added its requests.

    Of a question and the requests about it, the last that can be done counts, else the question.
    """
    first = len(turns) - 1
    while first and turns[first].request:
        first -= 1
    asked = turns[first:]
    able = [
        turn for turn in asked if any(_can(part, tools) for part in _parts(turn.question, tools))
    ]
    question = able[-1].question if able else asked[0].question
    return [*turns[:first], Turn(question, calls=[call for turn in asked for call in turn.calls])]


def _can(part: str, tools: Sequence[BaseTool]) -> bool:
    return bool(read_sum(part, "1") or pick(part, tools, "1"))


def _wanted(turns: Sequence[Turn], tools: Sequence[BaseTool]) -> list[Call]:
    """The calls that the last question asks for and that are not answered yet."""
    turn, earlier = turns[-1], _earlier(turns)
    wanted: list[Call] = []
    for part in _parts(turn.question, tools) if tools else ():
        call = pick(part, tools, earlier)
        if call is not None:
            same = [c for c in turn.calls if (c.name, dict(c.args)) == (call.name, dict(call.args))]
            earlier = same[0].content if same else "?"  # what follows may have to wait for it
            if not same and len(turn.calls) < MAX_CALLS and call not in wanted:
                wanted.append(call)
    return wanted


def _parts(question: str, tools: Sequence[BaseTool]) -> list[str]:
    """The sentences of a question, cut at "then" and "and" where each part can be done."""
    parts = [part.strip() for part in _SENTENCE.split(question[:MAX_READ]) if part.strip()]
    for joint in _JOINTS:
        whole, parts = parts, []
        for part in whole:
            cut = re.split(joint, part)[:MAX_CALLS]
            parts += cut if all(_can(one, tools) for one in cut) else [part]
    return parts


def _earlier(turns: Sequence[Turn]) -> str:
    """The last result, or the last number of an answer, before the last question."""
    for turn in reversed(turns[:-1]):
        found = [turn.calls[-1].content] if turn.calls else _NUMBER.findall(turn.answer)
        if found:
            return str(found[-1])
    return ""


async def _answer(turns: Sequence[Turn]) -> str:
    """What is known, in words."""
    turn = turns[-1]
    told = [_told(call, turn.question) for call in turn.calls] or await _calculated(turns)
    if told:
        return " ".join(dict.fromkeys(told))
    if len(turns) > 1 and "first question" in turn.question:
        return f"Your first question was: “{turns[0].question}”"
    asked = " ".join(turn.question.split())[:100]
    return f"I have no tool for “{asked}”. {WHO}" if len(asked.split()) > 1 else f"Hello! {WHO}"


async def _calculated(turns: Sequence[Turn]) -> list[str]:
    """The sums in the last question, worked out without a call."""
    earlier, told = _earlier(turns), []
    for part in _parts(turns[-1].question, []):
        expression = read_sum(part, earlier)
        if expression is not None:
            try:
                earlier = await calculate.execute(expression=expression)
                told.append(f"{expression} = {earlier}.")
            except ToolError as error:
                told.append(str(error))
    return told


def _told(call: Call, question: str) -> str:
    content = call.content.strip()
    if call.is_error:
        return f"The tool {call.name} reported an error: {content}"
    expression = call.args.get("expression") or read_sum(question)
    if expression:
        return f"{expression} = {content}."
    end = "" if content.endswith((".", "!", "?")) else "."
    return f"{call.name}({', '.join(map(str, call.args.values()))}) says: {content}{end}"


def _known(turns: Sequence[Turn], messages: Sequence[Message], answer: str) -> Known:
    turn = turns[-1]
    numbers = _NUMBER.findall(turn.calls[-1].content if turn.calls else answer)
    listed = [_LISTED.findall(m.content) for m in messages if m.role is Role.SYSTEM]
    return Known(
        question=turn.question,
        parts=_parts(turn.question, []),
        answer=answer,
        names=[name for names in listed for name in names],
        number=float(numbers[-1]) if numbers else 1.0,
    )
