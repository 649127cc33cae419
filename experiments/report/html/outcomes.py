"""How outcomes are shown, by more than their colour, and where a case went wrong."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from agent_brain.experiments.case import CaseResult, Outcome


class Look(NamedTuple):
    """How an outcome is shown.

    Attributes:
        sign: Its sign in the matrix.
        heading: The heading of its column; empty for none.
        words: What the sign means.
        why: What its page says beside the step where the case ended.
    """

    sign: str
    heading: str
    words: str
    why: str


LOOKS = {
    Outcome.PASSED: Look("✓", "", "passed", ""),
    Outcome.WRONG: Look(
        "✗", "Wrong", "wrong answer", "This step gave the answer that a check did not pass."
    ),
    Outcome.CRASHED: Look("!", "Crashed", "crashed", "An error ended the case here."),
    Outcome.RATE_LIMITED: Look(
        "R", "Rate limit", "rate limit of the model", "The model's rate limit did not end in time."
    ),
    Outcome.LIMIT: Look("L", "Limit", "reached a limit", "A limit was reached here."),
    Outcome.STUCK: Look(
        "∞", "Stuck", "repeated itself", "The run was ended here, as it repeated itself."
    ),
    Outcome.WAITING: Look(
        "?",
        "Waits",
        "waits for somebody",
        "The run waits here for a person or a time, and nobody is there.",
    ),
}


MOST = 10  # troubles that are listed


def went_wrong(case: CaseResult, steps: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the step where a case went wrong, and why; None if it passed or has no steps.

    Args:
        case: The case.
        steps: The steps of its last run: a case ends with the first turn that goes wrong.
    """
    if case.passed or not steps:
        return None
    if case.error is not None and steps[-1].get("stop_reason") == "done":
        return {"step": _answering(steps)["n"], "why": "An error followed this answer."}
    step = _answering(steps) if case.outcome is Outcome.WRONG else _last(steps)
    return {"step": step["n"], "why": LOOKS[case.outcome].why}


def troubles(steps: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the steps in which something failed, though the run went on: the first ones."""
    return [*_troubles(steps)][:MOST]


def _troubles(steps: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for step in steps:
        for call in step.get("calls", ()):
            if call["state"] in ("failed", "refused"):
                yield {"step": step["n"], "why": f"The call of {call['name']} {call['state']}."}
        if step.get("error"):
            yield {"step": step["n"], "why": f"The state failed: {step['error']}"}
        for call in step.get("models", ()):
            if "error" in call:
                yield {"step": step["n"], "why": f"A model call failed: {call['error']['type']}."}
            elif call.get("cut"):
                yield {"step": step["n"], "why": "A model call was cut off."}


def _answering(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the last step in which a model wrote a text, or a state said one; else the last."""
    spoken = [
        step
        for step in steps
        if any(call.get("text") for call in step.get("models", ()))
        or any(message["role"] == "assistant" for message in step.get("said", ()))
    ]
    return (spoken or steps)[-1]


def _last(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the last step in which something was done."""
    done = [step for step in steps if step.get("ran") or step.get("models") or step.get("calls")]
    return (done or steps)[-1]
