"""From the chunks of a litellm stream to text, thoughts and whole actions. Pure: no I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agent_brain.states.llm import Thought
from agent_brain.tools.action import Action
from agent_brain.tools.text import clean


class ChunkReader:
    """Reads the chunks of one answer.

    Attributes:
        usage: What the provider reported last, as litellm gives it; None before that.
    """

    def __init__(self) -> None:
        self.usage: Any = None
        self._text = _Text()
        self._thought = _Text()
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}

    def read(self, chunk: Any) -> Iterator[str]:
        """The text and the thoughts in a chunk; fragments of calls are kept."""
        self.usage = getattr(chunk, "usage", None) or self.usage
        for choice in chunk.choices[:1]:
            thought = self._thought.add(getattr(choice.delta, "reasoning_content", None) or "")
            if thought:
                yield Thought(thought)
            text = self._text.add(choice.delta.content or "")
            if text:
                yield text
            for delta in choice.delta.tool_calls or ():
                self._add(delta)

    def finish(self) -> Iterator[str | Action]:
        """What was kept: at the end of the answer, every call is complete."""
        if thought := self._thought.flush():
            yield Thought(thought)
        if text := self._text.flush():
            yield text
        taken: set[str] = set()
        for call in self._calls:
            action = _action(call, taken)
            taken.add(action.id)
            yield action

    def _add(self, delta: Any) -> None:
        name, arguments = delta.function.name or "", delta.function.arguments or ""
        call = self._open.get(delta.index)
        # some providers number all their calls 0: another id with a name is another call
        if call is None or (name and delta.id and delta.id != call.id):
            call = self._open[delta.index] = _Call(delta.id or "")
            self._calls.append(call)
        call.name = call.name or name
        call.arguments.append(arguments)


@dataclass(slots=True)
class _Call:
    id: str
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class _Text:
    """Text in pieces, where a pair of surrogates may be split between two of them."""

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def add(self, piece: str) -> str:
        if not piece:
            return ""
        piece, self._half = self._half + piece, ""
        if "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return clean(piece)

    def flush(self) -> str:
        half, self._half = self._half, ""
        return clean(half)


def _action(call: _Call, taken: set[str]) -> Action:
    raw = "".join(call.arguments)
    fields: dict[str, Any] = {"name": call.name}
    call_id = clean(call.id)
    if call_id and call_id not in taken:
        fields["id"] = call_id
    try:
        return Action(args=_arguments(raw), **fields)
    except (ValueError, RecursionError):
        return Action(unparsed=raw, **fields)


def _arguments(raw: str) -> dict[str, Any]:
    """The arguments that ``raw`` holds.

    Raises:
        ValueError: It is not a JSON object, or one with ``NaN`` or ``Infinity`` in it.
        RecursionError: It is nested too deeply.
    """
    if not raw.strip():
        return {}
    value = json.loads(raw, parse_constant=_refuse)
    if not isinstance(value, dict):
        raise ValueError(f"not a JSON object but {type(value).__name__}")
    return value


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")
