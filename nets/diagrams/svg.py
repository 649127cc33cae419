"""Nets as SVG images, without external programs.

States stand in columns by their distance from the initial one; edges that lead back run below or
above. Inner nets are drawn beneath, each in a frame titled with its path.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from html import escape
from typing import NamedTuple

from agent_brain.nets.diagrams.model import Arrow, Box, Diagram

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 132, 40, 72, 34, 28
_CSS = (
    "text{font:13px sans-serif;fill:#1b1f24}.t{font-weight:600}.n{font-size:11px;fill:#1f5fbf}"
    ".b{fill:#fff;stroke:#57606a;stroke-width:1.4}.v{fill:#dcebff;stroke:#1f5fbf;stroke-width:2}"
    ".f{stroke-dasharray:5 3}.e{fill:none;stroke:#8c959f;stroke-width:1.3}"
    ".d{stroke-dasharray:4 3}.w{stroke:#1f5fbf;stroke-width:2.2}"
    ".frame{fill:none;stroke:#d0d7de;stroke-dasharray:2 3}"
)
_HEAD = (
    '<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9" '
    'markerUnits="userSpaceOnUse" '
    'orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="#57606a"/></marker></defs>'
)


class _Spot(NamedTuple):
    """The upper left corner of a box."""

    x: float
    y: float


def to_svg(diagram: Diagram) -> str:
    """Return one ``<svg>`` element."""
    parts: list[str] = []
    width, y = 0.0, 0.0
    for part in diagram.with_inner():
        drawn, wide, high = _panel(part, y)
        parts += drawn
        width, y = max(width, wide), y + high
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y:.0f}" '
        f'width="{width:.0f}" height="{y:.0f}" role="img" aria-label="{escape(diagram.name)}">'
        f"<style>{_CSS}</style>{_HEAD}{''.join(parts)}</svg>\n"
    )


def _panel(diagram: Diagram, top: float) -> tuple[list[str], float, float]:
    """Return the drawing of one net, its width and its height."""
    spots, columns, rows = _place(diagram, top + 2 * MARGIN)
    width = 2 * MARGIN + columns * (WIDTH + GAP_X) + 24
    high = 3 * MARGIN + rows * (HEIGHT + GAP_Y)
    end = _Spot(width - MARGIN, top + 2 * MARGIN + HEIGHT / 2)
    own = () if diagram.path[-1:] == (diagram.name,) else (diagram.name,)
    title = " / ".join((*diagram.path, *own))
    parts = [f'<text class="t" x="{MARGIN}" y="{top + MARGIN:.0f}">{escape(title)}</text>']
    if diagram.path:
        parts.append(
            f'<rect class="frame" x="6" y="{top + 6:.0f}" width="{width - 12:.0f}" '
            f'height="{high - 8:.0f}" rx="10"/>'
        )
    parts += _edges(diagram, spots, end)
    parts += [_box(box, spots[box.label], diagram.path) for box in diagram.boxes]
    parts.append(f'<circle cx="{end.x:.0f}" cy="{end.y:.0f}" r="6" fill="#57606a"/>')
    return parts, width, high


def _place(diagram: Diagram, top: float) -> tuple[dict[str, _Spot], int, int]:
    column, rows = _columns(diagram), Counter[int]()
    spots = {}
    for box in diagram.boxes:
        at = column[box.label]
        y = top + rows[at] * (HEIGHT + GAP_Y)
        spots[box.label] = _Spot(MARGIN + 24 + at * (WIDTH + GAP_X), y)
        rows[at] += 1
    return spots, max(column.values()) + 1, max(rows.values())


def _columns(diagram: Diagram) -> dict[str, int]:
    """Return the distance of each state from the initial one; unreachable states come last."""
    column = {diagram.initial: 0}
    todo = [diagram.initial]
    for source in todo:
        for arrow in diagram.arrows:
            if arrow.source == source and arrow.target is not None and arrow.target not in column:
                column[arrow.target] = column[source] + 1
                todo.append(arrow.target)
    last = max(column.values()) + 1
    return {box.label: column.get(box.label, last) for box in diagram.boxes}


def _box(box: Box, at: _Spot, path: tuple[str, ...]) -> str:
    look = ("v" if box.visits else "b") + (" f" if box.fallback else "")
    name = escape("-".join((*path, box.label)))  # a page finds the state by it
    label = box.label if len(box.label) <= 16 else box.label[:15] + "…"
    count = f'<text class="n" x="{at.x + WIDTH - 6}" y="{at.y + 13}" text-anchor="end">'
    return (
        f'<g class="state" id="state-{name}"><title>{escape(box.label)}</title>'
        f'<rect class="{look}" x="{at.x}" y="{at.y}" width="{WIDTH}" height="{HEIGHT}" rx="9"/>'
        f'<text x="{at.x + WIDTH / 2}" y="{at.y + HEIGHT / 2 + 5}" '
        f'text-anchor="middle">{escape(label)}</text>'
        f"{f'{count}{box.visits}×</text>' if box.visits else ''}</g>"
    )


def _edges(diagram: Diagram, spots: Mapping[str, _Spot], end: _Spot) -> Iterator[str]:
    first = spots[diagram.initial]
    y = first.y + HEIGHT / 2
    yield f'<circle cx="{MARGIN - 8}" cy="{y}" r="5" fill="#57606a"/>'
    yield _line(f"M{MARGIN - 3} {y}L{first.x} {y}")
    for arrow in diagram.arrows:
        if arrow.target is None or arrow.target in spots:
            yield _edge(arrow, spots, end)


def _edge(arrow: Arrow, spots: Mapping[str, _Spot], end: _Spot) -> str:
    source, half = spots[arrow.source], WIDTH / 2
    right, y = source.x + WIDTH, source.y + HEIGHT / 2
    look = ("e w" if arrow.taken else "e") + (" d" if arrow.on_error else "")
    if arrow.target is None:
        if source.y <= end.y and right + GAP_X < end.x:  # above the states in between
            x, bend = source.x + half, source.y - 18
            path = f"M{x} {source.y}C{x} {bend} {end.x} {bend} {end.x} {end.y - 7}"
        else:
            path = f"M{right} {y}C{end.x - 30} {y} {end.x - 40} {end.y} {end.x - 7} {end.y}"
        return _line(path, look)
    target = spots[arrow.target]
    if target.x > source.x:
        to_y, reach = target.y + HEIGHT / 2, (target.x - right) / 2
        path = f"M{right} {y}C{right + reach} {y} {target.x - reach} {to_y} {target.x} {to_y}"
    else:  # back, below both states
        start, stop = source.x + half - 10, target.x + half + 10
        low = max(source.y, target.y) + HEIGHT + 26
        path = f"M{start} {source.y + HEIGHT}C{start} {low} {stop} {low} {stop} {target.y + HEIGHT}"
    return _line(path, look)


def _line(path: str, look: str = "e") -> str:
    title = "<title>error</title>" if look.endswith(" d") else ""
    return f'<path class="{look}" d="{path}" marker-end="url(#a)">{title}</path>'
