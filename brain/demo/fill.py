"""Arguments for a tool, from what was found in the user's words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from agent_brain.demo.needs import ROLES
from agent_brain.demo.schema import Card, Param, stems
from agent_brain.tools.builtin.units import UNITS, UnitError, find_unit

_NUMERIC = ("number", "integer")


def fill_slots(
    card: Card, slots: Mapping[str, Any], signs: Iterable[frozenset[str]], *, by_type: bool
) -> dict[str, Any] | None:
    """The arguments that say all of ``slots``; None if ``card`` cannot take them.

    Args:
        card: The tool.
        slots: Values by role, see :data:`agent_brain.demo.needs.ROLES`.
        signs: What is wanted, to choose from a parameter that lists operations.
        by_type: A parameter whose name says nothing may be filled because its type fits.
    """
    args: dict[str, Any] = {}
    operation = _operation(card, signs)
    if operation:
        args[operation[0]] = operation[1]
    for role in sorted(slots, key=list(ROLES).index):
        param = _param_for(card, role, slots[role], args, by_type=by_type)
        if param is None:
            return None
        args[param.name] = coerce(slots[role], param)
    ordered = {param.name: args[param.name] for param in card.params if param.name in args}
    complete = all(param.name in args for param in card.params if param.required)
    return ordered if complete else None


def _operation(card: Card, signs: Iterable[frozenset[str]]) -> tuple[str, Any] | None:
    for sign in signs:
        for param in card.params:
            for value in param.enum:
                if sign <= set(stems(str(value))):
                    return param.name, value
    return None


def _param_for(
    card: Card, role: str, value: Any, args: Mapping[str, Any], *, by_type: bool
) -> Param | None:
    free = [p for p in card.params if p.name not in args and coerce(value, p) is not None]
    named = [param for param in free if ROLES[role] & set(param.words)]
    if named:
        return max(named, key=lambda param: len(ROLES[role] & set(param.words)))
    required = [param for param in free if param.required]
    return required[0] if by_type and required else None


def coerce(value: Any, param: Param) -> Any:
    """``value`` as ``param`` takes it; None if it cannot."""
    if param.enum:
        return _from_enum(str(value), param.enum)
    if param.type == "string":
        return value if isinstance(value, str) else str(value)
    if param.type in _NUMERIC:
        return _as_number(value, whole=param.type == "integer")
    if param.type == "array" and isinstance(value, str) and param.items in ("string", ""):
        return value.replace(",", " ").split()
    return None


def _from_enum(text: str, enum: tuple[Any, ...]) -> Any:
    for value in enum:
        if stems(str(value)) == stems(text) and stems(text):
            return value
    if text.lower() in UNITS:
        for value in enum:
            try:
                if find_unit(str(value)) == UNITS[text.lower()]:
                    return value
            except UnitError:
                continue
    return None


def _as_number(value: Any, *, whole: bool) -> int | float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    if value == int(value):
        return int(value)
    return None if whole else value


def fill_numbers(card: Card, numbers: list[int | float]) -> dict[str, Any] | None:
    """``numbers`` as the only arguments of a tool such as ``add(a, b)`` or ``sum(numbers)``."""
    lists = [p for p in card.params if p.type == "array" and p.items in (*_NUMERIC, "")]
    if lists and all(p is lists[0] or not p.required for p in card.params):
        return {lists[0].name: list(numbers)}
    required = [param for param in card.params if param.required] or list(card.params)
    if len(required) != len(numbers):
        return None
    args = {p.name: coerce(n, p) for p, n in zip(required, numbers, strict=True)}
    return None if None in args.values() or any(p.type == "string" for p in required) else args
