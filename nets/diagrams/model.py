"""The contents of a diagram: states, edges, inner nets, and the counts of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from agent_brain.states.events import Event, StateExited

if TYPE_CHECKING:
    from agent_brain.nets.net import Net

Path: TypeAlias = tuple[str, ...]
Counts: TypeAlias = Counter[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Box:
    """One state."""

    label: str
    inside: tuple[Diagram, ...] = ()  # the nets that run inside it
    visits: int = 0  # how often the run left it
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """One edge."""

    source: str
    target: str | None  # None is the end
    taken: int = 0  # how often
    on_error: bool = False  # taken after an error of the state

    @property
    def text(self) -> str:
        """The label of the edge; may be empty."""
        parts = ["error"] if self.on_error else []
        return " ".join([*parts, f"{self.taken}×"] if self.taken else parts)


@dataclass(frozen=True, slots=True)
class Diagram:
    """A net, independent of the diagram language."""

    name: str
    initial: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    path: Path = ()

    def with_inner(self) -> Iterator[Diagram]:
        """Yield this net and all nets inside it."""
        yield self
        for box in self.boxes:
            for diagram in box.inside:
                yield from diagram.with_inner()


def draw(net: Net, run: Iterable[Event] | None = None) -> Diagram:
    """Return the diagram of a net, with the counts of a run if its events are given."""
    counts: Counts = Counter()
    for event in run or ():
        if isinstance(event, StateExited):
            target = event.next if event.error is None else Exception
            counts[event.path, event.state] += 1
            counts[event.path, event.state, target] += 1
    return _diagram(net, net.name, (), counts)


def _diagram(net: Net, name: str, path: Path, counts: Counts) -> Diagram:
    boxes = []
    for key, state in net.states.items():
        own, subnets = (*path, key.name), getattr(state, "subnets", {})
        named = state.parallel or len(subnets) > 1  # else the path names the state alone
        inside = [
            _diagram(inner, label, (*own, label) if named else own, counts)
            for label, inner in subnets.items()
        ]
        boxes.append(Box(key.name, tuple(inside), counts[path, key.name], key is net.fallback))
    arrows = [
        Arrow(source.name, end, counts[path, source.name, end])
        for source, targets in net.edges.items()
        for end in (None if t is None else t.name for t in targets)
    ]
    arrows += [
        Arrow(source.name, target.name, counts[path, source.name, Exception], on_error=True)
        for source, target in net.error_edges.items()
    ]
    return Diagram(name, net.initial.name, tuple(boxes), tuple(arrows), path)


def quoted(text: str) -> str:
    """Return a text as a string in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
