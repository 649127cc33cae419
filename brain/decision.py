"""Decide what comes before and after a step: pure functions of what the step reported."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from agent_brain.errors import TransitionError
from agent_brain.limits import SPENDING, StopReason
from agent_brain.nets.net import Node
from agent_brain.nets.validation import name_of

if TYPE_CHECKING:
    from agent_brain.recorder import StepReport


def stops_before(reached: StopReason, *, costs_nothing: bool) -> bool:
    """Return whether a limit stops the run before the next state.

    Args:
        reached: The limit that is reached.
        costs_nothing: Whether the state only passes on an existing answer. The call that gave it
            may have reached the limit.
    """
    return not (costs_nothing and reached in SPENDING)


def next_node(node: Node, target: Enum | None, report: StepReport, *, done: bool) -> Node | None:
    """Return the state that comes next; None at the end of the net.

    Args:
        node: The state that is left.
        target: What it proposes; None for the end.
        report: What it has reported. A state that failed proposes nothing.
        done: Whether the goal is reached, which ends the net whatever the state proposes.

    Raises:
        TransitionError: The net has no such edge.
    """
    if report.error is not None:
        return node.on_error
    following = None if target is None else node.following.get(id(target))
    if following is None and not (target is None and (done or None in node.targets)):
        allowed = [name_of(t) if t is not None else "the end (None)" for t in node.targets]
        raise TransitionError(node.name, target, sorted(allowed))
    return None if done else following
