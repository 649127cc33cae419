"""Text as models see it: how many tokens it has, how to shorten it, how to make any value text."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

MARKER = "\n… [{} tokens left out] …\n"


def count_tokens(text: str) -> int:
    """Estimate the tokens of ``text`` without a tokenizer and without a download.

    Latin text has about four characters a token; in UTF-8 the letters of other scripts take two to
    four bytes, and byte-pair vocabularies spend about one token on three of those bytes. The
    estimate is linear in the text, needs no model, and errs on the high side for CJK.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    ascii_bytes = len(text.encode("ascii", "ignore"))
    other_bytes = len(text.encode("utf-8", "surrogatepass")) - ascii_bytes
    return (ascii_bytes + 3) // 4 + (other_bytes + 2) // 3


def shorten(text: str, max_tokens: int) -> str:
    """Keep the head and the tail of ``text`` so that it has at most ``max_tokens`` tokens.

    The part left out is replaced by a marker that says how much is missing. With a budget smaller
    than the marker itself, only a head is kept.

    Args:
        text: What to shorten.
        max_tokens: The budget in estimated tokens (see :func:`count_tokens`), at least 1.
    """
    total = count_tokens(text)
    if total <= max_tokens:
        return text
    room = max_tokens - count_tokens(MARKER.format(total))
    if room < 2:
        return _head(text, max_tokens)
    head = _head(text, room - room // 3)
    tail = _head(text[::-1], room // 3)[::-1]
    left_out = total - count_tokens(head) - count_tokens(tail)
    return head + MARKER.format(max(left_out, 1)) + tail


def _head(text: str, max_tokens: int) -> str:
    """The longest prefix of at most ``max_tokens`` tokens, by bisection."""
    low, high = 0, min(len(text), 4 * max_tokens)  # no token has more than four characters
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def clean(text: str) -> str:
    """``text`` with lone surrogates, which no encoding can carry, replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: Any) -> Any:
    """``value`` as JSON can carry it: text cleaned, and infinite or undefined numbers made None.

    Models do write broken surrogates and ``1e999``; one such value would make every later message
    of the conversation impossible to send or to store. What is sound is returned as it is.
    """
    kind = type(value)
    if kind is int or kind is bool or value is None:
        return value
    if isinstance(value, str):
        return value if value.isascii() else clean(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {clean_json(key): clean_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [clean_json(item) for item in value]
    return value


def to_text(value: Any) -> str:
    """What a model reads of a tool's result: text as it is, anything else as JSON."""
    if isinstance(value, str):
        return clean(value)
    if value is None:
        return "null"
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        return to_json(value, fallback=str, inf_nan_mode="null").decode()
    except Exception:  # a lone surrogate, or a value that no serialiser knows
        return _to_text_slowly(value)


def _to_text_slowly(value: Any) -> str:
    try:
        return to_compact_json(to_json_data(value))
    except Exception:  # what the value says of itself
        return clean(str(value))


def to_json_data(value: Any) -> Any:
    """Any value as JSON data: models, dataclasses, enums, times, sets and all else.

    Lone surrogates become U+FFFD, infinite and undefined numbers None, and what no serialiser knows
    the text that it says of itself.
    """
    return clean_json(to_jsonable_python(clean_json(value), fallback=str))


def to_compact_json(value: Any) -> str:
    """``value`` as JSON on one line, non-ASCII kept readable.

    It is one line for every way of splitting lines: characters such as U+2028 are escaped.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "))
    return text if text.isascii() else _LINE_ENDS.sub(_escaped, text)


_LINE_ENDS = re.compile("[\x85\u2028\u2029]")  # JSON itself escapes the others


def _escaped(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"
