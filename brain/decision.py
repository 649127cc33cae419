"""What comes after a step: decided from what the step reported, without doing anything."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, NamedTuple

from agent_brain.limits import SPENDING, StopReason
from agent_brain.nets.errors import TransitionError
from agent_brain.nets.net import Node
from agent_brain.nets.validation import name_of
from agent_brain.states.events import ActionFinished
from agent_brain.stuck import Verdict


@dataclass(slots=True)
class StepReport:
    """What a step has reported so far.

    Attributes:
        said: Its text for the reader, in pieces.
        finished: The tool calls that have ended.
        requested: A model requested tool calls.
        waits: What the run waits for, if it waits for a person.
        cut: The limit that stopped a net inside the state, if one did.
    """

    said: list[str] = field(default_factory=list)
    finished: list[ActionFinished] = field(default_factory=list)
    requested: bool = False
    waits: StopReason | None = None
    cut: StopReason | None = None


class Decision(NamedTuple):
    """What to do after a step.

    Attributes:
        kind: ``"move"`` to ``node``, or to the end if it is None; ``"wait"`` for a person; ``"stop"``
            at a limit, after the fallback state if there is one.
        node: The state to move to.
        reason: Why the run waits or stops.
    """

    kind: Literal["move", "wait", "stop"]
    node: Node | None = None
    reason: StopReason | None = None


def stops_before(reached: StopReason | None, *, costs_nothing: bool) -> bool:
    """Return whether a limit that is reached stops the run before the next state.

    Args:
        reached: The limit.
        costs_nothing: The state passes on an answer that is there already; the call that gave it
            may have been the one that reached the limit.
    """
    return reached is not None and not (costs_nothing and reached in SPENDING)


def after_run(report: StepReport) -> Decision | None:
    """Decide after a state has run; None if it is to propose where to go.

    A state that waits, or whose inner net a limit has stopped, is run again on resume.
    """
    if report.waits is not None:
        return Decision("wait", reason=report.waits)
    if report.cut is not None:
        return Decision("stop", reason=report.cut)
    return None


def after_proposal(node: Node, target: Enum | None, *, done: bool) -> Decision:
    """Decide where a proposal leads.

    Args:
        node: The state that proposes.
        target: What it proposes; None for the end.
        done: The goal is reached, which ends the run wherever the state proposes to go.

    Raises:
        TransitionError: The net has no such edge.
    """
    following = None if target is None else node.following.get(id(target))
    if following is None and not (target is None and (done or None in node.targets)):
        allowed = [name_of(t) if t is not None else "the end (None)" for t in node.targets]
        raise TransitionError(node.name, target, sorted(allowed))
    return Decision("move", None if done else following)


def after_move(decision: Decision, verdict: Verdict | None) -> Decision:
    """Decide after a move: a run that repeats itself is stopped if a hint has not helped."""
    if decision.node is None or verdict is None or verdict.action != "stop":
        return decision
    return Decision("stop", reason=StopReason.STUCK)
