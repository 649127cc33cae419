"""What a rule decides: calls, an answer, or data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agent_brain.tools.action import Action

UNKNOWN = "I do not know"


@dataclass(frozen=True, slots=True)
class Call:
    """Call a tool."""

    action: Action


@dataclass(frozen=True, slots=True)
class Answer:
    """Say something.

    Attributes:
        text: What is said.
        value: What of it answers the question; empty if nothing does.
        known: Whether it answers the question.
    """

    text: str
    value: str = ""
    known: bool = True


@dataclass(frozen=True, slots=True)
class Data:
    """Return data of the form that is asked for.

    Attributes:
        value: The data.
        others: Other data that could have been chosen.
    """

    value: Any
    others: tuple[Any, ...] = ()


Move = Call | Answer | Data
