"""Make untrusted text safe and short enough for a terminal."""

from __future__ import annotations

import json
import re

from agent_brain.common.text import clean, count_of, cut_line
from agent_brain.tools import Action

MAX_VALUE = 80  # characters of one argument
MAX_CALL = 300  # characters of a call with all its arguments
MAX_RESULT = 500  # characters of a tool's result
MAX_LINES = 8  # lines of a tool's result

_VISIBLE: dict[int, int | str | None] = {
    **{code: 0x2400 + code for code in range(0x20) if chr(code) not in "\n\t\r"},
    **dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], "\ufffd"),
    0x0D: None,
    0x2028: "\n",
    0x2029: "\n",
    0x7F: 0x2421,
}
_NOT_IN_A_LINE = re.compile("[\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def sanitize(text: str) -> str:
    """Replace what a terminal would act on: text may come in pieces, as none needs the next."""
    return clean(text).translate(_VISIBLE)


def one_line(json_text: str) -> str:
    """Escape what some readers take for a line end, or a terminal would act on, in JSON."""
    return _NOT_IN_A_LINE.sub(lambda match: f"\\u{ord(match[0]):04x}", json_text)


def brief(text: str, max_chars: int = MAX_RESULT, max_lines: int = MAX_LINES) -> str:
    """Return the beginning of ``text``, with an ellipsis if something was left out."""
    text = text.strip("\n")
    kept = "\n".join(text.splitlines()[:max_lines])[:max_chars]
    return kept if len(kept) == len(text) else f"{kept}… ({count_of(len(text), 'character')})"


def call_text(action: Action) -> str:
    """Return a tool call as source code, with long arguments cut."""
    if action.unparsed is not None:
        return f"{action.name}(not JSON: {cut_line(action.unparsed, MAX_CALL)})"
    values = (f"{name}={cut_line(_json(value), MAX_VALUE)}" for name, value in action.args.items())
    return f"{action.name}({cut_line(', '.join(values), MAX_CALL)})"


def whole_call(action: Action) -> str:
    """Return a tool call as source code, with all that a person approves."""
    values = (f"{name}={one_line(_json(value))}" for name, value in action.args.items())
    return f"{action.name}({', '.join(values)})"


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
