"""A stream that people read: coloured where it can be, plain text elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console
from rich.style import Style

from agent_brain.cli.texts import neutral

LABEL = 12  # columns that a label takes, with the space around it
MARGIN = " " * LABEL


class Screen:
    """Writes text of others, piece by piece, as nothing but text.

    Styles are left out where the stream is not a terminal, with ``NO_COLOR``, and on terminals that
    know none; ``FORCE_COLOR`` brings them back.

    Args:
        stream: Where to write; every piece is flushed.
    """

    def __init__(self, stream: TextIO) -> None:
        console = Console(file=stream)
        plain = console.no_color or console.is_dumb_terminal or console.legacy_windows
        self.styled = console.is_terminal and not plain
        self._stream = stream
        self._fresh = True  # at the beginning of a line
        self._status = False  # a status line is shown

    def write(self, text: str, style: str = "") -> None:
        """Write a piece; the line goes on."""
        text = neutral(text)
        if not text:
            return
        self.end_status()
        self._fresh = text.endswith("\n")
        if self.styled and style:
            text = Style.parse(style).render(text)
        self._stream.write(text)
        self._stream.flush()

    def line(self, text: str = "", style: str = "") -> None:
        """Write a line of its own."""
        self.end_line()
        self.write(text, style)
        self.write("\n")

    def labelled(self, label: str, text: str, style: str = "") -> None:
        """Write ``text`` beside its label, all its lines in one column."""
        self.label(label, style)
        self.write(text.replace("\n", f"\n{MARGIN}"), style)
        self.end_line()

    def label(self, label: str, style: str = "") -> None:
        """Begin a line with a label."""
        self.end_line()
        self.write(f"  {label}".ljust(LABEL), style)

    def status(self, text: str) -> None:
        """Show a line until something else is written; only where it can be taken away again."""
        if self.styled and self._fresh:
            self.end_status()
            self._stream.write(Style.parse("dim").render(neutral(text).replace("\n", " ")))
            self._stream.flush()
            self._status = True

    def end_status(self) -> None:
        """Take the status line away, if there is one."""
        if self._status:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._status = False

    def end_line(self) -> None:
        """End the line, if one has begun."""
        if not self._fresh:
            self.write("\n")


@contextmanager
def waiting(for_what: str) -> Iterator[None]:
    """Show on a terminal that something takes a moment; nothing of it stays."""
    if not Screen(sys.stderr).styled:
        yield
        return
    with Console(stderr=True).status(for_what):
        yield
