"""A structured answer, filled from results only: no field is made up."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from agent_brain.demo.conversation import Turn
from agent_brain.demo.fill import coerce
from agent_brain.demo.plan import Plan
from agent_brain.demo.schema import Param, read_card, stems
from agent_brain.demo.solve import read_number

_RESULT = frozenset("answer result value output solution total".split())
_TEXT = frozenset("answer text summary sentence explanation message response result".split())
_QUESTION = frozenset("question goal task query".split())


def fill_output(output_type: type[BaseModel], plan: Plan, turn: Turn) -> str | None:
    """The JSON of an ``output_type``, or None if the results do not tell all that it needs."""
    schema = output_type.model_json_schema()
    card = read_card(output_type.__name__, "", schema)
    known = _known(turn)
    values = [solved.value for solved in plan.solved if solved.value is not None]
    single = len([param for param in card.params if param.required]) == 1
    filled: dict[str, Any] = {}
    for param in card.params:
        value = _field(param, known, values, turn, plan, single=single)
        if value is not None:
            filled[param.name] = value
    try:
        output_type.model_validate(filled)
    except ValidationError:
        return None
    return json.dumps(filled, ensure_ascii=False) if filled else None


def _known(turn: Turn) -> dict[str, Any]:
    """Values by name: arguments of the calls, then the parts of their results."""
    known: dict[str, Any] = {}
    for called in turn.called:
        if not called.is_error:
            known |= called.args
            try:
                parts = json.loads(called.content)
            except ValueError:
                continue
            known |= parts if isinstance(parts, dict) else {}
    return known


def _field(
    param: Param,
    known: dict[str, Any],
    values: Sequence[str],
    turn: Turn,
    plan: Plan,
    *,
    single: bool,
) -> Any:
    words = set(param.words)
    for name, value in known.items():
        if stems(name) == param.words:
            return value
    if words & _QUESTION and param.type == "string":
        return turn.question
    meant = bool(words & _RESULT or words & set(stems(turn.question)) or single)
    if values and meant and (param.type != "string" or not words & _TEXT - _RESULT):
        found = _typed(values, param)
        if found is not None:
            return found
    return plan.text if values and param.type == "string" and words & _TEXT else None


def _typed(values: Sequence[str], param: Param) -> Any:
    last = values[-1]
    if param.type in ("integer", "number"):
        number = read_number(last)
        return None if number is None else coerce(float(number), param)
    if param.type == "boolean":
        return {"true": True, "false": False}.get(last.lower())
    if param.type == "array" and param.items in ("integer", "number"):
        numbers = [read_number(value) for value in values]
        return None if None in numbers else [float(n) for n in numbers if n is not None]
    if param.type == "array":
        return list(values)
    return coerce(re.sub(r"\s+", " ", last), param)
