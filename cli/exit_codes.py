"""Exit codes of the command, and its messages on stderr."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from typing import TYPE_CHECKING

from click.exceptions import Exit

if TYPE_CHECKING:
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


class UserError(Exception):
    """Raised for a mistake of the user; the message says what to do instead."""


@contextmanager
def exit_on_error(*, debug: bool) -> Iterator[None]:
    """Report an error on stderr and raise ``Exit`` with its exit code."""
    try:
        yield
    except UserError as error:
        notify(str(error))
        if debug and error.__cause__ is not None:
            notify("".join(traceback.format_exception(error.__cause__)), kind="")
        raise Exit(ExitCode.MISTAKE) from None
    except KeyboardInterrupt:
        notify("Cancelled", kind="")
        raise Exit(ExitCode.CANCELLED) from None
    except BrokenPipeError:
        _flush_stdout()
        raise Exit(ExitCode.NO_READER) from None
    except Exit:
        raise
    except Exception as error:
        report_failure(error, debug=debug)
        _flush_stdout()
        raise Exit(ExitCode.FAILED) from None


@contextmanager
def user_errors() -> Iterator[None]:
    """Turn this library's own errors into user errors."""
    from agent_brain.errors import AgentBrainError

    try:
        yield
    except AgentBrainError as error:
        raise UserError(str(error)) from error


def conclude(result: Result, how: str = "") -> ExitCode:
    """Return the exit code of a run, after reporting why it stopped early and how to answer."""
    from agent_brain.memories.message import CUT_REASONS

    reason = result.stop_reason
    if reason == "done":
        if where := CUT_REASONS.get(result.finish_reason or ""):
            notify(f"the answer was cut off {where}", kind="Note")
        return ExitCode.ANSWERED
    option = {"max_steps": " (--max-steps)", "timeout": " (--timeout)", "max_cost": " (--max-cost)"}
    left = "the answer is incomplete" if result.answer else "there is no answer yet"
    if result.wake_at is not None:
        left += f". Resume it at {result.wake_at:%Y-%m-%d %H:%M:%S %Z}"
    notify(f"{reason.clause}{option.get(reason, '')}; {left}{how}", kind="Stopped")
    return ExitCode.CANCELLED if reason == "cancelled" else ExitCode.STOPPED


def notify(message: str, *, kind: str = "Error") -> None:
    """Write a message on a line of its own to stderr, after its kind: a key of ``_STYLES``."""
    from agent_brain.cli.screen import Screen

    screen = Screen(sys.stderr)
    screen.write(f"{kind}: " if kind else "", _STYLES[kind])
    screen.write(message)
    screen.end_line()


def report_failure(error: Exception, *, debug: bool) -> None:
    """Write to stderr why a run failed, and how to find out more."""
    from agent_brain.errors import AgentBrainError

    system = isinstance(error, OSError) and error.strerror is not None
    expected = isinstance(error, AgentBrainError) or system
    lines = [str(error) if expected else f"{type(error).__name__}: {error}"]
    lines += getattr(error, "__notes__", [])
    lines += _hints(error)
    if not (expected or debug):
        lines.append("This error is unexpected. Use --debug to see the traceback")
    notify("\n  ".join(lines))
    if debug:
        notify("".join(traceback.format_exception(error)), kind="")


def _hints(error: Exception) -> list[str]:
    from agent_brain.errors import LLMAuthenticationError, LLMBadRequestError

    if isinstance(error, LLMAuthenticationError):
        variable = f"{(error.provider or 'provider').upper()}_API_KEY"
        if os.environ.get(variable):
            return [f"{variable} is set, but was not accepted"]
        return [f"Set the key: export {variable}=…; the built-in --model demo needs none"]
    if isinstance(error, LLMBadRequestError) and "/" not in (error.model or "/"):
        return ["Model names begin with the provider, such as openai/gpt-4.1-mini"]
    return []


def _flush_stdout() -> None:
    """Write out stdout; if that fails, keep Python from failing again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
