"""The options of ``compare``; what it does is imported when it is called. Private."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from agent_brain.cli.exit_codes import ExitCode
from agent_brain.cli.options import Options, as_folder, option, with_options


@click.command()
@with_options(
    option(
        "--folder",
        "DIR",
        "Where the results are kept. Default: beside FILE, its name with -results.",
        callback=as_folder,
    ),
    option(
        "--plan", None, "Show what would be done and what it may cost; do it not.", is_flag=True
    ),
    option(
        "--only",
        "CELL",
        "Do these cells only, such as react/vector or '*/vector'. Can be repeated.",
        multiple=True,
    ),
    option("--fresh", None, "Do again what is kept already.", is_flag=True),
    option(
        "--again",
        "OUTCOME",
        "Do again the kept cases that ended so, such as rate-limited. Can be repeated.",
        multiple=True,
    ),
    option(
        "--fail-under",
        "[CELL=]RATE",
        "Exit with 1 if fewer cases passed, such as react/vector=0.8. Can be repeated.",
        multiple=True,
    ),
    option("as_json --json", None, "Write the figures as JSON.", is_flag=True),
    option("--quiet -q", None, "Show no progress.", is_flag=True),
)
@click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
def compare(path: Path, options: Options, **given: Any) -> ExitCode:
    """Compare nets, memories and models on your tasks, as a TOML file says.

    Every case that ends is kept in the folder: after Ctrl-C or a crash, the same command continues.
    The table and the conclusions go to stdout, report.md and report.html into the folder.

    Exit codes: 0 done, 1 below --fail-under or failed, 2 wrong usage, 3 stopped by a budget, 130
    cancelled.
    """
    from agent_brain.cli.compare.comparing import compare_file

    return compare_file(path, options, **given)
