"""A tool with which an agent searches its own memory."""

from __future__ import annotations

import re
from typing import Any, Literal

from agent_brain.common.text import as_data, indented, one_line
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import ToolContext
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

SHOWN = 1_000  # characters of a message


def memory_search_tool(
    memory: Any = None,
    *,
    name: str = "search_memory",
    scope: Literal["session", "tenant"] = "session",
    tool_results: bool = False,
) -> BaseTool:
    """Return a tool that searches a memory for what was said or done before.

    A :class:`VectorMemory` ranks by meaning, other memories by the words in common::

        Brain(memory="vector", tools=[memory_search_tool()])

    Args:
        memory: The memory to search; None for the one of the run that calls.
        name: What the model calls the tool.
        scope: ``"tenant"`` searches all sessions of the memory's tenant, see
            :meth:`VectorMemory.recall`.
        tool_results: With ``"tenant"``, find results of tools in other sessions too.

    Raises:
        ToolDefinitionError: A name that no model API accepts.
    """

    @tool(name=name, idempotent=True, max_result_tokens=2_000)
    async def search_memory(context: ToolContext, query: str, limit: int = 5) -> str:
        """Search your own memory for what was said or done before, also long ago.

        Args:
            context: The call.
            query: What to look for, in words.
            limit: How many memories to return, at most 20.
        """
        searched = context.memory if memory is None else memory
        if searched is None:
            raise ToolError("There is no memory to search here")
        limit = max(1, min(limit, 20))
        if hasattr(searched, "recall"):
            where = {"scope": scope, "tool_results": tool_results}  # your own may not take it
            where = {} if scope == "session" else where
            recalled = await searched.recall(query, k=limit, **where)
            found = [
                (item.message, getattr(item, "session", None), getattr(item, "passage", ""))
                for item in recalled
            ]
        elif scope == "tenant":
            raise ToolError(
                "This memory cannot search other conversations: it takes a VectorMemory"
            )
        else:
            everything = await _everything(searched)
            found = [(m, None, part) for m, part in _by_words(query, everything, limit)]
        here = None if context.memory is None else context.memory.session
        shown = [_show(m, None if place == here else place, part) for m, place, part in found]
        return "\n\n".join(shown) or "Nothing like that is remembered."

    return search_memory


async def _everything(memory: Any) -> list[Any]:
    """Return all messages but those of the call that asks."""
    asked = {action.id for action in memory.control.next_actions}
    return [
        message
        for message in await memory.dump()
        if not any(call.id in asked for call in message.tool_calls)
    ]


def _by_words(query: str, messages: list[Any], limit: int) -> list[tuple[Any, str]]:
    """Return the messages with the most words of the query, and the part that has most of them.

    Of equals, the latest is first.
    """
    wanted = set(re.findall(r"\w+", query.casefold()))

    def count(text: str) -> int:
        return len(wanted.intersection(re.findall(r"\w+", text.casefold())))

    scored = [(count(message.content), index) for index, message in enumerate(messages)]
    best = sorted((pair for pair in scored if pair[0]), reverse=True)[:limit]
    found = [messages[index] for _, index in best]
    return [(message, max(_parts(message.content), key=count)) for message in found]


def _parts(text: str) -> list[str]:
    """Return pieces of a text that overlap by half; the last one is not shorter than the others."""
    starts = [*range(0, max(len(text) - SHOWN, 0), SHOWN // 2), max(len(text) - SHOWN, 0)]
    return [text[start : start + SHOWN] for start in starts]


def _show(message: Any, conversation: str | None, part: str) -> str:
    """Return when, in which other conversation and by whom a message was said, and its text.

    Of a long one, what begins with ``part`` is shown.
    """
    where = "" if conversation is None else f", conversation {conversation!r}"
    content = message.content
    start = content.find(part) if len(content) > SHOWN else 0
    text = indented(f"… {content[start:][:SHOWN]}" if start > 0 else content[:SHOWN])
    who = one_line(message.name or message.sent_from or message.role)
    if message.role == "tool":
        who = f"result of {one_line(message.name or 'a tool')}"
    if message.role == "tool" or message.sent_from is not None:
        text = as_data(text)
    when = f"{message.created_at:%Y-%m-%d %H:%M}"
    if message.occurred_at is not None:
        when += f", happened {message.occurred_at:%Y-%m-%d %H:%M}"
    return f"{when}{where} {who}: {text}"
