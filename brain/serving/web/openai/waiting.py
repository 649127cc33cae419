"""What a run waits for, in words. Private."""

from __future__ import annotations

from collections.abc import Sequence

from agent_brain.serving.pending import approval_question
from agent_brain.states.events import ApprovalRequested, Event, InputRequested
from agent_brain.tools.action import Action

HOW = "Answer 'yes', 'no' and the reason, or 'edit' and the new arguments as a JSON object."
NOT_KEPT = "This conversation is not kept, so the answer cannot be given: send X-Session-Id."


class Waiting:
    """Collects what a run waits for.

    Attributes:
        calls: The calls that wait for approval.
        questions: The questions that wait for an answer, in order.
    """

    def __init__(self) -> None:
        self.calls: list[Action] = []
        self.questions: list[str] = []

    def note(self, event: Event) -> None:
        """Note what ``event`` asks for, if it asks."""
        if isinstance(event, ApprovalRequested):
            known = {call.id for call in self.calls}
            self.calls += [action for action in event.actions if action.id not in known]
        elif isinstance(event, InputRequested):
            self.questions.append(event.prompt)

    def question(self, *, kept: bool) -> str:
        """Return the first question; one is asked at a time.

        Args:
            kept: Whether the conversation is kept, so that the next message can answer.
        """
        first = _first(self.calls, self.questions)
        return first if kept or not first else f"{first}\n\n({NOT_KEPT})"


def _first(calls: Sequence[Action], questions: Sequence[str]) -> str:
    if calls:
        return f"{approval_question(calls[0])}\n\n({HOW})"
    return questions[0] if questions else ""
