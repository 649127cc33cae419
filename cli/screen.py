"""A stream that people read: styled on terminals, plain text elsewhere."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, nullcontext
from typing import TextIO

from rich.console import Console
from rich.style import Style

from agent_brain.cli.sanitize import sanitize

LABEL = 12  # columns of a label, with the space around it
MARGIN = " " * LABEL


class Screen:
    """Writes sanitized text, piece by piece.

    Styles are omitted where the stream is not a terminal, with ``NO_COLOR``, and on terminals
    without styles; ``FORCE_COLOR`` enables them.
    """

    def __init__(self, stream: TextIO) -> None:
        console = Console(file=stream)
        plain = console.no_color or console.is_dumb_terminal or console.legacy_windows
        self.styled = console.is_terminal and not plain
        self._stream = stream
        self._at_line_start = True
        self._has_status = False

    def write(self, text: str, style: str = "") -> None:
        """Write a piece of a line, or of several."""
        text = sanitize(text)
        if not text:
            return
        self.end_status()
        self._at_line_start = text.endswith("\n")
        self._put(Style.parse(style).render(text) if self.styled and style else text)

    def line(self, text: str = "", style: str = "") -> None:
        """Write a line of its own."""
        self.end_line()
        self.write(text, style)
        self.write("\n")

    def labelled(self, label: str, text: str, style: str = "") -> None:
        """Write ``text`` after a label, its lines aligned in one column."""
        self.label(label, style)
        self.write(text.replace("\n", f"\n{MARGIN}"), style)
        self.end_line()

    def label(self, label: str, style: str = "") -> None:
        """Begin a line with a label."""
        self.end_line()
        self.write(f"  {label} ".ljust(LABEL), style)

    def status(self, text: str) -> None:
        """Show a line until something else is written, if the terminal can remove it again."""
        if self.styled and self._at_line_start:
            self.end_status()
            self._put(Style.parse("dim").render(sanitize(text).replace("\n", " ")))
            self._has_status = True

    def end_status(self) -> None:
        """Remove the status line, if there is one."""
        if self._has_status:
            self._put("\r\x1b[K")
            self._has_status = False

    def end_line(self) -> None:
        """End the line, if one has begun."""
        if not self._at_line_start:
            self.write("\n")

    def _put(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def busy(message: str) -> AbstractContextManager[object]:
    """Show a message on a terminal while something takes a moment."""
    return Console(stderr=True).status(message) if Screen(sys.stderr).styled else nullcontext()
