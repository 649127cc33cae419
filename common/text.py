"""Text: count its tokens, shorten it, and turn any value into text."""

from __future__ import annotations

import json
import math
import re
from typing import Any
from unicodedata import normalize

from pydantic import BaseModel
from pydantic_core import to_json, to_jsonable_python

MARKER = "\n… [{} tokens left out] …\n"
_encode = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": ")).encode
_LINE_ENDS = re.compile("[\x85\u2028\u2029]")  # JSON escapes the others itself


# The Turkish dotless i too: its capital is that of "i" elsewhere.
_MARKS = {"'": "‘’‛′", '"': "“”„‟«»", "-": "‐‑‒–—−", "i": "ı"}
_SIMPLE = str.maketrans({mark: simple for simple, marks in _MARKS.items() for mark in marks})
_MARKED = re.compile(f"[{''.join(_MARKS.values())}]")


def folded(text: str) -> str:
    """Return a text as it is compared: in one case, with single spaces and simple marks.

    Letters that are written as several characters (NFD) become one.
    """
    if not text.isascii():
        text = normalize("NFKC", text)
        text = text.translate(_SIMPLE) if _MARKED.search(text) else text
        text = text.casefold().replace("i\u0307", "i")  # of a capital with a dot
    return " ".join(text.casefold().split())


def has_folded(text: str, part: str) -> bool:
    """Return whether a text has a part, which is folded, however both are written."""
    if not text.isascii():
        return part in folded(text)
    text = text.casefold()
    return part in text or (
        " " in part and part.partition(" ")[0] in text and part in " ".join(text.split())
    )


def count_tokens(text: str) -> int:
    """Estimate the number of tokens in ``text``, without a tokenizer.

    Latin text has about four characters per token. Letters of other scripts take two to four bytes
    in UTF-8, and byte-pair vocabularies use about one token for three of those bytes. The estimate
    takes linear time and is rather too high for CJK.
    """
    if text.isascii():
        return (len(text) + 3) // 4
    ascii_bytes = len(text.encode("ascii", "ignore"))
    other_bytes = len(text.encode("utf-8", "surrogatepass")) - ascii_bytes
    return (ascii_bytes + 3) // 4 + (other_bytes + 2) // 3


_BLANK = r"[\s\u200b-\u200f\u2060\ufeff]*"
_END_OF_DATA = re.compile(rf"(<{_BLANK})/(?={_BLANK}data)", re.IGNORECASE)


def as_data(text: str) -> str:
    """Return ``text`` in ``<data>``, which nothing inside it can end.

    Prompts tell models never to follow instructions in it.
    """
    inside = _END_OF_DATA.sub(r"\1\\/", text)
    return f"<data>{inside}</data>"


def one_line(text: str) -> str:
    """Return ``text`` in one line."""
    return " ".join(text.split())


def indented(text: str) -> str:
    """Return ``text`` with its lines but the first indented: none can imitate a line of a list."""
    return "\n  ".join(text.strip().splitlines())


def shorten(text: str, max_tokens: int) -> str:
    """Return the head and the tail of ``text``, in at most ``max_tokens`` tokens.

    The omitted part is replaced by a marker that says how much is missing. If the marker alone
    exceeds the limit, only a head is returned.

    Args:
        text: The text.
        max_tokens: The limit in estimated tokens (see :func:`count_tokens`), at least 1.
    """
    if 2 * len(text) <= max_tokens:  # no character has more than two tokens
        return text
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
    """Return the longest prefix of at most ``max_tokens`` tokens."""
    low, high = 0, min(len(text), 4 * max_tokens)  # no token has more than four characters
    while low < high:
        middle = (low + high + 1) // 2
        if count_tokens(text[:middle]) <= max_tokens:
            low = middle
        else:
            high = middle - 1
    return text[:low]


def clean(text: str) -> str:
    """Return ``text`` with lone surrogates, which cannot be encoded, replaced by U+FFFD."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def clean_json(value: Any) -> Any:
    """Return ``value`` with lone surrogates replaced by U+FFFD, and NaN and infinity by None.

    Models do write such values, and one of them would make every later message of the conversation
    impossible to send or to store.
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
    """Return a tool's result as text for a model: text unchanged, any other value as JSON."""
    if isinstance(value, str):
        return clean(value)
    if value is None:
        return "null"
    try:
        if isinstance(value, BaseModel):
            return value.model_dump_json()
        return to_json(value, fallback=str, inf_nan_mode="null").decode()
    except Exception:  # a lone surrogate, or a value that no serialiser knows
        pass
    try:
        return to_compact_json(to_json_data(value))
    except Exception:
        return clean(str(value))


def to_json_data(value: Any) -> Any:
    """Return any value as JSON data: models, dataclasses, enums, times, sets and all others.

    Lone surrogates become U+FFFD, NaN and infinity None, and unknown objects their ``str``.
    """
    return clean_json(to_jsonable_python(clean_json(value), fallback=str))


def to_compact_json(value: Any) -> str:
    """Return ``value`` as JSON on one line, however lines are split, with readable characters."""
    text = _encode(value)
    if text.isascii():
        return text
    return _LINE_ENDS.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def count_of(number: int, noun: str, several: str | None = None) -> str:
    """Return a number with its noun, such as "1 line" or "2,000 lines".

    Args:
        number: The number.
        noun: What is counted.
        several: The plural, if it is not the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else several or noun + 's'}"


def cut_line(text: str, most: int) -> str:
    """Return ``text`` on one line, with an ellipsis if it has more than ``most`` characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1]}…"
