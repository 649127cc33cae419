"""The demo model."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from anyio.lowlevel import checkpoint
from pydantic import TypeAdapter

from agent_brain.common.text import to_compact_json
from agent_brain.demo.filling import Filler, resolve, words
from agent_brain.memories.message import Message, Role
from agent_brain.states.models.llm import LLM, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.tools import Action, BaseTool, ToolError, call_tool, count_tokens
from agent_brain.tools.builtin import calculate
from agent_brain.tools.builtin.calculator import evaluate
from agent_brain.tools.builtin.clock import find_zone

MAX_READ = 2_000  # characters of a question
_OUTPUT_FORMAT = re.compile(r"\s*[^\n]*JSON Schema.*", re.DOTALL)  # not a part of the question
_PLAIN_NUMBER = r"-?\d+(?:\.\d+)?"
_LEAD_IN = re.compile(
    r"^(?:(?:and|then|now|so|please|what(?:'s| is| are)?|how much (?:is|are)|calculate|compute|"
    r"work out|tell me|the (?:result|value) of|can you|could you)\b[\s,:]*)+"
)
_EARLIER = re.compile(r"\b(?:it|that|this|the (?:result|answer|total))\b(?! of)")
_SYMBOLS = [
    (r"(?<=\d),(?=\d{3}\b)", ""),
    (r"^add (.+) (?:and|to) (.+)$", r"(\1) + (\2)"),
    (r"^subtract (.+) from (.+)$", r"(\2) - (\1)"),
    (r"^multiply (.+) (?:by|with|and) (.+)$", r"(\1) * (\2)"),
    (r"^divide (.+) by (.+)$", r"(\1) / (\2)"),
    (r" ?(?:percent|%) of\b", " / 100 *"),
    (r"\b(?:the )?square root of (\S+)", r"sqrt(\1)"),
    (r"\bsquared\b", "** 2"),
    (r"\bto the power of\b", "**"),
    (r"\b(?:multiplied by|times)\b|(?<=\d) x (?=\d)", "*"),
    (r"\bdivided by\b", "/"),
    (r"\bplus\b", "+"),
    (r"\bminus\b", "-"),
    (rf"(?<!sqrt)\(({_PLAIN_NUMBER})\)", r"\1"),
]
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2} [A-Z][a-z]+ \d{4}\b")
_QUOTED = re.compile(r"\"([^\"]*)\"|“([^”]*)”|(?<!\w)'([^']*)'(?!\w)")
_AMOUNT = rf"(?<![\w.]){_PLAIN_NUMBER}"
_NAME = re.compile(r"(?<=\s)[A-Z][\w-]*(?: [A-Z][\w-]*)*")
_OBJECT = re.compile(r"\b(?:in|of|for|about|on|at|to|is)\s+(?:the |an? )?([\w-]+(?: [\w-]+)?)\W*$")


@dataclass(slots=True)
class Turn:
    """What a user or a state asked, the calls with their results, and the model's answer."""

    question: str
    request: bool = False  # whether a state wrote it, about an earlier question of the user
    calls: list[tuple[Action, Message]] = field(default_factory=list)
    answer: str = ""


def read_turns(messages: Sequence[Message]) -> list[Turn]:
    """Return the turns of a conversation, oldest first; at least one."""
    turns = [Turn("")]
    begun: dict[str | None, Action] = {}
    for message in messages:
        if message.role is Role.USER:
            question = _OUTPUT_FORMAT.sub("", message.content[:MAX_READ])
            turns.append(Turn(question, message.cause_by is not None))
        elif message.role is Role.TOOL:
            call = begun.get(message.tool_call_id, Action(name=message.name or "tool"))
            turns[-1].calls.append((call, message))
        elif message.tool_calls:
            begun |= {call.id: call for call in message.tool_calls}
        elif message.role is Role.ASSISTANT:
            turns[-1].answer = message.content
    return turns[1:] or turns


def read_sum(text: str, earlier: str = "") -> str | None:
    """Return the expression that ``text`` asks for; ``earlier`` is the value of "it" and "that"."""
    said = _LEAD_IN.sub("", text.strip().lower()).strip(" ?!.=")
    if _EARLIER.search(said):
        if not re.fullmatch(_PLAIN_NUMBER, earlier):
            return None
        said = _EARLIER.sub(earlier, said)
    for pattern, symbols in _SYMBOLS:
        said = re.sub(pattern, symbols, said)
    if re.fullmatch(rf"[\d-]+|{_PLAIN_NUMBER}|pi|e|", said):  # a number, a date
        return None
    try:
        evaluate(said)
    except ToolError as error:
        return said if "zero" in str(error) else None
    return said


def pick(text: str, tools: Sequence[BaseTool], earlier: str = "") -> Action | None:
    """Return the call that ``text`` asks for; None if no tool fits or an argument is missing."""
    expression = read_sum(text, earlier)
    fits = []
    for tool in tools:
        parameters = _parameters(tool)
        if expression is not None and "expression" in parameters:
            return Action(name=tool.name, args={"expression": expression})
        score = _score(text, tool, parameters)
        required = tool.input_schema.get("required", ())
        args = _Values(text).arguments(required, parameters) if score else None
        if args is not None:
            fits.append((score, len(args), Action(name=tool.name, args=args)))
    return max(fits, key=lambda fit: fit[:2])[2] if fits else None


def _parameters(tool: BaseTool) -> dict[str, Mapping[str, Any]]:
    parts = tool.input_schema.get("properties", {})
    return {name: resolve(part, tool.input_schema) for name, part in parts.items()}


def _score(text: str, tool: BaseTool, parameters: Mapping[str, Mapping[str, Any]]) -> int:
    """Return how well a tool fits; 0 for not at all. Its name and its choices count most."""
    asked, named = words(text), words(tool.name)
    shared = len(named & asked)
    score = 9 * (re.search(rf"\b{re.escape(tool.name)}\b", text) is not None)
    score += 3 * shared * (2 * shared >= len(named))
    score += 3 * any(_choice(text, part) is not None for part in parameters.values())
    described = len(words(f"{tool.description} {' '.join(parameters)}") & asked)
    return score + min(2, described) if score or described > 1 else 0


def _choice(text: str, part: Mapping[str, Any]) -> str | None:
    """Return the enum value that shares most words with ``text``, at least half of its own."""
    values = [value for value in part.get("enum", ()) if isinstance(value, str)]
    shares = {value: len(words(value) & words(text)) / (len(words(value)) or 1) for value in values}
    best = max(shares, key=shares.__getitem__, default=None)
    return best if best is not None and shares[best] >= 0.5 else None


class _Values:
    """The values in a question; each is used for one parameter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._dates = [_iso(date) for date in _DATE.findall(text)]
        rest = _DATE.sub(" ", text)
        self._numbers = [float(number) for number in re.findall(_AMOUNT, rest)]
        self._texts = ["".join(match) for match in _QUOTED.findall(rest)]
        self._texts = self._texts or _NAME.findall(rest) or _OBJECT.findall(rest)

    def arguments(
        self, required: Sequence[str], parameters: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any] | None:
        """Return the arguments for the parameters; None if a required one is missing."""
        values = {
            name: self._value(name, part, required=name in required)
            for name, part in parameters.items()
        }
        args = {name: value for name, value in values.items() if value is not None}
        return args if all(name in args or name not in values for name in required) else None

    def _value(self, name: str, part: Mapping[str, Any], *, required: bool) -> Any:
        parts = set(name.lower().split("_"))
        match part.get("type", "string"):
            case _ if part.get("enum"):
                return _choice(self._text, part)
            case "integer" | "number":
                return self._number(name, required=required)
            case "array" if required:
                numeric = resolve(part.get("items"), part).get("type") in ("integer", "number")
                return (self._numbers if numeric else self._texts) or None
            case "string" if "date" in parts:
                return self._dates.pop(0) if self._dates else None
            case "string" if "zone" in parts:
                return next((place for place in self._texts if find_zone(place)), None)
            case "string" if required and parts & {"query", "question"}:
                return self._text.strip()
            case "string" if required and "expression" not in parts:
                before = r"(?:from|\d)" if "from" in parts else r"\b(?:to|in)"
                unit = re.search(rf"{before} +([\w/]+)", self._text)
                if unit and parts & {"from", "to"}:
                    return unit[1]
                return self._texts.pop(0) if self._texts else None
        return None

    def _number(self, name: str, *, required: bool) -> float | None:
        near = re.search(rf"({_AMOUNT})[ -](?:{'|'.join(words(name)) or '-'})", self._text)
        if not near and not (required and self._numbers):
            return None
        value = float(near[1]) if near else self._numbers[0]
        if value in self._numbers:
            self._numbers.remove(value)
        return int(value) if value.is_integer() else value


def _iso(date: str) -> str:
    with suppress(ValueError):
        return datetime.strptime(date, "%d %B %Y").date().isoformat()  # noqa: DTZ007 - no time
    return date


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
