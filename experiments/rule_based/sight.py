"""What the rule-based model is shown in one call: facts, questions, and requests of states."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

from agent_brain.experiments.expressions import ExpressionError, read_expression, write
from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.results import HEAD
from agent_brain.memories.user import knowing
from agent_brain.nets.library import debate, plan_execute, router, voting
from agent_brain.nets.library import graph_of_thoughts as graph
from agent_brain.nets.library import tree_of_thoughts as tree
from agent_brain.states import evaluation, planning, prompts
from agent_brain.stuck import HINT
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

Facts = dict[str, str]
"""Values by what they are the value of: ``"code of cellar"``, or an expression."""

_SENTENCE = r"(?:[^.?!;:\n]|\.(?=\d))+?"
_FACT = re.compile(
    rf"\bthe ({_SENTENCE} of {_SENTENCE}) (?:is|are) (?:now )?({_SENTENCE})[.!](?!\d)", re.I
)
_QUESTION = re.compile(
    rf"\b(?:what is|find|look up|tell me) the ({_SENTENCE} of {_SENTENCE})[.?!](?!\d)", re.I
)
_ENTRY = re.compile(r"(?:^|[.;]) *([a-z][a-z ]*): ([^;\n]+?)(?=\.?(?:;|$))", re.MULTILINE)
_EQUATION = re.compile(r"([(\d-][\d\s()+*/-]*[\d)]) = (-?\d+(?:/\d+)?)(?![\d.]*\d)")
_DATA = re.compile(r"<data>.*?</data>", re.DOTALL)
_DATE = re.compile(r"\[(\d{4}-\d\d-\d\d(?: \d\d:\d\d)?)")
_OF = re.compile(r" of (?:the )?", re.I)


def facts_in(texts: Iterable[str]) -> Facts:
    """Return the facts that texts state; of several about one thing, the last."""
    found: Facts = {}
    for text in texts:
        found |= {name: value for _, name, value in statements_in(text)}
        for match in _EQUATION.finditer(text):
            try:
                found[write(read_expression(match[1]))] = match[2]
            except ExpressionError:
                continue
    return found


def statements_in(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the sentences that state a fact, each with what it is the value of, and the value."""
    for match in _FACT.finditer(text):
        yield match[0], key(chain(match[1])), match[2].strip()


def in_order(record: str) -> str:
    """Return a record of what was said with its lines by their dates, which some show best first.

    Without what others said: it stands in ``<data>``.
    """
    lines = _DATA.sub("", record).splitlines()
    return "\n".join(sorted(lines, key=lambda line: "".join(_DATE.findall(line)[:1])))


def entries_in(record: str) -> Facts:
    """Return the entries of a record: ``"Ann Berg. town: Bergen; room: 12"``."""
    return {match[1].casefold(): match[2].strip() for match in _ENTRY.finditer(record)}


def questions_in(text: str) -> list[list[str]]:
    """Return what a text asks for, each as a chain: ``["town", "manager", "Logistics"]``."""
    return [chain(match[1]) for match in _QUESTION.finditer(text)]


def chain(phrase: str) -> list[str]:
    """Return the parts of "the town of the manager of Logistics"."""
    parts = [part.strip() for part in _OF.split(phrase)]
    return [re.sub(r"^the ", "", parts[0], flags=re.I), *parts[1:]]


def key(parts: Iterable[str]) -> str:
    """Return the key of a fact."""
    return " of ".join(parts).casefold()


def words_of(parts: Iterable[str]) -> str:
    """Return a chain as it is said: "the town of the manager of Logistics"."""
    first, *rest = parts
    *between, subject = rest
    named = subject if subject[:1].isupper() or subject.startswith("my ") else f"the {subject}"
    said = " of ".join(["the " + part for part in (first, *between)])
    return f"{said} of {named}"


def shorter(parts: list[str]) -> Iterator[list[str]]:
    """Yield the chains that lead to a chain, the shortest first, and the chain itself."""
    for begin in range(len(parts) - 2, -1, -1):
        yield parts[begin:]


REMARK = "Look at this again: "
"""How the model's own remarks begin, which come back to it as messages of the user."""

_TEMPLATES: tuple[tuple[str, str], ...] = (
    ("plan", planning.REQUEST),
    ("plan again", planning.AGAIN),
    ("step", planning.STEP),
    ("judge answer", evaluation.REQUEST),
    ("judge step", plan_execute.REQUEST),
    ("judge last step", evaluation.STEP_REQUEST),
    ("reflect", evaluation.SELF_REQUEST),
    ("lesson", evaluation.LESSON),
    ("opening", debate.OPENING),
    ("reply", debate.REPLY),
    ("choose answer", voting.REQUEST),
    ("choose path", tree.VOTE),
    ("continue path", tree.CONTINUE),
    ("next thought", tree.SAMPLE),
    ("judge path", tree.JUDGE),
    ("generate", graph.REQUESTS["generate"] + "{ideas}"),
    ("generate", "Write {count} different answers to my goal.{ideas}"),
    ("aggregate", graph.REQUESTS["aggregate"] + "{ideas}"),
    ("refine", graph.REQUESTS["refine"] + "{ideas}"),
    ("rate", graph.REQUESTS["score"] + "{ideas}"),
    ("route", router.REQUEST),
    ("remark", REMARK + "{remark}"),
    ("hint", HINT),
    ("closing", prompts.GO_ON),
    ("closing", prompts.ANSWER_NOW),
    ("closing", prompts.ANSWER_NOW_AS_DATA),
    ("correction", "That could not be used: {problem}. Write it again, corrected."),
    ("recalled", HEAD + "{lines}"),
    ("recalled", knowing.HEAD + "{lines}"),
    ("extract", "Known facts:\n{known}\nNew messages:\n{messages}"),
)


@dataclass(frozen=True, slots=True)
class Request:
    """What a state asks for, with the values of the placeholders in its prompt."""

    kind: str
    fields: dict[str, str]


def recognise(text: str) -> Request | None:
    """Return the request that a message of the user is; None if a user has written it."""
    for kind, template in _TEMPLATES:
        match = _pattern(template).fullmatch(text.strip())
        if match is not None:
            return Request(kind, {name: value.strip() for name, value in match.groupdict().items()})
    return None


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", template.strip())
    written = [
        f"(?P<{part}>.*?)" if place % 2 else re.escape(part) for place, part in enumerate(parts)
    ]
    return re.compile("".join(written), re.DOTALL)


_PASSING = ("closing", "correction", "recalled", "hint")
_GOAL = "Goal: "


@dataclass(frozen=True)
class Sight:
    """What one call shows.

    Attributes:
        messages: The messages.
        tools: The tools that are offered.
        output_type: The shape of the output, if one is asked for.
    """

    messages: Sequence[Message]
    tools: Sequence[BaseTool] = ()
    output_type: Any = None

    @cached_property
    def system(self) -> str:
        """The text of all system messages."""
        return "\n\n".join(m.content for m in self.messages if m.role is Role.SYSTEM)

    @cached_property
    def _requests(self) -> list[tuple[Message, Request | None]]:
        return [(m, recognise(m.content)) for m in self.messages if m.role is Role.USER]

    @cached_property
    def request(self) -> Request | None:
        """What a state asks for in the last message that says something; None if a user speaks."""
        for message in reversed(self.messages):
            if message.role is Role.TOOL:
                return None
            request = recognise(message.content) if message.role is Role.USER else None
            if message.role is Role.USER and (request is None or request.kind not in _PASSING):
                return request
        return None

    @cached_property
    def goal(self) -> str:
        """What the user said last."""
        said = [message.content for message, request in self._requests if request is None]
        return said[-1] if said else ""

    @cached_property
    def question(self) -> str:
        """What is to be answered: the step of a plan, or the goal."""
        for _, request in reversed(self._requests if _GOAL not in self.system else ()):
            if request is None or request.kind in ("plan", "plan again"):
                break
            if request.kind == "step":
                return request.fields["task"]
        return self.goal

    @cached_property
    def _calls(self) -> dict[str | None, Action]:
        return {call.id: call for message in self.messages for call in message.tool_calls}

    @cached_property
    def results(self) -> list[tuple[Action, Message]]:
        """The calls and their results since the user spoke last."""
        found: list[tuple[Action, Message]] = []
        for message in self.messages:
            if message.role is Role.USER and message.content == self.goal:
                found = []
            elif message.role is Role.TOOL and message.tool_call_id in self._calls:
                found.append((self._calls[message.tool_call_id], message))
        return found

    @cached_property
    def said(self) -> list[str]:
        """What users say, now and in what is recalled."""
        return [
            m.content if r is None else in_order(m.content)
            for m, r in self._requests
            if r is None or r.kind == "recalled"
        ]

    @cached_property
    def facts(self) -> Facts:
        """Everything that the system prompt, users and tools state; what came last counts."""
        found = facts_in([self.system, *self.said])
        for message in self.messages:
            call = self._calls.get(message.tool_call_id)
            if message.role is not Role.TOOL or message.is_error or call is None:
                continue
            found |= facts_in([message.content])
            texts = [value for value in call.args.values() if isinstance(value, str)]
            if len(texts) == 1:
                entries = entries_in(message.content)
                found |= {key([name, texts[0]]): value for name, value in entries.items()}
        return found
