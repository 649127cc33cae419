"""A scripted person who approves calls and answers questions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from pydantic import BaseModel

from agent_brain.human_input import Decisions
from agent_brain.memories.control import Control
from agent_brain.memories.runs.human_requests import HumanRequests

Approval: TypeAlias = bool | str | Iterable[str]
_ONE = (str, Mapping, BaseModel)  # an answer, not several


class Person:
    """The person that a run waits for in a test.

    Args:
        approve: True or False for every call; or names of tools, or IDs of calls, to approve. With
            None nobody decides, and the run waits.
        answers: Answers in the order of the questions, or the only one; when none is left, the run
            waits.
    """

    def __init__(self, approve: Approval | None, answers: object) -> None:
        chosen = [approve] if isinstance(approve, str) else approve
        self._approve = chosen if isinstance(chosen, bool | None) else {*chosen}
        several = isinstance(answers, Iterable) and not isinstance(answers, _ONE)
        self._answers: list[Any] = [*answers] if several else [answers]  # type: ignore[misc]
        if answers is None:
            self._answers = []

    def decide(self, control: Control) -> Decisions | None:
        """Decide about everything that ``control`` waits for; None if something stays open."""
        asked = control.human_requests or HumanRequests()
        if (asked.approvals and self._approve is None) or len(asked.questions) > len(self._answers):
            return None
        names = {call.id: call.name for call in control.waiting_calls()}
        allowed = [i for i in asked.approvals if self._allows(i, names.get(i, ""))]
        replies = {question: self._answers.pop(0) for question in asked.questions}
        return Decisions(
            approve=allowed or None,
            deny=[i for i in asked.approvals if i not in allowed] or None,
            input=replies or None,
        )

    def _allows(self, *names: str) -> bool:
        if isinstance(self._approve, set):
            return not self._approve.isdisjoint(names)
        return bool(self._approve)

    def assert_heard(self) -> None:
        """Check that every answer was used.

        Raises:
            AssertionError: A question was expected that was not asked.
        """
        if self._answers:
            raise AssertionError(f"No question was asked for the answers {self._answers!r}")
