"""A net as an SVG image, laid out here: no program has to be installed.

States stand in columns by how far they are from the beginning; edges that lead back run below or
above. Nets inside a state are drawn beneath, each in a frame that says where it belongs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape

from agent_brain.nets.diagrams.model import Arrow, Box, Picture

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


@dataclass(frozen=True, slots=True)
class _Spot:
    """Where a box stands: its upper left corner."""

    x: float
    y: float


def to_svg(picture: Picture) -> str:
    """One ``<svg>`` element."""
    parts: list[str] = []
    width, y = 0.0, 0.0
    for part in (picture, *picture.all_inside()):
        drawn, wide, high = _panel(part, y)
        parts += drawn
        width, y = max(width, wide), y + high
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {y:.0f}" '
        f'width="{width:.0f}" height="{y:.0f}" role="img" aria-label="{escape(picture.name)}">'
        f"<style>{_CSS}</style>{_HEAD}{''.join(parts)}</svg>\n"
    )


def _panel(picture: Picture, top: float) -> tuple[list[str], float, float]:
    """One net with its title, its width and its height."""
    spots, columns, rows = _place(picture, top + 2 * MARGIN)
    width = 2 * MARGIN + columns * (WIDTH + GAP_X) + 24
    high = 3 * MARGIN + rows * (HEIGHT + GAP_Y)
    end = _Spot(width - MARGIN, top + 2 * MARGIN + HEIGHT / 2)
    own = () if picture.path[-1:] == (picture.name,) else (picture.name,)
    title = " / ".join((*picture.path, *own))
    parts = [f'<text class="t" x="{MARGIN}" y="{top + MARGIN:.0f}">{escape(title)}</text>']
    if picture.path:
        parts.append(
            f'<rect class="frame" x="6" y="{top + 6:.0f}" width="{width - 12:.0f}" '
            f'height="{high - 8:.0f}" rx="10"/>'
        )
    parts += _edges(picture, spots, end)
    parts += [_box(box, spots[box.label]) for box in picture.boxes]
    parts.append(f'<circle cx="{end.x:.0f}" cy="{end.y:.0f}" r="6" fill="#57606a"/>')
    return parts, width, high


def _place(picture: Picture, top: float) -> tuple[dict[str, _Spot], int, int]:
    column = _columns(picture)
    used: dict[int, int] = {}
    spots = {}
    for box in picture.boxes:
        at = column[box.label]
        row = used.get(at, 0)
        used[at] = row + 1
        spots[box.label] = _Spot(MARGIN + 24 + at * (WIDTH + GAP_X), top + row * (HEIGHT + GAP_Y))
    return spots, max(column.values()) + 1, max(used.values())


def _columns(picture: Picture) -> dict[str, int]:
    """How many edges lead from the beginning to each state; unreached ones stand at the end."""
    column = {picture.initial: 0}
    todo = [picture.initial]
    for source in todo:
        for arrow in picture.arrows:
            if arrow.source == source and arrow.target is not None and arrow.target not in column:
                column[arrow.target] = column[source] + 1
                todo.append(arrow.target)
    last = max(column.values()) + 1
    return {box.label: column.get(box.label, last) for box in picture.boxes}


def _box(box: Box, at: _Spot) -> str:
    look = ("v" if box.visits else "b") + (" f" if box.fallback else "")
    label = box.label if len(box.label) <= 16 else box.label[:15] + "…"
    often = (
        f'<text class="n" x="{at.x + WIDTH - 6}" y="{at.y + 13}" text-anchor="end">'
        f"{box.visits}×</text>"
        if box.visits
        else ""
    )
    return (
        f'<g><title>{escape(box.label)}</title><rect class="{look}" x="{at.x}" y="{at.y}" '
        f'width="{WIDTH}" height="{HEIGHT}" rx="9"/><text x="{at.x + WIDTH / 2}" '
        f'y="{at.y + HEIGHT / 2 + 5}" text-anchor="middle">{escape(label)}</text>{often}</g>'
    )


def _edges(picture: Picture, spots: Mapping[str, _Spot], end: _Spot) -> Iterator[str]:
    first = spots[picture.initial]
    y = first.y + HEIGHT / 2
    yield f'<circle cx="{MARGIN - 8}" cy="{y}" r="5" fill="#57606a"/>'
    yield _line(f"M{MARGIN - 3} {y}L{first.x} {y}", "e")
    for arrow in picture.arrows:
        if arrow.target is None or arrow.target in spots:
            yield _edge(arrow, spots, end)


def _edge(arrow: Arrow, spots: Mapping[str, _Spot], end: _Spot) -> str:
    source = spots[arrow.source]
    look = ("e w" if arrow.taken else "e") + (" d" if arrow.on_error else "")
    y = source.y + HEIGHT / 2
    if arrow.target is None:
        bend = source.y - 18
        if source.y <= end.y and source.x + WIDTH + GAP_X < end.x:
            middle = source.x + WIDTH / 2
            return _line(
                f"M{middle} {source.y}C{middle} {bend} {end.x} {bend} {end.x} {end.y - 7}", look
            )
        return _line(
            f"M{source.x + WIDTH} {y}C{end.x - 30} {y} {end.x - 40} {end.y} {end.x - 7} {end.y}",
            look,
        )
    target = spots[arrow.target]
    to_y = target.y + HEIGHT / 2
    if target.x > source.x:
        reach = (target.x - source.x - WIDTH) / 2
        return _line(
            f"M{source.x + WIDTH} {y}C{source.x + WIDTH + reach} {y} {target.x - reach} {to_y} "
            f"{target.x} {to_y}",
            look,
        )
    low = max(source.y, target.y) + HEIGHT
    return _line(
        f"M{source.x + WIDTH / 2 - 10} {source.y + HEIGHT}C{source.x + WIDTH / 2 - 10} {low + 26} "
        f"{target.x + WIDTH / 2 + 10} {low + 26} {target.x + WIDTH / 2 + 10} {target.y + HEIGHT}",
        look,
    )


def _line(path: str, look: str) -> str:
    title = "<title>error</title>" if look.endswith(" d") else ""
    return f'<path class="{look}" d="{path}" marker-end="url(#a)">{title}</path>'
