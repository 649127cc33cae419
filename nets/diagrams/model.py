"""What there is to draw of a net: its states, its edges, the nets inside, and the way of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from agent_brain.states.base import State
from agent_brain.states.events import Event, StateExited

if TYPE_CHECKING:
    from agent_brain.nets.net import Net

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Box:
    """One state.

    Attributes:
        label: The state's name.
        inside: The nets that run inside it.
        visits: How often the drawn run left it.
        fallback: Limits lead here.
    """

    label: str
    inside: tuple[Picture, ...] = ()
    visits: int = 0
    fallback: bool = False


@dataclass(frozen=True, slots=True)
class Arrow:
    """One edge; ``target`` None is the end. ``taken`` counts how often the drawn run took it.

    ``on_error`` marks the edge that an error of the state takes.
    """

    source: str
    target: str | None
    taken: int = 0
    on_error: bool = False

    @property
    def text(self) -> str:
        """What is written beside it; may be empty."""
        parts = ["error"] if self.on_error else []
        return " ".join([*parts, f"{self.taken}×"] if self.taken else parts)


@dataclass(frozen=True, slots=True)
class Picture:
    """A net, ready to be written in some drawing language."""

    name: str
    initial: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...]
    path: Path = ()

    def all_inside(self) -> Iterator[Picture]:
        """The nets inside, and inside those."""
        for box in self.boxes:
            for picture in box.inside:
                yield picture
                yield from picture.all_inside()


@dataclass(slots=True)
class Way:
    """How often a run left each state, and took each edge, by path."""

    visits: Counter[tuple[Path, str]] = field(default_factory=Counter)
    failed: Counter[tuple[Path, str]] = field(default_factory=Counter)
    taken: Counter[tuple[Path, str, str | None]] = field(default_factory=Counter)


def way_of(events: Iterable[Event]) -> Way:
    """Read the way of a run from its events."""
    way = Way()
    for event in events:
        if isinstance(event, StateExited) and event.state is not None:
            way.visits[event.path, event.state] += 1
            if event.error is None:
                way.taken[event.path, event.state, event.next] += 1
            else:
                way.failed[event.path, event.state] += 1
    return way


def draw(net: Net, way: Way | None = None, *, name: str | None = None, path: Path = ()) -> Picture:
    """The picture of ``net``, with the nets inside it and the way that a run took."""
    way = way or Way()
    boxes = tuple(
        Box(
            key.name,
            tuple(_inside(key, state, way, path)),
            way.visits[path, key.name],
            key is net.fallback,
        )
        for key, state in net.states.items()
    )
    arrows = tuple(
        Arrow(source.name, end, way.taken[path, source.name, end])
        for source, targets in net.edges.items()
        for end in (None if target is None else target.name for target in targets)
    )
    errors = tuple(
        Arrow(source.name, target.name, way.failed[path, source.name], on_error=True)
        for source, target in net.error_edges.items()
    )
    return Picture(name or net.name, net.initial.name, boxes, arrows + errors, path)


def _inside(key: Enum, state: State, way: Way, path: Path) -> Iterator[Picture]:
    subnets: dict[str, Net] = getattr(state, "subnets", {})
    for name, net in subnets.items():
        inner = (*path, key.name, name) if state.parallel else (*path, key.name)
        yield draw(net, way, name=name, path=inner)
