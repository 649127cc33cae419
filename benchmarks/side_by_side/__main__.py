"""The same four nets in three libraries: what they say, and how many lines they take.

    python -m benchmarks.side_by_side

Installs the other libraries, runs each program in an environment of its own, and prints the tables
of docs/side-by-side.md. The programs of this library are those of that page.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.journals.contenders import LANGGRAPH
from benchmarks.peers.environments import PEERS, Peer, install
from benchmarks.side_by_side.count import lines_of
from scripts.link_package import ROOT

PROGRAMS = Path(__file__).parent / "programs"
PAGE = ROOT / "docs" / "side-by-side.md"
OTHERS: dict[str, Peer] = {
    "LangGraph": LANGGRAPH,  # with its checkpointer for SQLite
    "Pydantic AI": next(peer for peer in PEERS if peer.name == "pydantic-ai"),
}
FOLDERS = {"Agent Brain": "ours", "LangGraph": "langgraph", "Pydantic AI": "pydantic_ai"}
NETS = {
    "triage": "a triage that escalates to a person",
    "map_reduce": "map-reduce over documents with a budget",
    "sql": "an SQL agent that repairs its query and asks before it writes",
    "flights": "booking a flight",
}
MISTAKES = {
    "edge": "an edge to a state that is not there",
    "unreachable": "a state that nothing leads to",
    "loop": "a loop without an exit",
    "tools": "two tools with one name",
    "approval": "approval for a tool whose name is misspelt",
    "type": "an output of a type that nothing can check",
}


def code_of(library: str, net: str) -> str:
    """Return the text of a program."""
    if library == "Agent Brain" and net in NETS:
        (code,) = re.findall(
            rf"^```python\n(# {net}\.py\n.*?)^```", PAGE.read_text(encoding="utf-8"), re.M | re.S
        )
        return str(code)
    return (PROGRAMS / FOLDERS[library] / f"{net}.py").read_text(encoding="utf-8")


def output_of(library: str, net: str) -> str:
    """Return what a program prints, run in an empty folder.

    Raises:
        CalledProcessError: It failed; what it said is on stderr.
    """
    folders = (PROGRAMS / FOLDERS[library], PROGRAMS / "shared")
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))}
    python = str(OTHERS[library].python) if library in OTHERS else sys.executable
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / f"{net}.py"
        program.write_text(code_of(library, net), encoding="utf-8")
        done = subprocess.run(
            [python, str(program)],
            cwd=folder,
            env=variables,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
    return done.stdout


def lines() -> Iterator[str]:
    """Yield the rows of the table of lines of code."""
    yield "| lines of code | " + " | ".join(FOLDERS) + " |"
    yield "|---|" + "---|" * len(FOLDERS)
    for net, what in NETS.items():
        counts = [str(lines_of(code_of(library, net))) for library in FOLDERS]
        yield f"| {what} | " + " | ".join(counts) + " |"


def mistakes() -> Iterator[str]:
    """Yield the rows of the table of mistakes that are found before a run."""
    found = {library: json.loads(output_of(library, "checks")) for library in FOLDERS}
    words = {True: "refused", False: "runs", None: "–"}
    yield "| mistake | " + " | ".join(FOLDERS) + " |"
    yield "|---|" + "---|" * len(FOLDERS)
    for mistake, what in MISTAKES.items():
        yield f"| {what} | " + " | ".join(words[found[each][mistake]] for each in found) + " |"


def main() -> None:
    for peer in OTHERS.values():
        install(peer)
    for net in NETS:
        said = {library: output_of(library, net) for library in FOLDERS}
        if len({*said.values()}) > 1:
            raise SystemExit(f"{net}: the programs say different things: {said}")
    print("\n".join([*lines(), "", *mistakes()]))


if __name__ == "__main__":
    main()
