"""How the command ends: exit codes, and what is said when something went wrong."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum

import typer


class ExitCode(IntEnum):
    """What the shell is told."""

    ANSWERED = 0
    FAILED = 1
    MISTAKE = 2
    STOPPED = 3
    CANCELLED = 130
    NO_READER = 141


STYLES = {"Error": "bold red", "Stopped": "bold yellow", "Note": "bold"}


# What the machine refuses, and what to do about it: no faults of this program.
_MACHINE = {
    errno.ENOSPC: "the disk is full: make room, or use another folder",
    errno.EDQUOT: "the disk quota is used up: make room, or use another folder",
    errno.EFBIG: "a file may not grow any further: see ulimit -f",
    errno.EROFS: "the disk cannot be written to: use another folder",
    errno.EIO: "the disk cannot be read or written",
    errno.EACCES: "access was denied: check the permissions",
    errno.EPERM: "access was denied: check the permissions",
    errno.ENOTDIR: "a part of the path is not a folder",
    errno.ENOENT: "there is no such file or folder",
    errno.EEXIST: "there is something of that name already",
    errno.ENAMETOOLONG: "the name is too long",
    errno.ELOOP: "the path has links that go in circles",
    errno.EADDRINUSE: "another program listens on this port: choose another one",
    errno.EADDRNOTAVAIL: "this machine does not have that address",
    errno.EMFILE: "too many files are open: see ulimit -n",
    errno.ENFILE: "too many files are open on this machine",
}


class UserError(Exception):
    """The user asked for something that cannot be; the text says what to do instead."""


@contextmanager
def reported(*, debug: bool) -> Iterator[None]:
    """Turn what goes wrong inside into a message on stderr and an exit code.

    Args:
        debug: Print tracebacks too.

    Raises:
        typer.Exit: With the code, if something went wrong.
    """
    try:
        yield
    except UserError as mistake:
        tell(str(mistake))
        if debug and mistake.__cause__ is not None:
            print_traceback(mistake.__cause__)
        raise typer.Exit(ExitCode.MISTAKE) from None
    except KeyboardInterrupt:
        tell("Cancelled", kind="")
        raise typer.Exit(ExitCode.CANCELLED) from None
    except BrokenPipeError:
        _forget_stdout()
        raise typer.Exit(ExitCode.NO_READER) from None
    except typer.Exit:
        raise
    except Exception as error:
        tell_failure(error, debug=debug)
        try:
            sys.stdout.flush()
        except OSError:  # it would fail once again at the end
            _forget_stdout()
        raise typer.Exit(ExitCode.FAILED) from None


def tell(message: str, *, kind: str = "Error") -> None:
    """Write a message to stderr, on a line of its own.

    Args:
        message: What to say.
        kind: What sort of message: a key of :data:`STYLES`, or nothing.
    """
    from agent_brain.cli.screen import Screen

    screen = Screen(sys.stderr)
    if kind:
        screen.write(f"{kind}: ", STYLES[kind])
    screen.write(message)
    screen.end_line()


def tell_failure(error: Exception, *, debug: bool) -> None:
    """Say on stderr why a run failed, and how to learn more."""
    from agent_brain.errors import AgentBrainError

    expected = isinstance(error, AgentBrainError)
    lines = [str(error) if expected else f"{type(error).__name__}: {error}"]
    refused = machine_refused(error)
    if refused:
        expected, lines = True, [refused]
    lines += getattr(error, "__notes__", [])
    lines += _hints(error)
    if not expected and not debug:
        lines.append("This was not foreseen. With --debug you see the traceback")
    tell("\n  ".join(lines))
    if debug:
        print_traceback(error)


def machine_refused(error: BaseException | None) -> str:
    """What the operating system refused, in words; empty if it is not that.

    An error that wraps another one, as event loops and servers do, is looked into.
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in _MACHINE:
            where = f"{error.filename!r}: " if error.filename is not None else ""
            return f"{where}{_MACHINE[error.errno]} ({error.strerror})"
        error = error.__cause__
    return ""


def print_traceback(error: BaseException) -> None:
    """Write the traceback of an error to stderr."""
    from agent_brain.cli.screen import Screen

    Screen(sys.stderr).write("".join(traceback.format_exception(error)))


def _hints(error: Exception) -> Iterator[str]:
    from agent_brain.errors import LLMAuthenticationError, LLMBadRequestError

    if isinstance(error, LLMAuthenticationError):
        variable = f"{(error.provider or 'provider').upper()}_API_KEY"
        if os.environ.get(variable):
            yield f"{variable} is set, but was not accepted"
        else:
            yield f"Put the key into the environment: export {variable}=…"
            yield "The built-in demo model needs none: --model demo"
    elif isinstance(error, LLMBadRequestError) and "/" not in (error.model or "/"):
        yield "Names of models begin with who serves them, such as openai/gpt-4.1-mini"


def _forget_stdout() -> None:
    """Nobody reads any more: keep Python from failing once again when it flushes at the end."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
