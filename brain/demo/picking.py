"""Which tool the words of a question ask for, and with what arguments."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from agent_brain.demo.filling import resolve
from agent_brain.demo.reading import Call, words
from agent_brain.demo.sums import read_sum
from agent_brain.tools import BaseTool
from agent_brain.tools.builtin.zones import find_zone

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b|\b\d{1,2} [A-Z][a-z]+ \d{4}\b")
_QUOTED = re.compile(r"\"([^\"]*)\"|“([^”]*)”|(?<!\w)'([^']*)'(?!\w)")
_NUMBER = r"(?<![\w.])-?\d+(?:\.\d+)?"
_NAME = re.compile(r"(?<=\s)[A-Z][\w-]*(?: [A-Z][\w-]*)*")
_OBJECT = re.compile(r"\b(?:in|of|for|about|on|at|to|is)\s+(?:the |an? )?([\w-]+(?: [\w-]+)?)\W*$")


def pick(text: str, tools: Sequence[BaseTool], earlier: str = "") -> Call | None:
    """The call that ``text`` asks for; None if no tool fits or a value is missing.

    Args:
        text: A question, or a part of one.
        tools: The tools.
        earlier: What "it" and "that" mean.
    """
    expression = read_sum(text, earlier)
    fits = []
    for tool in tools:
        if expression is not None and "expression" in _parameters(tool):
            return Call(tool.name, {"expression": expression})
        score = _score(text, tool)
        args = _Arguments(text).all(tool) if score else None
        if args is not None:
            fits.append((score, len(args), Call(tool.name, args)))
    return max(fits, key=lambda fit: fit[:2])[2] if fits else None


def _parameters(tool: BaseTool) -> dict[str, Mapping[str, Any]]:
    parts = tool.input_schema.get("properties", {})
    return {name: resolve(part, tool.input_schema) for name, part in parts.items()}


def _score(text: str, tool: BaseTool) -> int:
    """How well a tool fits: the words of its name and its choices count most; 0 is not at all."""
    asked, named, parts = words(text), words(tool.name), _parameters(tool)
    shared = len(named & asked)
    score = 9 * (re.search(rf"\b{re.escape(tool.name)}\b", text) is not None)
    score += 3 * shared * (2 * shared >= len(named))
    score += 3 * any(_choice(text, part) is not None for part in parts.values())
    told = len(words(f"{tool.description} {' '.join(parts)}") & asked)
    return score + min(2, told) if score or told > 1 else 0


def _choice(text: str, part: Mapping[str, Any]) -> str | None:
    """The listed value that the words name best, at least half of it."""
    asked = words(text)

    def share(value: str) -> float:
        return len(words(value) & asked) / (len(words(value)) or 1)

    listed = [value for value in part.get("enum", ()) if isinstance(value, str)]
    best = max(listed, key=share, default="")
    return best if share(best) >= 0.5 else None


class _Arguments:
    """The values in a question, each given to one parameter."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._dates = [_iso(date) for date in _DATE.findall(text)]
        rest = _DATE.sub(" ", text)
        self._numbers = [float(number) for number in re.findall(_NUMBER, rest)]
        self._texts = ["".join(match) for match in _QUOTED.findall(rest)]
        self._texts = self._texts or _NAME.findall(rest) or _OBJECT.findall(rest)

    def all(self, tool: BaseTool) -> dict[str, Any] | None:
        """The arguments for a tool; None if it requires one that is not here."""
        args: dict[str, Any] = {}
        for name, part in _parameters(tool).items():
            required = name in tool.input_schema.get("required", ())
            value = self._value(name, part, required=required)
            if value is not None:
                args[name] = value
            elif required:
                return None
        return args

    def _value(self, name: str, part: Mapping[str, Any], *, required: bool) -> Any:
        if part.get("enum"):
            return _choice(self._text, part)
        match part.get("type", "string"):
            case "integer" | "number":
                return self._number(name, required=required)
            case "array" if required:
                numeric = resolve(part.get("items"), part).get("type") in ("integer", "number")
                return (self._numbers if numeric else self._texts) or None
            case "string":
                return self._string(name, required=required)
        return None

    def _number(self, name: str, *, required: bool) -> float | None:
        near = re.search(rf"({_NUMBER})[ -](?:{'|'.join(words(name)) or '-'})", self._text)
        if not near and not (required and self._numbers):
            return None
        value = float(near[1]) if near else self._numbers[0]
        if value in self._numbers:
            self._numbers.remove(value)
        return int(value) if value.is_integer() else value

    def _string(self, name: str, *, required: bool) -> str | None:
        meant = set(name.lower().split("_"))
        if "date" in meant:
            return self._dates.pop(0) if self._dates else None
        if "zone" in meant:
            return next((place for place in self._texts if find_zone(place)), None)
        if not required or "expression" in meant:
            return None
        if meant & {"query", "question"}:
            return self._text.strip()
        pattern = r"(?:from|\d) +([\w/]+)" if "from" in meant else r"\b(?:to|in) +([\w/]+)"
        end = re.search(pattern, self._text) if meant & {"from", "to"} else None
        return end[1] if end else self._texts.pop(0) if self._texts else None


def _iso(date: str) -> str:
    with suppress(ValueError):
        return datetime.strptime(date, "%d %B %Y").date().isoformat()  # noqa: DTZ007 - a day alone
    return date
