"""Separate the thoughts at the beginning of a response from its text.

Servers that do not separate them themselves send what a model thinks as ``<think>…</think>`` before
its answer. Anywhere else such a tag is text about the tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from agent_brain.states.models.llm import Thought

_OPEN = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
_CLOSE = re.compile(r"</think(?:ing)?>", re.IGNORECASE)
_TAGS = ("<think>", "<thinking>"), ("</think>", "</thinking>")


class ThinkTags:
    """Splits the beginning of a streamed text, even if a chunk ends inside a tag.

    Once it has yielded text, the rest of the response is text and need not pass through here.
    """

    __slots__ = ("_held", "_inside", "_open", "_text", "_trim")

    def __init__(self) -> None:
        self._held = ""
        self._inside = self._text = False
        self._open: list[str] = []  # the thought that is not closed yet, with its tag
        self._trim = False  # white space after a thought belongs to it

    def split(self, piece: str) -> Iterator[str]:
        """Yield the text and the thoughts (:class:`Thought`) in the next piece of text."""
        text, self._held = self._held + piece, ""
        while text and not self._text:
            found = _CLOSE.search(text) if self._inside else _OPEN.match(text)
            if found is None:
                text, self._held = _without_partial_tag(text, inside=self._inside)
                if self._inside:
                    yield from self._thought(text)
                    return
                self._text = bool(text)
                break
            if self._inside:
                yield from self._thought(text[: found.start()])
                self._open.clear()
                self._trim = True
            else:
                self._open.append(found[0])
            self._inside = not self._inside
            text = text[found.end() :]
        if text := self._trimmed(text):
            yield text

    def flush(self, *, cut: bool = False) -> Iterator[str]:
        """Yield what was held back, and a thought that was never closed again, as text.

        Args:
            cut: The response was cut off, so that an open thought is one.
        """
        held, self._held = self._held, ""
        if not self._inside:
            yield from filter(None, [self._trimmed(held)])
        elif cut:
            yield from self._thought(held)
        else:
            yield "".join(self._open) + held

    def _thought(self, text: str) -> Iterator[Thought]:
        if text:
            self._open.append(text)
            yield Thought(text)

    def _trimmed(self, text: str) -> str:
        if self._trim:
            text = text.lstrip()
            self._trim = not text
        return text


def _without_partial_tag(text: str, *, inside: bool) -> tuple[str, str]:
    """Return ``text``, and the end of it that may be the beginning of a tag."""
    at = text.rfind("<") if inside else 0
    if at >= 0 and any(tag.startswith(text[at:].lstrip().lower()) for tag in _TAGS[inside]):
        return text[:at], text[at:]
    return text, ""
