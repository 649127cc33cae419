"""Exit codes of the command, and its messages on stderr. Private."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from agent_brain.limits import Limits
    from agent_brain.result import Result


class ExitCode(IntEnum):
    """Exit codes of the command."""

    ANSWERED = 0
    FAILED = 1
    MISTAKE = 2
    STOPPED = 3
    CANCELLED = 130
    NO_READER = 141


_STYLES = {"Error": "bold red", "Stopped": "bold yellow", "Note": "bold", "": ""}
_OS_ERRORS = {
    errno.ENOSPC: "the disk is full: make room, or use another folder",
    errno.EDQUOT: "the disk quota is used up: make room, or use another folder",
    errno.EFBIG: "a file may not grow any further: see ulimit -f",
    errno.EROFS: "the disk is read-only: use another folder",
    errno.EIO: "the disk cannot be read or written",
    errno.EACCES: "access was denied: check the permissions",
    errno.EPERM: "access was denied: check the permissions",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ENOENT: "there is no such file or folder",
    errno.EEXIST: "something of that name already exists",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "the path has links that go in circles",
    errno.EADDRINUSE: "another program uses this port: choose another one",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
    errno.EMFILE: "too many files are open: see ulimit -n",
    errno.ENFILE: "too many files are open on this machine",
}
_STOPPED = {  # by the value of a stop reason; formatted with the limits
    "max_steps": "the limit of {0.max_steps} steps was reached (--max-steps)",
    "timeout": "the time limit of {0.timeout:g} seconds was reached (--timeout)",
    "max_cost": "the limit of ${0.max_cost:g} was reached (--max-cost)",
    "stuck": "the agent repeated itself, and a hint did not help",
    "approval": "the agent waits for a person",
    "input": "the agent waits for a person",
}


class UserError(Exception):
    """Raised for a mistake of the user; the message says what to do instead."""


@contextmanager
def exit_on_error(*, debug: bool) -> Iterator[None]:
    """Report an error on stderr and raise ``typer.Exit`` with its exit code."""
    try:
        yield
    except UserError as error:
        notify(str(error))
        if debug and error.__cause__ is not None:
            _print_traceback(error.__cause__)
        raise typer.Exit(ExitCode.MISTAKE) from None
    except KeyboardInterrupt:
        notify("Cancelled", kind="")
        raise typer.Exit(ExitCode.CANCELLED) from None
    except BrokenPipeError:
        _discard_stdout()
        raise typer.Exit(ExitCode.NO_READER) from None
    except typer.Exit:
        raise
    except Exception as error:
        report_failure(error, debug=debug)
        try:
            sys.stdout.flush()
        except OSError:
            _discard_stdout()
        raise typer.Exit(ExitCode.FAILED) from None


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn this library's own errors into user errors."""
    from agent_brain.errors import AgentBrainError

    try:
        yield
    except AgentBrainError as error:
        raise UserError(str(error)) from error


def conclude(result: Result, limits: Limits, how: str = "") -> ExitCode:
    """Return the exit code of a run, after reporting why it stopped early and how to answer."""
    reason = result.stop_reason.value
    if reason == "done":
        return ExitCode.ANSWERED
    why = _STOPPED.get(reason, f"the run ended early ({reason})").format(limits)
    left = "the answer is incomplete" if result.answer else "there is no answer yet"
    notify(f"{why}; {left}{how}", kind="Stopped")
    return ExitCode.CANCELLED if reason == "cancelled" else ExitCode.STOPPED


def notify(message: str, *, kind: str = "Error") -> None:
    """Write a message on a line of its own to stderr.

    Args:
        message: The text.
        kind: "Error", "Stopped" or "Note", which is written before it, or "".
    """
    from agent_brain.cli.screen import Screen

    screen = Screen(sys.stderr)
    screen.write(f"{kind}: " if kind else "", _STYLES[kind])
    screen.write(message)
    screen.end_line()


def report_failure(error: Exception, *, debug: bool) -> None:
    """Write to stderr why a run failed, and how to find out more."""
    from agent_brain.errors import AgentBrainError

    system = describe_os_error(error)
    expected = isinstance(error, AgentBrainError)
    lines = [system or (str(error) if expected else f"{type(error).__name__}: {error}")]
    lines += getattr(error, "__notes__", [])
    lines += _hints(error)
    if not (expected or system or debug):
        lines.append("This error is unexpected. Use --debug to see the traceback")
    notify("\n  ".join(lines))
    if debug:
        _print_traceback(error)


def describe_os_error(error: BaseException | None) -> str:
    """Return what the operating system refused and what to do, or "" for other errors.

    The causes of ``error`` are searched too, because event loops and servers wrap such errors.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _OS_ERRORS:
            where = f"{error.filename!r}: " if error.filename is not None else ""
            return f"{where}{_OS_ERRORS[error.errno]} ({error.strerror})"
        error = error.__cause__
    return ""


def _print_traceback(error: BaseException) -> None:
    from agent_brain.cli.screen import Screen

    Screen(sys.stderr).write("".join(traceback.format_exception(error)))


def _hints(error: Exception) -> list[str]:
    from agent_brain.errors import LLMAuthenticationError, LLMBadRequestError

    if isinstance(error, LLMAuthenticationError):
        variable = f"{(error.provider or 'provider').upper()}_API_KEY"
        if os.environ.get(variable):
            return [f"{variable} is set, but was not accepted"]
        return [
            f"Put the key into the environment: export {variable}=…",
            "The built-in demo model needs none: --model demo",
        ]
    if isinstance(error, LLMBadRequestError) and "/" not in (error.model or "/"):
        return ["Model names begin with the provider, such as openai/gpt-4.1-mini"]
    return []


def _discard_stdout() -> None:
    """Keep Python from failing again when it flushes stdout at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
