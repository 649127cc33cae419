"""The figures as tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.journals.contenders import LIBRARIES, Contender
from benchmarks.journals.measure import Figures, Sizes

Found = dict[Contender, Figures]


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    Attributes:
        title: What it is about.
        columns: The names of figures, by the title of their column.
        compared: The figure of which the last column is the ratio, as its column is called.
        scale: What figures are divided by.
    """

    title: str
    columns: dict[str, str]
    compared: str
    scale: float = 1.0


def tables_of(sizes: Sizes) -> list[Table]:
    calls = f"{sizes.calls} calls at once with results of {sizes.result:,} characters"
    opened = {
        f"{count:,} messages: {title}": f"{name}{count}"
        for count in sizes.opened
        for name, title in (("open", "open"), ("read", "and read all"), ("stall", "stall"))
    }
    messages = f"{sizes.steps} steps with a message of {sizes.message} characters each"
    return [
        Table(
            "Microseconds of a step",
            {
                "transition, wall": "hop",
                "CPU": "hop_cpu",
                "ReAct round, wall": "react",
                "CPU ": "react_cpu",
                "message, wall": "say",
                "CPU  ": "say_cpu",
            },
            "message, wall",
        ),
        Table(
            messages + ", KiB", {"written a step": "say_written", "size": "say_size"}, "size", 1024
        ),
        Table(calls + ", KiB", {"written": "fan_written", "size": "fan_size"}, "size", 1024),
        Table(calls + ", milliseconds", {"wall": "fan", "CPU": "fan_cpu"}, "wall", 1000),
        Table("Opening a session, milliseconds", opened, next(iter(opened))),
        Table(
            f"Resuming at step {sizes.steps}, milliseconds",
            {"connect, open, first event": "resume"},
            "connect, open, first event",
        ),
    ]


def shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def best_peer(found: Found, storage: str, figure: str) -> float | None:
    values = [
        figures[figure]
        for contender, figures in found.items()
        if contender.program != "ours" and contender.storage == storage and figure in figures
    ]
    return min(values, default=None)


def lines(table: Table, found: Found) -> Iterator[str]:
    """Yield the lines of a table with the contenders that have figures for it, if there are any."""
    rows = {c: f for c, f in found.items() if any(name in f for name in table.columns.values())}
    if not rows:
        return
    titles = [title.strip() for title in table.columns]
    yield f"\n{table.title}\n"
    yield f"| storage | library | {' | '.join(titles)} | {table.compared}: best peer / ours |"
    yield "|---|---|" + "---:|" * (len(titles) + 1)
    compared = table.columns[table.compared]
    for contender, figures in rows.items():
        values = [figures.get(name) for name in table.columns.values()]
        cells = [shown(None if value is None else value / table.scale) for value in values]
        peer, ours = best_peer(found, contender.storage, compared), figures.get(compared)
        compares = contender.program == "ours" and peer is not None and ours
        ratio = f"{peer / ours:.2g}x" if compares and peer and ours else ""
        yield f"| {contender.title} | {LIBRARIES[contender.program]} | {' | '.join([*cells, ratio])} |"
