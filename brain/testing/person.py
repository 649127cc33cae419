"""A person for tests: decides about calls and answers questions, as a script says."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from agent_brain.human_input import Decisions
from agent_brain.memories.control import Control, HumanRequests

Approval: TypeAlias = bool | str | Iterable[str]


@dataclass(slots=True)
class Person:
    """Who a run waits for in a test.

    Attributes:
        approve: True lets every call run, False none; texts are the names of the tools whose calls
            may run, or the ids of calls. None: nobody decides, and the run waits.
        answers: What is answered, question by question; with none left, the run waits.
    """

    approve: Approval | None = None
    answers: list[str] = field(default_factory=list)

    def decide(self, control: Control) -> Decisions | None:
        """What is decided about all that ``control`` waits for; None if something is left open."""
        asked = control.human_requests or HumanRequests()
        if (asked.approvals and self.approve is None) or len(asked.questions) > len(self.answers):
            return None
        names = {action.id: action.name for action in control.next_actions}
        allowed = [i for i in asked.approvals if self._allows(i, names.get(i, ""))]
        replies = {question: self.answers.pop(0) for question in asked.questions}
        return Decisions(
            approve=allowed or None,
            deny=[i for i in asked.approvals if i not in allowed] or None,
            input=replies or None,
        )

    def _allows(self, call_id: str, name: str) -> bool:
        if isinstance(self.approve, bool) or self.approve is None:
            return bool(self.approve)
        chosen = {self.approve} if isinstance(self.approve, str) else {*self.approve}
        return bool(chosen & {call_id, name})

    def assert_heard(self) -> None:
        """Check that every answer was given.

        Raises:
            AssertionError: A question was expected that was not asked.
        """
        if self.answers:
            raise AssertionError(f"Answers that nothing asked for are left: {self.answers!r}")


def person(approve: Approval | None, answers: str | Iterable[str] | None) -> Person:
    """A person of these decisions and answers; one text is one answer."""
    given = [answers] if isinstance(answers, str) else list(answers or ())
    if not isinstance(approve, bool | str) and approve is not None:
        approve = list(approve)
    return Person(approve, given)
