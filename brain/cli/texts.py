"""Texts of others made fit for a terminal: without control codes, and not too long."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from agent_brain.tools import Action
from agent_brain.tools.text import clean

MAX_VALUE = 80  # characters of one argument
MAX_CALL = 300  # characters of a call with all its arguments
MAX_RESULT = 500  # characters of a tool's result
MAX_LINES = 8  # lines of a tool's result

_PICTURES = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t\r"}
_REPLACED = dict.fromkeys(
    [*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"
)
_NEUTRAL: dict[int, int | str | None] = {
    **_PICTURES,
    **_REPLACED,
    0x0D: None,
    0x2028: "\n",
    0x2029: "\n",
    0x7F: 0x2421,
}

_NOT_IN_A_LINE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def neutral(text: str) -> str:
    """``text`` that a terminal cannot take for anything but text.

    Control characters become their pictures, so that an escape sequence is seen and does nothing;
    carriage returns go; characters that turn the direction of what follows are replaced. Works
    piece by piece: no piece means anything else together with the next one.
    """
    return clean(text).translate(_NEUTRAL)


def one_line(json_text: str) -> str:
    """JSON that is one line to every reader: what may end a line or steer a terminal is escaped."""
    return _NOT_IN_A_LINE.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def brief(text: str, max_chars: int = MAX_RESULT, max_lines: int = MAX_LINES) -> str:
    """The beginning of ``text``, and how much was left out."""
    lines = text.strip("\n").splitlines()
    kept = "\n".join(lines[:max_lines])
    if len(kept) > max_chars:
        return f"{kept[:max_chars]}… ({counted(len(text) - max_chars, 'more character')})"
    if len(lines) > max_lines:
        return f"{kept}\n… ({counted(len(lines) - max_lines, 'more line')})"
    return kept


def counted(number: int, what: str) -> str:
    """A number of things, in words."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def call_text(action: Action) -> str:
    """A tool call as a programmer would write it, long arguments cut."""
    if action.unparsed is not None:
        return f"{action.name}(not JSON: {cut(action.unparsed, MAX_CALL)})"
    return f"{action.name}({cut(_arguments(action.args), MAX_CALL)})"


def _arguments(args: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name}={cut(json.dumps(value, ensure_ascii=False), MAX_VALUE)}"
        for name, value in args.items()
    )


def cut(text: str, max_chars: int) -> str:
    """``text`` on one line, with an ellipsis if it is longer than ``max_chars``."""
    text = " ".join(text.split())
    return text if len(text) <= max_chars else text[: max_chars - 1] + "…"
