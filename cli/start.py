"""Run the command as a process, and leave with its exit code."""

from __future__ import annotations

import os
import sys
import threading
from io import TextIOWrapper
from pathlib import Path
from typing import NoReturn

GRACE = 0.2  # seconds in which a thread may end
CANCELLED = 130


def main() -> NoReturn:
    """Run the command with the arguments of this process, then leave the process."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        stream = getattr(sys, name)
        if stream is None:  # closed, as by >&-; the null device takes its descriptor
            setattr(sys, name, Path(os.devnull).open(mode, encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # an encoding may lack some characters
    code: str | int | None = 0
    try:
        _run_command()
    except SystemExit as exit_:
        code = exit_.code
    except KeyboardInterrupt:
        code = CANCELLED
    _leave(code)


def _run_command() -> None:
    from click.exceptions import Abort, ClickException, Exit

    from agent_brain.cli.app import app
    from agent_brain.cli.exit_codes import exit_on_error

    try:
        with exit_on_error(debug=False):  # arguments are read outside of the commands
            try:
                code = app(prog_name="agent-brain", standalone_mode=False)
            except Abort:  # Ctrl-C meanwhile
                raise KeyboardInterrupt from None
            except ClickException as mistake:
                mistake.show()
                code = mistake.exit_code
    except Exit as exit_:
        code = exit_.exit_code
    raise SystemExit(code)


def _leave(code: str | int | None) -> NoReturn:
    """Exit without waiting for cancelled tools that still run in a thread."""
    current = threading.current_thread()
    others = [each for each in threading.enumerate() if each is not current and not each.daemon]
    for thread in others:
        thread.join(GRACE)
    running = [thread.name for thread in others if thread.is_alive()]
    if not running:
        sys.exit(code)
    tools = [name for name in running if name.startswith("tool ")]
    if tools and code != CANCELLED:
        sys.stderr.write(f"Still running when the command ended: {', '.join(tools)}\n")
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))
