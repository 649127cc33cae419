"""What the library costs, against hand-written loops and against an older commit.

    python -m benchmarks [ROW …] [--quick] [--against COMMIT]

Every figure is the median of several rounds; floor, working tree and commit take turns within each
round, each tree in a process of its own. Ratios are what counts: they hold across machines.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from statistics import median

from benchmarks.rows import ROWS, Row
from scripts.checkouts import checkout, environment
from scripts.link_package import ROOT

WIDTHS = (36, 12, 12, 9, 12, 9, 14)


class Worker:
    """A process that measures one tree."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def measure(self, row: Row, which: str, quick: bool) -> float:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps([row.name, which, quick]) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{row.name!r} could not be measured: see the error above")
        return float(json.loads(answer))


@contextmanager
def worker(commit: str | None) -> Iterator[Worker]:
    with ExitStack() as stack:
        where = stack.enter_context(environment(stack.enter_context(checkout(commit))))
        process = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-m", "benchmarks.worker"],
                cwd=ROOT,
                env=where,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        yield Worker(process)


def figure(value: float, unit: str) -> str:
    digits = 0 if value >= 1000 else 1 if value >= 100 else 2
    return f"{value:,.{digits}f} {unit}"


def line(row: Row, floor: float | None, now: float, before: float | None) -> list[str]:
    budget = ""
    if row.budget is not None:
        budget = f"{row.budget:g}x floor" if floor is not None else f"{row.budget:g} {row.unit}"
    return [
        row.what,
        "" if floor is None else figure(floor, row.unit),
        figure(now, row.unit),
        "" if floor is None else f"{now / floor:.2f}x",
        "" if before is None else figure(before, row.unit),
        "" if before is None else f"{now / before:.2f}x",
        budget,
    ]


def show(cells: list[str]) -> None:
    first, *rest = cells
    padded = [f"{cell:>{width}}" for cell, width in zip(rest, WIDTHS[1:], strict=True)]
    print(f"| {first:<{WIDTHS[0]}} | " + " | ".join(padded) + " |", flush=True)


def compare(row: Row, now: Worker, before: Worker | None, rounds: int, quick: bool) -> list[str]:
    floors, ours, theirs = [], [], []
    for _ in range(rounds):
        if row.floor is not None:
            floors.append(now.measure(row, "floor", quick))
        ours.append(now.measure(row, "ours", quick))
        if before is not None:
            theirs.append(before.measure(row, "ours", quick))
    return line(
        row,
        median(floors) if floors else None,
        median(ours),
        median(theirs) if theirs else None,
    )


def main() -> None:
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").splitlines()[0],
        epilog=f"Rows: {', '.join(names)}. Others: python -m benchmarks.memory, .vector, .recall, .user_memory.",
    )
    parser.add_argument("rows", nargs="*", metavar="ROW", help="only these rows")
    parser.add_argument("--quick", action="store_true", help="fewer rounds, less steady")
    parser.add_argument("--against", metavar="COMMIT", help="measure an older commit beside it")
    options = parser.parse_args()
    unknown = [name for name in options.rows if name not in names]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; rows are {', '.join(names)}")
    with ExitStack() as stack:
        now = stack.enter_context(worker(None))
        before = stack.enter_context(worker(options.against)) if options.against else None
        show(
            [
                "what",
                "floor",
                "now",
                "/ floor",
                options.against or "",
                "/ that" if before else "",
                "budget",
            ]
        )
        show(["-" * width for width in WIDTHS])
        for row in ROWS:
            if not options.rows or row.name in options.rows:
                show(compare(row, now, before, 3 if options.quick else 9, options.quick))


if __name__ == "__main__":
    main()
