"""Measure the rows that are asked for on standard input, with the ``agent_brain`` on the path.

A line is ``[row, "ours" or "floor", quick]`` as JSON; the answer is the figure.
"""

from __future__ import annotations

import json
import sys

from benchmarks.rows import ROWS


def main() -> None:
    """Answer until the input ends."""
    rows = {row.name: row for row in ROWS}
    for line in sys.stdin:
        name, which, quick = json.loads(line)
        print(json.dumps(getattr(rows[name], which)(quick)), flush=True)


if __name__ == "__main__":
    main()
