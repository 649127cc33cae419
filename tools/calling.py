"""Run one action: whatever happens becomes an outcome that a model can read."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass

import anyio

from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolError
from agent_brain.tools.text import shorten, to_text


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a call.

    Attributes:
        content: What the model reads.
        is_error: The call did not do what was asked.
        exception: What was raised, if anything: an error is told to the model, never swallowed.
    """

    content: str
    is_error: bool = False
    exception: Exception | None = None


async def call_tool(action: Action, tools: Mapping[str, BaseTool]) -> Outcome:
    """Run ``action`` with the tool of its name; never raises for what a model or a tool did wrong.

    An unknown tool, arguments that do not fit, an exception, an attempt to exit the program and a
    timeout all become an outcome with ``is_error``. Only cancellation and Ctrl-C pass through.
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
    try:
        if tool.timeout is None:
            result = await tool.invoke(action.args)
        else:
            result = await _invoke_in_time(tool, action, tool.timeout)
        return Outcome(_fit(result, tool.max_result_tokens))
    except ToolError as error:
        text = str(error) or f"Tool {action.name!r} failed and gave no reason"
        return Outcome(_fit(text, tool.max_result_tokens), is_error=True, exception=error)
    except Exception as error:
        text = f"Tool {action.name!r} raised {type(error).__name__}: {_words_of(error)}"
        return Outcome(_fit(text, tool.max_result_tokens), is_error=True, exception=error)
    except SystemExit as error:  # a command's main() must not end the program that runs the agent
        text = f"Tool {action.name!r} tried to exit the program with {error.code!r}"
        return Outcome(text, is_error=True, exception=ToolError(text))


async def _invoke_in_time(tool: BaseTool, action: Action, timeout: float) -> object:
    with anyio.move_on_after(timeout) as scope:
        return await tool.invoke(action.args)
    if scope.cancelled_caught:
        raise ToolError(f"Tool {tool.name!r} took longer than {timeout:g} s and was stopped")
    raise AssertionError("unreachable: the scope was left without a result or a cancellation")


def _words_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # its own __str__ is broken
        return "(no readable message)"


def _fit(result: object, max_tokens: int | None) -> str:
    text = to_text(result)
    return text if max_tokens is None else shorten(text, max_tokens)


def _unknown(name: str, tools: Mapping[str, BaseTool]) -> str:
    if not tools:
        return f"There is no tool {name!r}, and no other tool either: answer without tools."
    near = difflib.get_close_matches(name, tools, n=3)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    return f"There is no tool {name!r}. {hint}Available tools: {', '.join(sorted(tools))}."
