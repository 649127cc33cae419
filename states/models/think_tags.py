"""Separate thoughts between ``<think>`` and ``</think>`` from the text of a model. Private."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_brain.states.models.llm import Thought

_OPEN = re.compile(r"<think(?:ing)?>", re.IGNORECASE)
_CLOSE = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_TAGS = ("<think>", "<thinking>"), ("</think>", "</thinking>")
_QUOTES = "`\"'"  # a quoted tag is text about the tag


class ThinkTags:
    """Splits streamed text into text and thoughts, even if a chunk ends inside a tag.

    While :attr:`idle` is true, text without ``<`` need not pass through here.

    Attributes:
        idle: Whether no thought is open and nothing is held back.
        last: The last character of the text so far.
    """

    __slots__ = ("_held", "_inside", "_trim", "idle", "last")

    def __init__(self) -> None:
        self._held = ""
        self._inside = False
        self.last = ""
        self._trim = False  # white space after a thought belongs to it
        self.idle = True

    def split(self, piece: str) -> Iterator[str]:
        """Yield the text and the thoughts (:class:`Thought`) in the next piece of text."""
        text, self._held = self._held + piece, ""
        while text:
            found = self._find(text)
            if found is None:
                text, self._held = _without_partial_tag(text, inside=self._inside)
                yield from self._part(text)
                break
            yield from self._part(text[: found.start()])
            self._inside = not self._inside
            self._trim = not self._inside
            self.last = ">"
            text = text[found.end() :]
        self.idle = not (self._held or self._inside or self._trim)

    def flush(self) -> Iterator[str]:
        """Yield what was held back, at the end of the text."""
        held, self._held = self._held, ""
        yield from self._part(held)

    def _find(self, text: str) -> re.Match[str] | None:
        if self._inside:
            return _CLOSE.search(text)
        for found in _OPEN.finditer(text):
            before = text[found.start() - 1] if found.start() else self.last
            if not before or before not in _QUOTES:
                return found
        return None

    def _part(self, text: str) -> Iterator[str]:
        if self._trim and not self._inside:
            text = text.lstrip()
            self._trim = not text
        if text:
            self.last = text[-1]
            yield Thought(text) if self._inside else text


def _without_partial_tag(text: str, *, inside: bool) -> tuple[str, str]:
    """Return ``text``, and the end of it that may be the beginning of a tag."""
    at = text.rfind("<")
    if at >= 0 and any(tag.startswith(text[at:].lower()) for tag in _TAGS[inside]):
        return text[:at], text[at:]
    return text, ""
