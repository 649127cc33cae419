"""Counts the tokens of messages, shortens groups of them, and reads limits of tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import anyio.to_thread
from pydantic import JsonValue

from agent_brain.common.text import count_tokens, shorten, to_compact_json
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError
from agent_brain.memories.message import Message, Role
from agent_brain.memories.store.checks import share, whole_number
from agent_brain.tools.base import BaseTool

SHOWN = "shown"  # the key of a value's text that a model sees

Counter: TypeAlias = Callable[[str], int]

MESSAGE_TOKENS = 4  # of what chat formats add to the text of a message
ATTACHMENT_TOKENS = 800  # a medium-sized image; providers differ by a factor of three
LEAST_TOKENS = 24  # of a text that is shortened: head, marker and tail


def message_tokens(message: Message, counter: Counter) -> int:
    """Return the tokens of a message: its text, calls and attachments, and what frames them."""
    tokens = MESSAGE_TOKENS + counter(message.content)
    for call in message.tool_calls:
        tokens += MESSAGE_TOKENS + counter(call.name) + counter(to_compact_json(call.args))
    return tokens + ATTACHMENT_TOKENS * len(message.attachments)


def request_tokens(messages: Iterable[Message], tools: Iterable[BaseTool]) -> int:
    """Estimate the tokens that a model reads: messages, and tools that it is offered."""
    read = sum(message_tokens(message, count_tokens) for message in messages)
    return read + sum(count_tokens(to_compact_json(tool.to_dict())) for tool in tools)


def value_tokens(values: Mapping[str, JsonValue], counter: Counter) -> int:
    """Return the tokens of values that are shown beside the messages, such as a to-do list.

    They are dicts with a text under ``"shown"``.
    """
    return sum(MESSAGE_TOKENS + counter(text) for text in shown_texts(values.values()))


def shown_texts(values: Iterable[JsonValue]) -> list[str]:
    """Return the texts of values that are shown beside the messages."""
    texts = [value.get(SHOWN) for value in values if isinstance(value, dict)]
    return [text for text in texts if isinstance(text, str)]


def fit_group(messages: Sequence[Message], budget: int, counter: Counter) -> list[Message]:
    """Shorten texts until the group fits: tool results first, then the other messages.

    The longest texts lose the most. What cannot be shortened (calls, attachments, pinned messages)
    may still exceed the budget.

    Returns:
        The shortened messages, with their IDs unchanged.
    """
    texts = {message.id: counter(message.content) for message in messages}
    rest = sum(message_tokens(m, counter) for m in messages) - sum(texts.values())
    shortened: list[Message] = []
    results = [m for m in messages if m.role is Role.TOOL and not m.pinned]
    others = [m for m in messages if m.role is not Role.TOOL and not m.pinned]
    for candidates in (results, others):
        if rest + sum(texts.values()) <= budget:
            break
        fixed = rest + sum(texts.values()) - sum(texts[m.id] for m in candidates)
        cap = max(_level([texts[m.id] for m in candidates], budget - fixed), LEAST_TOKENS)
        for message in candidates:
            if texts[message.id] > cap:
                content = cut(message.content, cap, counter)
                texts[message.id] = counter(content)
                shortened.append(message.model_copy(update={"content": content}))
    return shortened


def cut(text: str, max_tokens: int, counter: Counter) -> str:
    """Return head, marker and tail of ``text``, at most ``max_tokens`` tokens by ``counter``."""
    estimated = max_tokens
    short = shorten(text, estimated)
    while counter(short) > max_tokens and estimated > 1:
        estimated = max(1, min(estimated - 1, estimated * max_tokens // counter(short)))
        short = shorten(text, estimated)
    return short


def _level(amounts: Sequence[int], total: int) -> int:
    """Return the cap for every amount that makes their sum at most ``total``."""
    left = total
    ordered = sorted(amounts)
    for index, amount in enumerate(ordered):
        share = left // (len(ordered) - index)
        if amount > share:
            return max(share, 0)
        left -= amount
    return ordered[-1] if ordered else 0


@dataclass(frozen=True, slots=True)
class WindowShare:
    """A share of the context window of a model.

    Attributes:
        share: More than 0, at most 1.
        window: How many tokens the model can read, or the name of a LiteLLM model.
    """

    share: float
    window: int | str

    @classmethod
    def of(
        cls, max_share: float | None, context_window: int | str | None, max_tokens: int | None
    ) -> WindowShare | None:
        """Return the options of a memory as a share, or None if none are given.

        Raises:
            MemoryDefinitionError: They do not go together.
        """
        if max_share is None and context_window is None:
            return None
        if max_share is None or context_window is None or max_tokens is not None:
            raise MemoryDefinitionError(
                "Give max_tokens=, or both max_share= and context_window=: the share, and how many "
                "tokens the model can read (a number, or the name of a LiteLLM model)"
            )
        share("max_share", max_share)
        if not isinstance(context_window, str):
            whole_number("context_window", context_window)
        return cls(max_share, context_window)

    @property
    def tokens(self) -> int | None:
        """The limit; None until the model has been looked up."""
        return None if isinstance(self.window, str) else self._of(self.window)

    def _of(self, window: int) -> int:
        return max(1, int(window * self.share))

    async def look_up(self) -> int:
        """Return the limit from litellm's table of models, without network access.

        Raises:
            MemoryUseError: The table does not have the model, or not its context window.
        """
        if not isinstance(self.window, str):
            return self._of(self.window)
        from agent_brain.common.litellm import model_entry

        entry = await anyio.to_thread.run_sync(model_entry, self.window)
        window = (entry or {}).get("max_input_tokens")
        if not isinstance(window, int):
            raise MemoryUseError(
                f"litellm's table does not say how many tokens {self.window!r} can read: give "
                "context_window= as a number"
            )
        return self._of(window)
