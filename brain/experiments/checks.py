"""Checks of answers: what a task expects."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pydantic import BaseModel

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
    """

    passed: bool
    score: float
    reason: str = ""
    judged: bool = False
    cost: float = 0.0


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
    raise NotImplementedError(expected)
