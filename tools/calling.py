"""Run one action: whatever happens becomes an outcome that a model can read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import NamedTuple

import anyio

from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import ToolContext, enter_call, leave_call
from agent_brain.tools.errors import InputNeeded, ToolArgumentsError, ToolError
from agent_brain.tools.result import Media, ToolResult
from agent_brain.tools.secrets import hide_registered
from agent_brain.tools.text import shorten, to_text


class Outcome(NamedTuple):
    """What came of a call.

    Attributes:
        content: What the model reads.
        is_error: The call did not do what was asked.
        exception: What was raised, if anything: an error is told to the model, never swallowed.
        full: The whole text, if ``content`` is what was left of it.
        media: Pictures and the like that belong to it.
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
    """Run ``action`` with the tool of its name; never raises for what a model or a tool did wrong.

    An unknown tool, arguments that do not fit, an exception, an attempt to exit the program and a
    timeout all become an outcome with ``is_error``. Only cancellation and Ctrl-C pass through.

    Args:
        action: The call.
        tools: The tools by name.
        context: What the tool may know of the call.
        dry_run: Check the call, and do not run it.
    """
    tool = tools.get(action.name)
    if tool is None:
        return Outcome(_unknown(action.name, tools), is_error=True)
    if action.unparsed is not None:
        return Outcome(
            f"The arguments of {action.name!r} were not a JSON object, so it was not run. You "
            f"wrote: {shorten(action.unparsed, 200)}",
            is_error=True,
        )
    if dry_run:
        return _rehearse(action, tool)
    import asyncio  # at first use: trio does not need it, nor does an import of this library

    token = enter_call(context or ToolContext(action))
    try:
        if tool.limiter is None and tool.timeout is None:
            result = await tool.invoke(action.args)
        else:
            result = await _invoke_limited(tool, action)
        return fit_result(result, tool.max_result_tokens)
    except ToolError as error:
        text = str(error) or f"Tool {action.name!r} failed and gave no reason"
        return fit_result(text, tool.max_result_tokens, error)
    except InputNeeded as error:
        text = f"{action.name!r} would have to ask a person, and nobody can be asked here"
        return Outcome(text, is_error=True, exception=error)
    except Exception as error:
        text = f"Tool {action.name!r} raised {type(error).__name__}: {_words_of(error)}"
        return fit_result(text, tool.max_result_tokens, error)
    except asyncio.CancelledError:
        if is_being_cancelled():
            raise
        text = f"Tool {action.name!r} gave up: something that it waited for was cancelled"
        return Outcome(text, is_error=True, exception=ToolError(text))
    except SystemExit as error:  # a command's main() must not end the program that runs the agent
        text = f"Tool {action.name!r} tried to exit the program with {error.code!r}"
        return Outcome(text, is_error=True, exception=ToolError(text))
    finally:
        leave_call(token)


async def _invoke_limited(tool: BaseTool, action: Action) -> object:
    """Run the tool at its turn and in its time; waiting for the turn does not count."""
    if tool.limiter is None:
        return await _invoke_in_time(tool, action)
    async with tool.limiter:
        return await _invoke_in_time(tool, action)


async def _invoke_in_time(tool: BaseTool, action: Action) -> object:
    if tool.timeout is None:
        return await tool.invoke(action.args)
    with anyio.move_on_after(tool.timeout) as scope:
        return await tool.invoke(action.args)
    if scope.cancelled_caught:
        raise ToolError(f"Tool {tool.name!r} took longer than {tool.timeout:g} s and was stopped")
    raise AssertionError("unreachable: the scope was left without a result or a cancellation")


def _rehearse(action: Action, tool: BaseTool) -> Outcome:
    try:
        tool.validate(action.args)
    except ToolArgumentsError as error:
        return Outcome(str(error), is_error=True, exception=error)
    return Outcome(f"Dry run: the call of {action.name!r} is valid and was not executed.")


def is_being_cancelled() -> bool:
    """Return whether asyncio's CancelledError is meant for the current task.

    Code that awaits a cancelled task of its own raises it too, and nobody has cancelled the run.
    """
    import asyncio

    try:
        task = asyncio.current_task()
    except RuntimeError:  # trio, which cancels with an exception of its own
        return False
    return task is None or task.cancelling() > 0


def _words_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # its own __str__ is broken
        return "(no readable message)"


def fit_result(result: object, max_tokens: int | None, error: Exception | None = None) -> Outcome:
    """The outcome of a call: its text without configured secrets, no longer than it may be.

    Args:
        result: What the tool returned, or the words of its error.
        max_tokens: The tool's ``max_result_tokens``.
        error: What it raised.
    """
    media: tuple[Media, ...] = ()
    if isinstance(result, ToolResult):
        media, result = result.media, result.content
    text = hide_registered(to_text(result))
    if max_tokens is None:
        return Outcome(text, error is not None, error, None, media)
    shown = shorten(text, max_tokens)
    full = None if shown is text else text
    return Outcome(shown, is_error=error is not None, exception=error, full=full, media=media)


def _unknown(name: str, tools: Mapping[str, BaseTool]) -> str:
    if not tools:
        return f"There is no tool {name!r}, and no other tool either: answer without tools."
    near = difflib.get_close_matches(name, tools, n=3)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"There is no tool {name!r}. {hint}Available tools: {', '.join(sorted(tools))}."
