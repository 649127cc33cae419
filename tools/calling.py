"""Run one tool call: whatever happens becomes an outcome that a model can read."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import NamedTuple

import anyio

from agent_brain.common.aio import is_stray_cancellation
from agent_brain.common.errors import FinalError
from agent_brain.common.secrets import hide_in_result
from agent_brain.common.text import shorten, to_text
from agent_brain.tools.action import DEEPEST, Action, Media, ToolResult
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import ToolContext, current_call, enter_call, leave_call
from agent_brain.tools.errors import InputNeeded, SleepNeeded, ToolArgumentsError, ToolError
from agent_brain.tools.stubborn import ended_when_cancelled


class Outcome(NamedTuple):
    """The result of a tool call.

    Attributes:
        content: The text for the model.
        is_error: Whether the call failed.
        exception: What was raised, if anything: the model reads it, and it is never swallowed.
        full: The whole text, if ``content`` was shortened.
        media: Pictures and other files that belong to the result.
    """

    content: str
    is_error: bool = False
    exception: Exception | None = None
    full: str | None = None
    media: tuple[Media, ...] = ()


async def call_tool(
    action: Action,
    tools: Mapping[str, BaseTool],
    context: ToolContext | None = None,
    *,
    dry_run: bool = False,
) -> Outcome:
    """Run ``action`` with the tool of its name. Never raises for what a model or a tool did wrong.

    An unknown tool, invalid arguments, an exception, an attempt to exit the program and a timeout
    all become an outcome with ``is_error``. Only cancellation, Ctrl-C and errors that end the run,
    such as those of a journal, are raised.

    Args:
        action: The call.
        tools: The tools by name.
        context: The context to pass to the tool.
        dry_run: Check the call without running it.
    """
    tool = tools.get(action.name)
    if tool is None or action.unparsed is not None or dry_run:
        return _without_running(action, tool, tools)
    if context is None:
        outer = current_call()  # what a call of a tool itself reports is progress of its own call
        context = ToolContext(action, on_progress=None if outer is None else outer.on_progress)
    token = enter_call(context)
    try:
        if tool.limiter is None and tool.timeout is None:
            result = await ended_when_cancelled(tool.invoke(action.args), f"tool {action.name!r}")
        else:
            async with tool.limiter or nullcontext():  # the timeout begins after the wait
                result = await _invoke_in_time(tool, action)
        if context.needed is not None:  # the tool has caught it
            raise context.needed
        return fit_result(result, tool.max_result_tokens)
    except FinalError:  # not the tool's
        raise
    except Exception as error:
        return _failed(context.needed or error, tool, action.name)
    except BaseException as error:
        why = _exit_of_tool(error, action.name)
        if why is None:
            raise
        return fit_result(str(why), None, why)
    finally:
        leave_call(token)


def fit_result(
    result: object,
    max_tokens: int | None,
    error: Exception | None = None,
    *,
    is_error: bool = False,
) -> Outcome:
    """Return the outcome of a call: without secrets (:func:`hide_in_result`), of limited length."""
    is_error = is_error or error is not None
    media: tuple[Media, ...] = ()
    if isinstance(result, ToolResult):
        media, result = result.media, result.content
    text = hide_in_result(to_text(result), is_error=is_error)
    if max_tokens is None:
        return Outcome(text, is_error, error, None, media)
    shown = shorten(text, max_tokens)
    return Outcome(shown, is_error, error, None if shown is text else text, media)


async def _invoke_in_time(tool: BaseTool, action: Action) -> object:
    with anyio.move_on_after(tool.timeout) as scope:
        return await ended_when_cancelled(tool.invoke(action.args), f"tool {action.name!r}")
    if scope.cancelled_caught:
        raise ToolError(f"Tool {tool.name!r} took longer than {tool.timeout:g} s and was stopped")
    raise AssertionError("unreachable: the scope was left without a result or a cancellation")


def _failed(error: Exception, tool: BaseTool, name: str) -> Outcome:
    if isinstance(error, InputNeeded):
        text = f"{name!r} has to ask a person, and nobody can be asked here"
        return Outcome(text, is_error=True, exception=error)
    if isinstance(error, SleepNeeded):
        text = f"{name!r} has to {error}, and the run cannot wait here"
        return Outcome(text, is_error=True, exception=error)
    text = _words_of(error)
    if not isinstance(error, ToolError):
        text = f"Tool {name!r} raised {text}"
    return fit_result(
        text or f"Tool {name!r} failed without a reason", tool.max_result_tokens, error
    )


def _words_of(error: Exception) -> str:
    """Return what an error says; a group is told by its members."""
    if isinstance(error, ExceptionGroup):
        return "; ".join(map(_words_of, error.exceptions))
    try:
        text = str(error)
    except Exception:  # its own __str__ is broken
        text = "(no readable message)"
    return text if isinstance(error, ToolError) else f"{type(error).__name__}: {text}"


def _exit_of_tool(error: BaseException, name: str) -> ToolError | None:
    """Return the error for what a tool must not raise; None if the run itself is ended by it."""
    if isinstance(error, SystemExit):  # a command's main() must not end the agent's program
        return ToolError(f"Tool {name!r} tried to exit the program with {error.code!r}")
    if is_stray_cancellation(error):
        return ToolError(f"Tool {name!r} failed: something that it awaited was cancelled")
    return None


def _without_running(
    action: Action, tool: BaseTool | None, tools: Mapping[str, BaseTool]
) -> Outcome:
    """Return the outcome of a call that cannot run, or of a dry run."""
    if tool is None:
        return Outcome(_unknown(action.name, tools), is_error=True)
    if action.unparsed is not None and not action.unparsed.strip():
        return Outcome(
            f"The arguments of {action.name!r} did not arrive, so it was not run. Make the call "
            "again, with {} if it has none",
            is_error=True,
        )
    if action.unparsed is not None:
        return Outcome(
            f"The arguments of {action.name!r} were not a JSON object, or nested more than "
            f"{DEEPEST} deep, so it was not run. You wrote: {shorten(action.unparsed, 200)}",
            is_error=True,
        )
    try:
        tool.validate(action.args)
    except ToolArgumentsError as error:
        return Outcome(str(error), is_error=True, exception=error)
    return Outcome(f"Dry run: the call of {action.name!r} is valid and was not executed.")


def _unknown(name: str, tools: Mapping[str, BaseTool]) -> str:
    from difflib import get_close_matches

    if not tools:
        return f"There is no tool {name!r}, and no other tool either: answer without tools."
    near = get_close_matches(name, tools, n=3)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"There is no tool {name!r}. {hint}Available tools: {', '.join(sorted(tools))}."


def is_valid(action: Action, tool: BaseTool) -> bool:
    """Return whether the arguments of a call can be read and fit the tool."""
    if action.unparsed is not None:
        return False
    try:
        tool.validate(action.args)
    except ToolArgumentsError:
        return False
    return True
