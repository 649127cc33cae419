"""What the library costs beside other libraries, each in an environment of its own.

    python -m benchmarks.peers [ROW …] [--only PEER …] [--rounds 3] [--original FOLDER]

Each figure is the least of several rounds; in each round all libraries take turns, every
measurement in a process of its own. CPU time includes the garbage collector. The figures are
also written to build/peers/figures.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers.environments import FOLDER, PEERS, install
from benchmarks.peers.measure import ROWS
from scripts.checkouts import environment
from scripts.link_package import ROOT

ONCE = ("many5000",)  # takes minutes for some

Figures = dict[str, float]


@dataclass(frozen=True, slots=True)
class Contender:
    """What is measured: a program, the Python that runs it, and its environment."""

    title: str
    program: str
    python: str
    environment: dict[str, str]

    def measure(self, row: str) -> Figures:
        command = [self.python, "-m", "benchmarks.peers.measure", self.program, row]
        done = subprocess.run(
            command, cwd=ROOT, env=self.environment, stdout=subprocess.PIPE, text=True, check=False
        )
        if done.returncode:
            print(f"{self.title}: {row} failed, see above", file=sys.stderr)
            return {}
        return dict(json.loads(done.stdout.splitlines()[-1]))


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the table: one of the figures of a measurement."""

    figure: str
    what: str
    unit: str


LINES = (
    Line("react10", "ReAct, 10 steps: a step", "us"),
    Line("react50", "ReAct, 50 steps: a step", "us"),
    Line("react200", "ReAct, 200 steps: a step", "us"),
    Line("chunk", "10,000 streamed chunks: a chunk", "us"),
    Line("first", "first chunk (wall)", "us"),
    Line("many1000", "1,000 runs at once: a run", "us"),
    Line("many1000_wall", "1,000 runs at once (wall)", "s"),
    Line("many1000_kib", "1,000 runs at once: a run", "KiB"),
    Line("many5000", "5,000 runs at once: a run", "us"),
    Line("many5000_wall", "5,000 runs at once (wall)", "s"),
    Line("many5000_kib", "5,000 runs at once: a run", "KiB"),
    Line("hops", "transition", "us"),
    Line("session", "idle session", "KiB"),
    Line("import", "import", "ms"),
    Line("import_pydantic", "import pydantic alone", "ms"),
)


def contenders(only: Iterable[str], original: Path | None, ours: dict[str, str]) -> list[Contender]:
    here = {**ours, "PYTHONHASHSEED": "0"}
    bare = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE")
    }
    found = [
        Contender("hand-written", "floor", sys.executable, here),
        Contender("Agent Brain", "ours", sys.executable, here),
    ]
    for peer in PEERS:
        if not only or peer.name in only:
            install(peer)
            title = f"{peer.name} {peer.version}"
            found.append(
                Contender(title, peer.program, str(peer.python), {**bare, "PYTHONHASHSEED": "0"})
            )
    if original is not None:
        path = {**bare, "PYTHONPATH": str(original.resolve())}
        python = str(FOLDER / "agent-brain" / "bin" / "python")
        found.append(Contender("original agent-brain", "original", python, path))
    return found


def shown(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def table(found: dict[str, Figures]) -> Iterable[str]:
    """Yield the lines of a Markdown table; the last column compares with the best peer."""
    titles = list(found)
    yield f"| what | unit | {' | '.join(titles)} | best peer / ours | ours / hand-written |"
    yield "|---|---|" + "---:|" * (len(titles) + 2)
    for line in LINES:
        values = [found[title].get(line.figure) for title in titles]
        if not any(value is not None for value in values):
            continue
        floor, ours, *peers = values
        best = min((value for value in peers if value is not None), default=None)
        ratios = [
            f"{best / ours:.2g}x" if best is not None and ours else "",
            f"{ours / floor:.2g}x" if ours is not None and floor else "",
        ]
        cells = [line.what, line.unit, *map(shown, values), *ratios]
        yield f"| {' | '.join(cells)} |"


def main() -> None:
    names = [peer.name for peer in PEERS]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}")
    parser.add_argument("--only", nargs="+", choices=names, metavar="PEER", default=[])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--original",
        type=Path,
        metavar="FOLDER",
        help="a checkout of the original agent-brain, which is not on PyPI; its dependencies are "
        "those of the environment build/peers/agent-brain",
    )
    options = parser.parse_args()
    unknown = [row for row in options.rows if row not in ROWS]
    if unknown:
        parser.error(f"there is no row {unknown[0]!r}; rows are {', '.join(ROWS)}")
    print(f"Python {platform.python_version()}, {platform.system()} {platform.release()}")
    found: dict[str, Figures] = {}
    with environment(ROOT) as ours:
        measured = contenders(options.only, options.original, ours)
        for row in options.rows or ROWS:
            for number in range(1 if row in ONCE else options.rounds):
                turn = number % len(measured)
                for contender in [*measured[turn:], *measured[:turn]]:
                    kept = found.setdefault(contender.title, {})
                    for name, value in contender.measure(row).items():
                        kept[name] = min(value, kept.get(name, value))
            print(f"{row} measured", file=sys.stderr, flush=True)
    ordered = {contender.title: found[contender.title] for contender in measured}
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "figures.json").write_text(json.dumps(ordered, indent=1))
    print("\n".join(table(ordered)))


if __name__ == "__main__":
    main()
