"""Writes a running summary, with a model or without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import anyio.lowlevel
from pydantic import BaseModel

from agent_brain.memories.message import Message, Role, text_for_model
from agent_brain.memories.views.tokens import Counter, cut
from agent_brain.tools.json_values import json_values
from agent_brain.tools.text import shorten

Summarize: TypeAlias = Callable[[str, list[Message]], Awaitable[str | BaseModel]]

LEAST_TOKENS = 8  # of a text in a form, however much is cut
LINE_TOKENS = 40
OUTLINE_TOKENS = 1000


class SummaryWriter:
    """Asks a summariser, and makes what it returns fit.

    Args:
        summarize: An async function of the summary so far and the messages to add to it.
        form: A pydantic model of the summary; None for any text.
        counter: Counts the tokens of a text.
    """

    def __init__(
        self,
        summarize: Summarize,
        form: type[BaseModel] | None,
        counter: Counter,
    ) -> None:
        self.form = form
        self._summarize = summarize
        self._counter = counter

    async def write(
        self, summary: str, level: int, portions: Iterable[list[Message]], max_tokens: int
    ) -> tuple[str, int]:
        """Return the new summary and its level.

        Args:
            summary: The summary so far; empty if there is none.
            level: How often it was summarised itself.
            portions: The messages to add to it.
            max_tokens: A longer summary is summarised itself, and then cut.

        Raises:
            ValueError: The summariser returned nothing, or something that does not fit the form.
            Exception: Whatever the summariser raises.
        """
        for portion in portions:
            await anyio.lowlevel.checkpoint()  # there may be thousands, and `outline` never waits
            summary = await self._ask(summary, portion)
        if self._counter(summary) > max_tokens:
            summary, level = await self._ask("", [Message.system(summary)]), level + 1
            summary = self._cut(summary, max_tokens)
        return summary, level

    async def _ask(self, summary: str, messages: list[Message]) -> str:
        written = await self._summarize(summary, messages)
        if self.form is not None:
            return _read(self.form, written).model_dump_json()
        text = written.model_dump_json() if isinstance(written, BaseModel) else written
        if not text.strip():
            raise ValueError("the summariser returned nothing")
        return text

    def _cut(self, summary: str, max_tokens: int) -> str:
        if self.form is None:
            return cut(summary, max_tokens, self._counter)
        data = self.form.model_validate_json(summary).model_dump(mode="json")
        most = max_tokens
        while self._counter(summary) > max_tokens and most >= LEAST_TOKENS:
            most //= 2
            shorter = self._shortened(data, most)
            summary = self.form.model_validate(shorter).model_dump_json()
        return summary

    def _shortened(self, value: Any, most: int) -> Any:
        """Return ``value`` with each text cut to ``most`` tokens."""
        if isinstance(value, str):
            return value if self._counter(value) <= most else cut(value, most, self._counter)
        if isinstance(value, list):
            return [self._shortened(item, most) for item in value]
        if isinstance(value, dict):
            return {key: self._shortened(item, most) for key, item in value.items()}
        return value


def _read(form: type[BaseModel], written: str | BaseModel) -> BaseModel:
    if isinstance(written, BaseModel):
        return form.model_validate(written.model_dump())
    values = list(json_values(written))
    return form.model_validate(values[-1] if values else None)


async def outline(previous_summary: str, messages: Sequence[Message]) -> str:
    """Return ``previous_summary`` with a line for each message, long ones shortened in the middle.

    The default summariser of :class:`SummaryMemory`; a model writes better summaries.
    """
    lines = [previous_summary] if previous_summary else []
    for message in messages:
        text = " ".join(text_for_model(message).split())
        calls = ", ".join(call.name for call in message.tool_calls)
        if calls:
            text = f"{text} (called {calls})".strip()
        if text:
            lines.append(f"{_speaker(message)}: {shorten(text, LINE_TOKENS)}")
    return shorten("\n".join(lines), OUTLINE_TOKENS)


def _speaker(message: Message) -> str:
    if message.role is Role.TOOL:
        return f"{message.name or 'tool'}{' failed' if message.is_error else ''}"
    return message.name or message.role.value
