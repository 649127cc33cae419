"""Any tool of the user's: does it fit the words, and what are its arguments?"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from agent_brain.demo.entities import Entities, find_entities
from agent_brain.demo.fill import coerce
from agent_brain.demo.schema import Card, Param, stems
from agent_brain.tools.builtin.zones import find_zone

MAX_TEXT = 2_000  # characters that are searched for values
ENOUGH = 1.5  # score from which a tool is taken to fit

_VERBS = frozenset(
    "get fetch find search look lookup list show make create add set do run call tell check "
    "compute calculate read tool use query by for of the a an in to and from with".split()
)
_STOP = frozenset(
    "what is are was were the a an of in on at to for and or it its how many much do does did can "
    "could would "
    "will i you me my we us please tell that this there be have has with from by s".split()
)
_SEARCH = frozenset("search lookup wikipedia wiki web google retrieve knowledge browse".split())
_QUERY = frozenset("query question q text search topic term keyword".split())
_ORIGIN = frozenset("from source origin start departure".split())
_TARGET = frozenset("to target dest destination end arrival into".split())
_FREE_TEXT = frozenset("text message content note body title task item query question".split())


@dataclass(frozen=True, slots=True)
class Fit:
    """How a tool fits a question.

    Attributes:
        card: The tool.
        score: Higher is better; from :data:`ENOUGH` on it may be called.
        calls: The arguments of each call that the question asks for.
        missing: Required parameters for which the question has no value.
    """

    card: Card
    score: float
    calls: list[dict[str, Any]]
    missing: list[str]


def best_fit(cards: list[Card], text: str) -> Fit | None:
    """The tool that fits ``text`` best: complete ones first, then one whose values are missing."""
    entities = find_entities(text[:MAX_TEXT])
    fits = [_fit(card, entities) for card in cards]
    complete = [fit for fit in fits if not fit.missing and fit.score >= ENOUGH]
    if complete:
        return max(complete, key=lambda fit: fit.score)
    lacking = [fit for fit in fits if fit.missing and fit.score >= 2]
    return max(lacking, key=lambda fit: fit.score) if lacking else _as_search(cards, text)


def _as_search(cards: list[Card], text: str) -> Fit | None:
    """A tool that answers any question, if there is one and ``text`` looks like a question."""
    if len(text.split()) < 3 or not re.match(
        r"(?:who|what|when|where|why|which|how|search|find|look)\b", text, re.I
    ):
        return None
    for card in cards:
        required = [param for param in card.params if param.required]
        if len(required) == 1 and required[0].type == "string" and not required[0].enum:
            if _SEARCH & set(stems(card.name)) and _QUERY & set(required[0].words):
                return Fit(card, ENOUGH, [{required[0].name: text.strip()}], [])
    return None


def _fit(card: Card, entities: Entities) -> Fit:
    content = set(stems(entities.words)) - _STOP
    nouns = set(stems(card.name)) - _VERBS
    matched = nouns & content
    named = bool(nouns) and len(matched) > len(nouns) / 2
    score = 2.0 * len(matched) if named else 0.0
    counted = matched if named else set()
    told = set(stems(card.description)) | nouns | {w for p in card.params for w in p.words}
    score += 0.75 * min(3, len((told & content) - counted - _VERBS))
    if re.search(rf"\b{re.escape(card.name)}\b", entities.words) and len(card.name) > 2:
        score += 4
    calls, missing = _calls(card, entities)
    filled = any(param.required and param.name in calls[0] for param in card.params)
    if (
        not filled and score < 2
    ):  # nothing said what to call it with: a word in common is too little
        score = 0.0
    return Fit(card, score + 0.75 * filled * bool(score), calls, missing)


def _calls(card: Card, entities: Entities) -> tuple[list[dict[str, Any]], list[str]]:
    filler = _Filler(entities)
    args: dict[str, Any] = {}
    for param in card.params:
        value = filler.value(param)
        if value is not None:
            args[param.name] = value
    missing = [p.name for p in card.params if p.required and p.name not in args]
    calls = [args]
    plain = [p for p in card.params if p.required and args.get(p.name) in entities.names]
    if len(plain) == 1:  # "in Paris and in Rome": one call for each
        calls += [{**args, plain[0].name: name} for name in filler.names]
    return calls, missing


class _Filler:
    """Hands out the entities of one question, each to one parameter."""

    def __init__(self, entities: Entities) -> None:
        self._text = entities.words
        self._quoted = list(entities.quoted)
        self.names = list(entities.names)
        self._objects = list(entities.objects)
        self._numbers = list(entities.numbers)
        self._dates = [day for day in entities.dates if isinstance(day, str)]

    def value(self, param: Param) -> Any:
        """The value for ``param``, or None."""
        if param.enum:
            return self._listed(param)
        if param.type in ("integer", "number"):
            return self._number(param)
        if param.type == "boolean":
            return True if param.required and set(param.words) <= set(stems(self._text)) else None
        if param.type == "array":
            return self._many(param)
        if param.type != "string":
            return None
        return self._string(param)

    def _listed(self, param: Param) -> Any:
        said = f" {' '.join(stems(self._text))} "
        for value in param.enum:
            if stems(str(value)) and f" {' '.join(stems(str(value)))} " in said:
                return value
        return None

    def _number(self, param: Param) -> Any:
        words = "|".join(re.escape(word) for word in param.words)
        near = re.search(
            rf"(-?\d+(?:\.\d+)?) (?:{words})|\b(?:{words})s?(?: (?:of|is|=))? (-?\d+(?:\.\d+)?)",
            self._text,
            re.I,
        )
        if near:
            wanted = float(near[1] or near[2])
            if wanted in self._numbers:
                self._numbers.remove(wanted)
                return coerce(wanted, param)
        if not param.required or not self._numbers:
            return None
        value = coerce(self._numbers[0], param)
        if value is not None:
            self._numbers.pop(0)
        return value

    def _many(self, param: Param) -> Any:
        if not param.required:
            return None
        source: list[Any] = self._quoted or self.names
        if param.items in ("integer", "number"):
            source = self._numbers
        found = list(source)
        source.clear()
        return found or None

    def _string(self, param: Param) -> str | None:
        words = set(param.words)
        if param.format.startswith("date") or words & {"date", "day", "when"}:
            return self._dates.pop(0) if self._dates else None
        pattern = {"email": r"[\w.+-]+@[\w-]+\.[\w.]+", "url": r"https?://\S+"}
        for key, shape in pattern.items():
            if key in words or (key == "email" and words & {"to", "recipient", "address"}):
                found = re.search(shape, self._text)
                if found or key in words:
                    return found[0] if found else None
        if not param.required:
            return None
        if words & {"zone", "timezone", "tz"}:
            return next((find_zone(name) for name in self.names if find_zone(name)), None)
        if self._quoted:
            return self._quoted.pop(0)
        if words & _FREE_TEXT:
            return _rest(self._text)
        return self._directed(words) or self._next()

    def _directed(self, words: set[str]) -> str | None:
        for group, prepositions in ((_ORIGIN, "from"), (_TARGET, "to|into")):
            if words & group:
                for name in self.names:
                    if re.search(rf"\b(?:{prepositions})\s+{re.escape(name)}", self._text):
                        self.names.remove(name)
                        return name
        return None

    def _next(self) -> str | None:
        if self.names:
            return self.names.pop(0)
        return self._objects.pop(0) if self._objects else None


def _rest(text: str) -> str | None:
    """What comes after a colon or after the words "about", "for", "that", "to"."""
    found = re.search(r":\s*(.+)|\b(?:about|for|that|saying|to)\s+(.+)", text, re.S)
    rest = (found[1] or found[2]) if found else ""
    return rest.strip(" ?.!") or None
