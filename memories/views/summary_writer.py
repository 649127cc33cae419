"""Writes a running summary, with a model or without one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, TypeAlias

import anyio.lowlevel
from pydantic import BaseModel

from agent_brain.common.aio import maybe_await
from agent_brain.common.json_values import json_values
from agent_brain.common.secrets import get_logger
from agent_brain.common.text import as_data, count_tokens, one_line, shorten
from agent_brain.common.values import misnamed_fields
from agent_brain.memories.errors import MemoryDefinitionError
from agent_brain.memories.message import Message, Role, text_for_model
from agent_brain.memories.recall.results import is_of_others
from agent_brain.memories.views.tokens import Counter, cut

logger = get_logger(__name__)

Summarize: TypeAlias = Callable[[str, list[Message]], str | BaseModel | Awaitable[str | BaseModel]]

LEAST_TOKENS = 8  # of a text in a form, however much is cut
LINE_TOKENS = 40
OUTLINE_TOKENS = 1000
ITSELF = "summary"  # ``cause_by`` of a summary that is to be summarised
LEFT_OUT = "… ({} lines left out)"


class SummaryWriter:
    """Asks a summariser, and makes what it returns fit.

    Args:
        summarize: A function, sync or async, of the summary so far and the messages to add to it.
        form: A pydantic model of the summary; None for any text.
        counter: Counts the tokens of a text.

    Raises:
        MemoryDefinitionError: ``summarize`` is not a function.
    """

    def __init__(
        self,
        summarize: Summarize,
        form: type[BaseModel] | None,
        counter: Counter,
    ) -> None:
        if not callable(summarize):
            raise MemoryDefinitionError(
                f"summarize={summarize!r} is not a function: wrap a model in model_summarizer(…) "
                "(from agent_brain.states.summarizing), or leave it out"
            )
        self.form = form
        self._summarize = summarize
        self._counter = counter

    async def write(
        self, summary: str, level: int, portions: Iterable[list[Message]], max_tokens: int
    ) -> tuple[str, int, int]:
        """Return the new summary, its level, and how many portions it has.

        If the summariser fails, which is logged, it has those before; if it cannot shorten the
        summary, none.

        Args:
            summary: The summary so far; empty if there is none.
            level: How often it was summarised itself.
            portions: The messages to add to it.
            max_tokens: A longer summary is summarised itself, and then cut.
        """
        done = 0
        try:
            for portion in portions:
                await anyio.lowlevel.checkpoint()  # they may be many, and `outline` never waits
                summary = await self._ask(summary, portion)
                done += 1
        except Exception:
            logger.warning(
                "The summariser failed; a window is shown until it is tried again", exc_info=True
            )
        if done and self._counter(summary) > max_tokens:
            try:
                shorter = await self._ask("", [Message.system(summary, cause_by=ITSELF)])
            except Exception:
                logger.warning("The summariser failed to shorten a summary", exc_info=True)
                return summary, level, 0
            return self._cut(shorter, max_tokens), level + 1, done
        return summary, level, done

    async def _ask(self, summary: str, messages: list[Message]) -> str:
        """Return the summary with these messages.

        Raises:
            ValueError: The summariser returned nothing, or what is not of the form.
            Exception: Whatever the summariser raises.
        """
        written: str | BaseModel = await maybe_await(self._summarize(summary, messages))
        if self.form is not None:
            return read_form(self.form, written).model_dump_json()
        text = written.model_dump_json() if isinstance(written, BaseModel) else written
        if not text.strip():
            raise ValueError("the summariser returned nothing")
        return text

    def _cut(self, summary: str, max_tokens: int) -> str:
        if self.form is None:
            return cut_lines(summary, max_tokens, self._counter)
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


def read_form(form: type[BaseModel], written: str | BaseModel) -> BaseModel:
    """Return a summary as an instance of its form.

    Args:
        form: The form.
        written: JSON, or an instance.

    Raises:
        ValueError: It does not fit, has none of the form's fields, or others in place of them.
    """
    if isinstance(written, BaseModel):
        data: Any = written.model_dump()
    else:
        values = list(json_values(written))
        data = values[-1] if values else None
    read = form.model_validate(data)
    if form.model_fields and not read.model_fields_set:
        wanted = ", ".join(map(repr, form.model_fields))
        raise ValueError(f"it has none of the fields of the form: {wanted}")
    if problem := next(misnamed_fields(read, data), None):
        raise ValueError(problem)
    return read


async def outline(previous_summary: str, messages: Sequence[Message]) -> str:
    """Return ``previous_summary`` with a line for each message, long ones shortened in the middle.

    The default summariser of :class:`SummaryMemory`; a model writes better summaries.
    """
    lines = [previous_summary] if previous_summary else []
    for message in messages:
        if message.cause_by == ITSELF:
            lines.append(message.content)
            continue
        text = one_line(text_for_model(message))
        calls = ", ".join(call.name for call in message.tool_calls)
        if calls:
            text = f"{text} (called {calls})".strip()
        if text:
            short = shorten(text, LINE_TOKENS)
            lines.append(
                f"{_speaker(message)}: {as_data(short) if is_of_others(message) else short}"
            )
    return cut_lines("\n".join(lines), OUTLINE_TOKENS, count_tokens)


def cut_lines(text: str, max_tokens: int, counter: Counter) -> str:
    """Return the first and the last lines of ``text``, at most ``max_tokens`` tokens.

    Whole lines are left out, so that a text in ``<data>`` stays in it; a text of one or two long
    lines is shortened within these.
    """
    if counter(text) <= max_tokens:
        return text
    lines = text.split("\n")
    room = max_tokens - counter(LEFT_OUT.format(len(lines))) - 1
    first, head = _fitting(lines, room * 2 // 3, counter)
    last, _ = _fitting(lines[:first:-1] if first else lines[::-1], room - head, counter)
    kept = [*lines[:first], LEFT_OUT.format(len(lines) - first - last)]
    short = "\n".join([*kept, *lines[len(lines) - last :]] if last else kept)
    if not first + last or counter(short) > max_tokens:
        return cut(text, max_tokens, counter)
    return short


def _fitting(lines: Sequence[str], room: int, counter: Counter) -> tuple[int, int]:
    """Return how many of the first lines fit, and their tokens."""
    used = 0
    for index, line in enumerate(lines):
        size = counter(line) + 1
        if used + size > room:
            return index, used
        used += size
    return len(lines), used


def _speaker(message: Message) -> str:
    if message.role is Role.TOOL:
        return f"{one_line(message.name or 'tool')}{' failed' if message.is_error else ''}"
    return one_line(message.name or message.role.value)
