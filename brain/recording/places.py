"""Where in its net each step of a run was, read from what is kept of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple, TypeAlias

from agent_brain.memories.journal.base import Journal
from agent_brain.memories.sessions.timeline import Part, read_last_parts
from agent_brain.nets.diagrams.model import draw
from agent_brain.nets.net import Net
from agent_brain.states.errors import RecordedError
from agent_brain.states.events import Position, StateExited

PAGE = 200  # steps that are read at once
Kind: TypeAlias = Literal["earlier", "begin", "resume", "step", "end", "wait", "open"]


class Place(NamedTuple):
    """A state of a net.

    Attributes:
        path: The nets around it, outermost first.
        state: Its name.
    """

    path: tuple[str, ...]
    state: str | None


def kind_of(part: Part) -> Kind:
    """Return what a part of a session is.

    ``"earlier"`` is before the steps that are kept, ``"open"`` after the last one. The others end
    with a step: a run begins, is resumed, completes a step, ends, or waits for a person.
    """
    step, before = part.step, part.before
    if step is None:
        return "earlier" if before is None else "open"
    if step.status == "waiting":
        return "wait"
    if step.status != "running":
        return "end"
    if part.begins_run:
        return "begin" if step.step == 0 else "step"
    return "resume" if before is not None and before.status != "running" else "step"


def place_of(control: Mapping[str, Any]) -> Place:
    """Return the innermost state that a run is in."""
    subnets: Mapping[str, str] = control.get("subnets") or {}
    if not subnets:
        return Place((), control.get("state"))
    deepest = max(subnets, key=lambda path: path.count("/"))
    return Place(tuple(deepest.split("/")), subnets[deepest])


class Places:
    """The states of a net in which the steps of runs were.

    Args:
        net: The net. Without it, a step that entered a net inside is that of the state around it.
    """

    def __init__(self, net: Net | None = None) -> None:
        diagrams = [] if net is None else draw(net).with_inner()
        self._initial = {diagram.path: diagram.initial for diagram in diagrams}

    def of(self, part: Part) -> Place | None:
        """Return the state that was run in a part; None if none was."""
        if part.begins_run or not part.start.get("state"):
            return None
        start = place_of(part.start)
        inside = self._entered(part, start)
        if inside is None or inside not in self._initial:
            return start
        return Place(inside, self._initial[inside])

    def _entered(self, part: Part, start: Place) -> tuple[str, ...] | None:
        """Return the path of the net inside the state that began in a part, if one did."""
        if part.step is None:
            return None
        control = part.control
        end = place_of(control)
        if len(end.path) > len(start.path):
            return end.path
        known = {*part.start.get("ended", ()), *part.start.get("subnets", ())}
        ended = [path for path in control.get("ended", ()) if path and path not in known]
        paths = [tuple(path.split("/")) for path in ended]
        return max((path for path in paths if path in self._initial), key=len, default=None)

    def way(self, parts: Iterable[Part]) -> Iterator[StateExited]:
        """Yield the moves of a run, for its diagram."""
        for part in parts:
            ran = self.of(part)
            if ran is None or part.step is None or kind_of(part) != "step":
                continue
            control = part.control
            end = place_of(control)
            over = len(end.path) < len(ran.path) or (control.get("done") and not ran.path)
            target = None if over else end.state
            if len(end.path) > len(ran.path) and not over:
                target = control.get("state")
            text = control.get("error")
            error = None if text is None else RecordedError("Exception", text)
            at = Position(part.step.run_id or "", part.step.step, ran.state, ran.path)
            yield StateExited(target, error, at=at)


async def parts_of_run(journal: Journal, key: str, number: int) -> list[Part]:
    """Return the steps of a run that are kept, up to the step of a number."""
    found: list[Part] = []
    before, earlier = number + 1, True
    while earlier:
        parts, earlier = await read_last_parts(journal, key, PAGE, before=before)
        begin = next((at for at in reversed(range(len(parts))) if parts[at].begins_run), None)
        found = parts[begin or 0 :] + found
        if begin is not None or not parts or parts[0].step is None:
            break
        before = parts[0].step.number
    return found
