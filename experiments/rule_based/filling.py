"""Fill an output schema with facts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agent_brain.demo.filling import Filler, resolve
from agent_brain.experiments.rule_based.facts import questions_in
from agent_brain.experiments.rule_based.sight import Sight
from agent_brain.experiments.rule_based.solving import known_answer

_SUBJECT = re.compile(r"\b(?:for|about) (?:the )?([^.,:?!]+)[.,:?!]", re.I)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def fill(sight: Sight, schema: Mapping[str, Any]) -> Any:
    """Return data that fits the schema: what is known; where nothing is, a value that says so."""
    match = _SUBJECT.search(sight.question)
    filler = Filler(schema, sight.question, [], "unknown", 0.0, ())
    fields = resolve(schema, schema).get("properties", {})
    values = {}
    for name, part in fields.items():
        found = _known(sight, name.replace("_", " "), match[1] if match else "")
        if not found and len(fields) == 1:  # a number, say, is asked for in a form of one field
            found = known_answer(sight).value
        values[name] = _read(found, resolve(part, schema), filler)
    return values


def _known(sight: Sight, name: str, subject: str) -> str:
    """Return what is known about a field of a form; empty if nothing is."""
    asked = [parts for parts in questions_in(sight.question) if parts[0].casefold() == name]
    chains = [f"the {' of '.join(parts)}" for parts in asked] or [f"the {name} of {subject}"]
    return known_answer(sight, f"Find {chains[0]}.").value


def _read(text: str, part: Mapping[str, Any], filler: Filler) -> Any:
    """Return a text as data of a type."""
    numbers = _NUMBER.findall(text)
    match part.get("type"):
        case "string" if text:
            return text
        case "integer" if numbers:
            return int(float(numbers[-1]))
        case "number" if numbers:
            return float(numbers[-1])
        case "boolean" if text:
            return text.casefold() in ("yes", "true")
        case "array" if text:
            items = resolve(part.get("items", {}), filler.root)
            return [_read(item, items, filler) for item in re.split(r",? and |, ", text)]
        case _ if text in part.get("enum", ()):
            return text
    return filler.fill(part)
