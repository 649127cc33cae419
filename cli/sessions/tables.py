"""Tables, times and numbers for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from agent_brain.cli.exit_codes import notify
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import one_line, sanitize
from agent_brain.common.text import count_of, cut_line

LONGEST = 1_000_000  # columns where nothing needs to fit
SPANS = ((86_400, "day"), (3_600, "hour"), (60, "minute"))  # seconds


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, long: str) -> None:
    """Print a table without its empty columns, cut to fit the terminal; elsewhere nothing is cut.

    Args:
        columns: The titles.
        rows: The cells, unsanitized.
        long: The title of the column that is cut first.
    """
    console = Console(file=sys.stdout)
    if not console.is_terminal:
        console.width = LONGEST
    cells = [[sanitize(cut_line(cell, LONGEST)) for cell in row] for row in rows]
    table = Table(box=None, pad_edge=False, header_style="bold")
    used = [at for at, _ in enumerate(columns) if any(row[at] for row in cells)]
    for at in used:
        table.add_column(columns[at], no_wrap=columns[at] != long)
    for row in cells:
        table.add_row(*(Text(row[at], no_wrap=True, overflow="ellipsis") for at in used))
    with console.capture() as capture:
        console.print(table)
    print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def print_found(options: Options, found: Sequence[Mapping[str, Any]], none: str) -> bool:
    """Print what was found as JSON, or on stderr that it is nothing; return whether that was all.

    Args:
        options: Say whether JSON is wanted.
        found: What was found.
        none: What is said of nothing.
    """
    if options.as_json:
        for data in found:
            print_json(data)
    elif not found:
        notify(none, kind="")
    return options.as_json or not found


def print_json(data: Any) -> None:
    """Print data as JSON on a line; times as ISO texts."""
    print(one_line(json.dumps(data, ensure_ascii=False, default=lambda time: time.isoformat())))


def local_time(time: datetime | None) -> str:
    """Return a time in the zone of this machine; empty if it is unknown."""
    return "" if time is None else f"{time.astimezone():%Y-%m-%d %H:%M:%S}"


def how_long_ago(time: datetime | None) -> str:
    """Return how long ago a time was, such as "5 minutes ago"; empty if it is unknown."""
    if time is None:
        return ""
    seconds = (datetime.now(UTC) - time).total_seconds()
    for length, noun in SPANS:
        if seconds >= length:
            return f"{count_of(int(seconds // length), noun)} ago"
    return "now"


def spent_text(spent: Mapping[str, Any]) -> str:
    """Return tokens and cost for people; empty if there were none."""
    tokens = spent.get("input_tokens", 0) + spent.get("output_tokens", 0)
    cost = spent.get("cost", 0)
    parts = [count_of(tokens, "token")] if tokens else []
    parts += [f"${cost:.4f}"] if cost else []
    return ", ".join(parts)
