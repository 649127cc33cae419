"""Checks of answers: what a task expects."""

from __future__ import annotations

import json
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from agent_brain.common.aio import maybe_await
from agent_brain.common.text import cut_line
from agent_brain.common.values import is_amount
from agent_brain.errors import ExperimentError
from agent_brain.result import Result

if TYPE_CHECKING:
    from agent_brain.experiments.task import Task, Turn


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a check found.

    Attributes:
        passed: Whether the answer is what was expected.
        score: How good it is, from 0 to 1.
        reason: Why, in a sentence.
        judged: Whether a model decided; reports show such cases apart.
        cost: What the judge cost in US dollars.

    Raises:
        ExperimentError: A value of a wrong kind, or a score that is not from 0 to 1.
    """

    passed: bool
    score: float
    reason: str = ""
    judged: bool = False
    cost: float = 0.0

    def __post_init__(self) -> None:
        for name in ("passed", "judged"):
            if not isinstance(getattr(self, name), bool):
                raise ExperimentError(f"Verdict({name}={getattr(self, name)!r}): True or False")
        if not is_amount(self.score, zero=True) or self.score > 1:
            raise ExperimentError(f"Verdict(score={self.score!r}): a number from 0 to 1")
        if not isinstance(self.reason, str):
            raise ExperimentError(f"Verdict(reason={self.reason!r}): a text")
        if not is_amount(self.cost, zero=True):
            raise ExperimentError(f"Verdict(cost={self.cost!r}): US dollars, at least 0")


@dataclass(frozen=True, slots=True)
class Reply:
    """What a check sees.

    Attributes:
        task: The task.
        turn: The turn that was answered.
        result: The result of the turn's run: ``result.answer``, ``result.output``,
            ``result.messages``.
        deps: What the task gave its runs.
    """

    task: Task
    turn: Turn
    result: Result[Any]
    deps: object = None


class Check(ABC):
    """Base class for checks of answers. A subclass defines :meth:`check`."""

    @abstractmethod
    async def check(self, reply: Reply) -> Verdict:
        """Return whether the reply is what was expected."""


CheckFunction: TypeAlias = Callable[
    [Reply], "bool | float | Verdict | Awaitable[bool | float | Verdict]"
]
Expected: TypeAlias = (
    str
    | int
    | float
    | re.Pattern[str]
    | BaseModel
    | Mapping[str, Any]
    | Sequence[Any]
    | Check
    | CheckFunction
)


def as_check(expected: Expected) -> Check:
    """Return the check that an expectation stands for.

    A text is contained in the answer (:class:`Contains`), a number is the last one in it
    (:class:`Number`), a regular expression is found in it (:class:`Matches`), a dict, a list, a
    dataclass or a pydantic model equals ``Result.output`` (:class:`Equals`), and a function is
    called with the :class:`Reply` (:class:`Function`).

    Raises:
        ExperimentError: It is none of these.
    """
    given: Any = expected
    if isinstance(given, Check):
        return given
    if isinstance(given, str):
        return Contains(given)
    if isinstance(given, int | float) and not isinstance(given, bool):
        return Number(given)
    if isinstance(given, re.Pattern):
        return Matches(given)
    if not isinstance(given, type):
        if isinstance(given, BaseModel | Mapping | list | tuple) or is_dataclass(given):
            return Equals(given)
        if callable(given):
            return Function(cast("CheckFunction", given))
    raise ExperimentError(
        f"expected={given!r}: give a text, a number, a compiled regular expression, a dict, a "
        "list, a dataclass, a pydantic model, a function or a Check; for other data, such as True, "
        "give Equals(…)"
    )


def verdict(reason: str, *, passed: bool) -> Verdict:
    """Return the verdict of a check that knows no scores between 0 and 1."""
    return Verdict(passed, float(passed), reason)


@dataclass(frozen=True)
class Contains(Check):
    """The answer contains a text.

    Attributes:
        text: The text. White space counts as one space.
        ignore_case: Ignore upper and lower case.

    Raises:
        ExperimentError: The text is empty.
    """

    text: str
    ignore_case: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            raise ExperimentError(f"Contains({self.text!r}): a text that is not empty")

    def __str__(self) -> str:
        return f"contains {self.text!r}"

    async def check(self, reply: Reply) -> Verdict:
        """Look for the text in the answer."""
        answer, text = (" ".join(t.split()) for t in (reply.result.answer, self.text))
        if self.ignore_case:
            answer, text = answer.casefold(), text.casefold()
        passed = text in answer
        what = "contains" if passed else "does not contain"
        return verdict(f"The answer {what} {self.text!r}", passed=passed)


_NUMBER = re.compile(
    r"(?P<sign>(?<![\w.)\]}])[-\u2212])?[$\u20ac\u00a3]?"
    r"(?P<number>\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)?|\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+)"
    r"(?P<percent>\s?%)?"
)


@dataclass(frozen=True)
class Number(Check):
    """The last number in the answer is this one.

    ``1,234.5``, ``-3``, ``42.`` and ``$5`` are understood; ``50%`` is 50 as well as 0.5.

    Attributes:
        value: The number.
        tolerance: How far the answer may be from it, relative to it; near 0 absolutely.

    Raises:
        ExperimentError: The value is not a finite number, or the tolerance is below 0.
    """

    value: float
    tolerance: float = 1e-9

    def __post_init__(self) -> None:
        if not _is_finite(self.value):
            raise ExperimentError(f"Number({self.value!r}): a finite number")
        if not is_amount(self.tolerance, zero=True):
            raise ExperimentError(f"Number(tolerance={self.tolerance!r}): a number of at least 0")

    def __str__(self) -> str:
        return f"the number {self.value:.12g}"

    async def check(self, reply: Reply) -> Verdict:
        """Compare the last number in the answer."""
        numbers = [*_NUMBER.finditer(reply.result.answer)]
        if not numbers:
            why = f"There is no number in the answer; expected {self.value:.12g}"
            return verdict(why, passed=False)
        found = numbers[-1]
        number = float(found["number"].replace(",", "")) * (-1 if found["sign"] else 1)
        passed = any(
            math.isclose(reading, self.value, rel_tol=self.tolerance, abs_tol=self.tolerance)
            for reading in ((number, number / 100) if found["percent"] else (number,))
        )
        text = found.group().strip()
        said = f"The last number is {text}"
        return verdict(said if passed else f"{said}; expected {self.value:.12g}", passed=passed)


@dataclass(frozen=True)
class Matches(Check):
    """A regular expression is found in the answer.

    Attributes:
        pattern: The expression, compiled or as a text.

    Raises:
        ExperimentError: It is not a regular expression.
    """

    pattern: str | re.Pattern[str]

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "pattern", re.compile(self.pattern))
        except (re.error, TypeError) as error:
            raise ExperimentError(
                f"Matches({self.pattern!r}): a regular expression ({error})"
            ) from error

    def __str__(self) -> str:
        return f"matches {cast('re.Pattern[str]', self.pattern).pattern!r}"

    async def check(self, reply: Reply) -> Verdict:
        """Look for the expression in the answer."""
        passed = re.search(self.pattern, reply.result.answer) is not None
        what = "is" if passed else "is not"
        why = f"{cast('re.Pattern[str]', self.pattern).pattern!r} {what} found"
        return verdict(why, passed=passed)


@dataclass(frozen=True)
class Equals(Check):
    """``Result.output`` equals data. Both are compared as JSON.

    Attributes:
        data: A dict, a list, a pydantic model, a dataclass, or any JSON value.

    Raises:
        ExperimentError: The data cannot be written as JSON, such as a list that holds itself.
    """

    data: Any

    def __post_init__(self) -> None:
        try:
            _json(self.data)
        except (ValueError, TypeError, RecursionError) as error:
            raise ExperimentError(f"Equals: the data cannot be written as JSON: {error}") from error

    def __str__(self) -> str:
        return f"equals {_json(self.data)}"

    async def check(self, reply: Reply) -> Verdict:
        """Compare the output."""
        output = reply.result.output
        if output is None and self.data is not None:
            why = "The result has no output: does the net take output_type=?"
            return verdict(why, passed=False)
        passed = _json(output) == _json(self.data)
        found = f"The output is {cut_line(_json(output), 200)!r}"
        why = found if passed else f"{found}; expected {cut_line(_json(self.data), 200)!r}"
        return verdict(why, passed=passed)


def _json(data: object) -> str:
    return json.dumps(to_jsonable_python(data, fallback=repr), sort_keys=True, ensure_ascii=False)


@dataclass(frozen=True)
class JsonMatches(Check):
    """The output has these values; it may have others too.

    Without an output, the answer is read as JSON, also from a code block.

    Attributes:
        subset: Values by their names. A dict in it is matched in the same way, a list has as many
            items, each matched in the same way.

    Raises:
        ExperimentError: The subset is not a dict or a list.
    """

    subset: Any

    def __post_init__(self) -> None:
        if not isinstance(self.subset, Mapping | list | BaseModel):
            raise ExperimentError(f"JsonMatches({self.subset!r}): a dict or a list")

    def __str__(self) -> str:
        return f"has {_json(self.subset)}"

    async def check(self, reply: Reply) -> Verdict:
        """Compare what the subset names."""
        output: Any = reply.result.output
        if output is None:
            output = _read_json(reply.result.answer)
            if output is None:
                why = "The result has no output, and the answer is not JSON"
                return verdict(why, passed=False)
        wrong = _difference(to_jsonable_python(output, fallback=repr), _as_json(self.subset), "")
        return verdict(wrong or "The output has the expected values", passed=wrong is None)


def _as_json(data: object) -> Any:
    return to_jsonable_python(data, fallback=repr)


def _read_json(text: str) -> Any:
    block = re.search(r"```(?:json)?\s*\n(.*?)```", text, re.DOTALL)
    try:
        return json.loads(block[1] if block else text)
    except (ValueError, RecursionError):
        return None


def _difference(found: Any, wanted: Any, place: str) -> str | None:
    """Return where ``found`` lacks something of ``wanted``; None if it does not."""
    if isinstance(wanted, dict):
        if not isinstance(found, dict):
            return f"{place or 'The output'} is not an object"
        for name, value in wanted.items():
            at = f"{place}.{name}" if place else str(name)
            if name not in found:
                return f"{at} is missing"
            if (wrong := _difference(found[name], value, at)) is not None:
                return wrong
        return None
    if isinstance(wanted, list):
        if not isinstance(found, list) or len(found) != len(wanted):
            return f"{place or 'The output'} is not a list of {len(wanted)}"
        pairs = enumerate(zip(found, wanted, strict=True))
        return next((w for i, (f, v) in pairs if (w := _difference(f, v, f"{place}[{i}]"))), None)
    if _json(found) == _json(wanted) or (_is_number(found, wanted) and found == wanted):
        return None
    texts = [repr(cut_line(_json(value), 200)) for value in (found, wanted)]
    return f"{place or 'The output'} is {texts[0]}; expected {texts[1]}"


def _is_number(*values: object) -> bool:
    return all(isinstance(v, int | float) and not isinstance(v, bool) for v in values)


def _is_finite(value: object) -> bool:
    try:
        return _is_number(value) and math.isfinite(cast("float", value))
    except OverflowError:  # a whole number that no float can hold
        return False


@dataclass(frozen=True)
class Function(Check):
    """A function of the :class:`Reply` decides, sync or async.

    It returns a bool, a score from 0 to 1, or a :class:`Verdict`.

    Attributes:
        function: The function.
        threshold: The least score that passes.

    Raises:
        ExperimentError: It is not a function, or the threshold is not from 0 to 1. While checking:
            the function returned something else.
    """

    function: CheckFunction
    threshold: float = 1.0

    def __post_init__(self) -> None:
        if not callable(self.function) or isinstance(self.function, type):
            raise ExperimentError(f"Function({self.function!r}): a function of the reply")
        if not is_amount(self.threshold, zero=True) or self.threshold > 1:
            raise ExperimentError(f"Function(threshold={self.threshold!r}): a number from 0 to 1")

    def __str__(self) -> str:
        return f"{self._name}()"

    @property
    def _name(self) -> str:
        return getattr(self.function, "__name__", type(self.function).__name__)

    async def check(self, reply: Reply) -> Verdict:
        """Call the function."""
        found: Any = await maybe_await(self.function(reply))
        if isinstance(found, Verdict):
            return found
        if isinstance(found, bool):
            return verdict(f"{self._name}() returned {found}", passed=found)
        if _is_number(found) and 0 <= found <= 1:
            passed = found >= self.threshold - 1e-9
            return Verdict(passed, float(found), f"{self._name}() gave the score {found:g}")
        raise ExperimentError(
            f"The check {self._name}() returned {found!r}: return a bool, a score from 0 to 1, or "
            "a Verdict"
        )
