"""The tools at hand, and what they have already answered in this turn.

The plan is made anew at every call of the model: a call whose result is in the messages gives it at
once, one without raises :class:`Waiting`. So the model needs no state of its own.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from agent_brain.demo.conversation import Called
from agent_brain.demo.fill import coerce, fill_numbers, fill_slots
from agent_brain.demo.generic import Fit, best_fit
from agent_brain.demo.needs import LABELS, OPERATION_SIGNS, SIGNS
from agent_brain.demo.schema import Card, Param, stems

MAX_CALLS = 30  # in one turn; then the model stops asking for more


class Waiting(Exception):  # noqa: N818 - no error: a step that is still to be taken
    """These calls have to be made first; none if they wait for others that are under way."""

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self.calls = calls
        super().__init__(calls)


class Stopped(Exception):  # noqa: N818 - a result like any other, told to the user
    """It cannot be done; the text says why."""


class NoTool(Stopped):
    """No tool here can do it."""


class Box:
    """Tools by what they can do.

    Args:
        cards: The tools that may be called now.
        called: The calls of this turn with their results.
    """

    def __init__(self, cards: Sequence[Card], called: Sequence[Called]) -> None:
        self.cards = list(cards)
        self.called = list(called)
        self.used: list[Called] = []

    def known(self, kind: str, slots: Mapping[str, Any]) -> Called:
        """The result for a known kind of ask.

        Raises:
            Waiting: It has to be called first.
            Stopped: No tool can do it, or the tool failed.
        """
        if not self.cards:
            return self._claim(SIGNS[kind], list(slots.values()))
        signs = SIGNS[kind]
        if kind == "convert":
            signs = (*signs, _pair(slots))
        found: list[tuple[int, Card, dict[str, Any]]] = []
        for card in self.cards:
            score = _score(card, signs)
            args = fill_slots(card, slots, signs, by_type=score >= 4) if score else None
            if args is None and score >= 4 and kind == "convert":
                args = _only_value(card, slots)
            if args is not None:
                found.append((score, card, args))
        if not found:
            label = LABELS.get(kind, kind.replace("_", " "))
            raise NoTool(f"none of the tools that I have can do this: {label}")
        _, card, args = max(found, key=lambda one: (one[0], -len(one[1].params)))
        return self.call(card, args)

    def operation(self, name: str, numbers: list[int | float]) -> Called:
        """The result of one arithmetic operation from a tool that does only that."""
        if not self.cards:
            return self._claim(OPERATION_SIGNS[name], list(numbers))
        for card in self.cards:
            if _score(card, OPERATION_SIGNS[name]) >= 6:
                args = fill_numbers(card, numbers)
                if args is not None:
                    return self.call(card, args)
        raise NoTool(f"none of the tools that I have can calculate with {name!r}")

    def other(self, text: str) -> list[Called]:
        """The results of the tool that fits ``text``."""
        if not self.cards:
            left = [one for one in self.called if one not in self.used]
            self.used += left
            if not left:
                raise NoTool("nothing in this conversation answers that")
            return left
        fit = best_fit(self.cards, text)
        if fit is None:
            raise NoTool("none of the tools that I have fits these words")
        if fit.missing:
            needed = " and ".join(map(repr, fit.missing))
            raise Stopped(
                f"{fit.card.name} would fit, but I found no value for {needed} in your words"
            )
        return self._each(fit)

    def _each(self, fit: Fit) -> list[Called]:
        results: list[Called] = []
        waiting: list[tuple[str, dict[str, Any]]] = []
        for args in fit.calls:
            try:
                results.append(self.call(fit.card, args))
            except Waiting as wait:
                waiting += wait.calls
        if waiting:
            raise Waiting(*waiting)
        return results

    def call(self, card: Card, args: dict[str, Any]) -> Called:
        """The result of this call; after an error that names a correction, of the corrected one."""
        result = self._result(card.name, args)
        if result.is_error:
            corrected = correct(args, result.content)
            if corrected is not None:
                result = self._result(card.name, corrected)
        return result

    def _result(self, name: str, args: dict[str, Any]) -> Called:
        for one in self.called:
            if one.name == name and dict(one.args) == args:
                self.used.append(one)
                return one
        if len(self.called) >= MAX_CALLS:
            raise Stopped("I have made enough calls for one question")
        raise Waiting((name, args))

    def _claim(self, signs: Sequence[frozenset[str]], values: list[Any]) -> Called:
        """Without tools: the recorded call that these values were given to."""
        wanted = [_plain(value) for value in values]
        for one in [*(c for c in self.called if c not in self.used), *self.used]:
            given = [_plain(value) for value in one.args.values()]
            signed = any(sign <= set(stems(f"{one.name} {given}")) for sign in signs)
            if all(value in given for value in wanted) and (signed or wanted):
                return self._result_of(one)
        raise NoTool("no tool was called for it in this conversation, and I may not call one now")

    def _result_of(self, one: Called) -> Called:
        """``one``, or the corrected call that followed its error."""
        self.used.append(one)
        corrected = correct(one.args, one.content) if one.is_error else None
        for other in self.called if corrected is not None else ():
            if other.name == one.name and dict(other.args) == corrected:
                self.used.append(other)
                return other
        return one


def correct(args: Mapping[str, Any], error: str) -> dict[str, Any] | None:
    """``args`` as an error suggests them ("Did you mean 'Asia/Tokyo'?"); None without a hint."""
    hint = re.search(r"did you mean:? ['\"`]?([^'\"`?]+)['\"`]?\?", error, re.I)
    if hint is None:
        return None
    texts = [name for name, value in args.items() if isinstance(value, str)]
    quoted = [name for name in texts if repr(args[name]) in error]
    if not texts or hint[1] in args.values():
        return None

    def likeness(name: str) -> float:
        return difflib.SequenceMatcher(None, str(args[name]).lower(), hint[1].lower()).ratio()

    return {**args, max(quoted or texts, key=likeness): hint[1]}


def _plain(value: Any) -> str:
    try:
        return str(Fraction(str(value)))
    except (ValueError, ZeroDivisionError):
        return str(value).strip().lower()


def _score(card: Card, signs: Sequence[frozenset[str]]) -> int:
    """6: its name says that it can; 5: one of its operations does; 3: its description."""
    name = set(stems(card.name))
    operations = [set(stems(str(value))) for param in card.params for value in param.enum]
    told = name | set(stems(card.description))
    best = 0
    for sign in signs:
        if sign <= name:
            return 6
        if any(sign <= operation for operation in operations):
            best = max(best, 5)
        elif sign <= told:
            best = max(best, 3)
    return best


def _pair(slots: Mapping[str, Any]) -> frozenset[str]:
    """The sign of a tool such as ``miles_to_km``."""
    return frozenset([*stems(str(slots["from_unit"])), "to", *stems(str(slots["to_unit"]))])


def _only_value(card: Card, slots: Mapping[str, Any]) -> dict[str, Any] | None:
    """The value alone, for a tool whose name has both units in the right order."""
    words = stems(card.name)
    source, target = stems(str(slots["from_unit"]))[-1], stems(str(slots["to_unit"]))[-1]
    required: list[Param] = [param for param in card.params if param.required]
    if source not in words or target not in words or len(required) != 1:
        return None
    value = coerce(slots["value"], required[0])
    ordered = words.index(source) < words.index(target)
    return {required[0].name: value} if ordered and value is not None else None
