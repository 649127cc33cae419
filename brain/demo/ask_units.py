"""Questions about units of measurement."""

from __future__ import annotations

import re

from agent_brain.demo.asks import Ask
from agent_brain.demo.numbers import words_to_digits
from agent_brain.tools.builtin.units import UNIT_PATTERN

_VALUE = r"(?P<value>-?\d+(?:\.\d+)?|an?)"
_FROM = rf"(?P<source>{UNIT_PATTERN})"
_TO = rf"(?P<target>{UNIT_PATTERN})"
_PATTERNS = [
    re.compile(
        rf"(?:(?:convert|change|turn|express|what is|what are|how (?:much|far|long|heavy|big|fast|"
        rf"hot) (?:is|are)) )?"
        rf"{_VALUE} ?°? ?{_FROM} (?:to|in|into|as|is how many|expressed in) {_TO}",
        re.I,
    ),
    re.compile(
        rf"how many {_TO}(?: (?:are|is|does|do|make|go))?(?: there)?"
        rf"(?: (?:in|into|to|per|equals?|make))?"
        rf" {_VALUE} ?{_FROM}(?: (?:make|have|equal|contain))?",
        re.I,
    ),
    re.compile(  # units that nobody knows: the tool may say what was meant
        r"convert (?P<value>-?\d+(?:\.\d+)?) (?P<source>(?![A-Z]{3}\b)[A-Za-z]+) (?:to|into) "
        r"(?P<target>(?![A-Z]{3}\b)[A-Za-z]+)"
    ),
    re.compile(
        rf"(?P<value>)(?:convert )?{_FROM} (?:to|into) {_TO}:? (?P<after>-?\d+(?:\.\d+)?)", re.I
    ),
]


def read_units(text: str) -> list[Ask] | None:
    """The conversion that ``text`` asks for, or None."""
    words = words_to_digits(re.sub(r"\bwhat's\b", "what is", text.strip(), flags=re.I))
    for pattern in _PATTERNS:
        match = pattern.fullmatch(words.strip(" ?!."))
        if match is None:
            continue
        found = match.groupdict()
        digits = found.get("after") or found["value"]
        value = float(digits) if digits.lower() not in ("a", "an") else 1.0
        number = int(value) if value == int(value) else value
        units = {"from_unit": found["source"], "to_unit": found["target"]}
        return [Ask("convert", text, {"value": number, **units})]
    return None
