"""Decide what comes before and after a step: pure functions of what the step reported."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum
from itertools import pairwise
from typing import Any

from agent_brain.errors import TransitionError
from agent_brain.limits import SPENDING, StopReason
from agent_brain.nets.net import Node
from agent_brain.nets.validation import name_of
from agent_brain.states.events import ActionFinished


class StepReport:
    """The report of a step.

    Attributes:
        said: The text that it streamed, without thoughts, in pieces.
        thought: Its thoughts, in pieces.
        finished: The tool calls that have finished.
        requested: Whether a model requested tool calls.
        waits: What the run waits for, if it waits for a person.
        cut: The limit that stopped an inner net, if one did.
        error: What the state raised, if the net has an edge for its errors.
        partial: What has come of the object of an output type, unless its text has come too.
        inner: The text of an inner net that was cut short, if it is that of the state.
        unfinished: Whether the run ends within the step, which is repeated when it is resumed.
        sources: Where in ``said`` the text of another model response begins, and its ID.
    """

    requested = False
    waits: StopReason | None = None
    cut: StopReason | None = None
    error: Exception | None = None
    partial: Any = None
    inner = ""
    unfinished = False
    sources: tuple[tuple[int, str | None], ...] = ()

    def __init__(self) -> None:  # at every step, hence no dataclass
        self.said: list[str] = []
        self.thought: list[str] = []
        self.finished: list[ActionFinished] = []

    def unrecorded(self, recorded: Iterable[str]) -> str:
        """Return the text that no message holds yet.

        Args:
            recorded: The texts of the messages of the assistant in this turn.
        """
        known = [text.strip() for text in recorded if text.strip()]
        missing: list[str] = []
        for of_response, text in self._texts():
            said = text.strip()
            if any(said == one or said.endswith(f"\n{one}") for one in known):
                continue
            if not of_response and known and said.startswith(known[-1]):  # the beginning is
                text = said.removeprefix(known[-1])
            if text.strip():
                missing.append(text)
        return "\n\n".join(missing)

    def _texts(self) -> Iterator[tuple[bool, str]]:
        """Yield what was said, by its sources, and whether they are model responses."""
        texts: dict[str | int, list[str]] = {}
        starts = [(0, None), *self.sources, (len(self.said), None)]
        for (start, source), (end, _) in pairwise(starts):
            texts.setdefault(source or start, []).extend(self.said[start:end])
        for key, parts in texts.items():
            yield isinstance(key, str), "".join(parts)


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
