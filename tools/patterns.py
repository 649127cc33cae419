"""Regular expressions of JSON Schemas, searched for without ever hanging.

The ``pattern`` of a schema may come from anybody, and Python's own engine can need years for a line
of text. RE2 (extra ``search``) is linear in the text. Without it, or for what RE2 does not know, a
pattern is tried only on texts so short that the worst case is still quick. What cannot be decided
is not held against the text: schemas are written for ECMAScript, whose patterns neither engine
takes in full.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

LONGEST = 500
"""Characters of a pattern that is tried at all: RE2 bounds its memory for the text alone."""

MOST_STEPS = 2_000_000
_MOST_MEMORY = 8 << 20

_ATOMS = re.compile(r"\\.|\[\^?(?:\\.|[^\]\\])*\]", re.DOTALL)
_EXACT = re.compile(r"\{\d+\}")
_MANY = re.compile(r"[*+{]")


def found(pattern: str, text: str) -> bool | None:
    """Whether ``pattern`` is found in ``text``; None if there is no quick way to say."""
    search = _searcher(pattern)
    return None if search is None else search(text)


def is_checked(pattern: str) -> bool:
    """Whether texts, short ones at least, can be held against ``pattern``."""
    return _searcher(pattern) is not None


@lru_cache(maxsize=1000)
def _searcher(pattern: str) -> Callable[[str], bool | None] | None:
    if len(pattern) > LONGEST:
        return None
    return _with_re2(pattern) or _with_limits(pattern)


def _with_re2(pattern: str) -> Callable[[str], bool | None] | None:
    if find_spec("re2") is None:
        return None
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MOST_MEMORY
    try:
        compiled: Any = re2.compile(pattern, options)
    except (re2.error, UnicodeError):
        return None

    def search(text: str) -> bool | None:
        try:
            return compiled.search(text) is not None
        except (re2.error, UnicodeError):
            return None

    return search


def _with_limits(pattern: str) -> Callable[[str], bool | None] | None:
    """Python's own engine, for texts that it can only take so many steps for."""
    plain = _ATOMS.sub("x", pattern)
    if re.search(r"\)[*+{]", plain):
        return None  # a repeated group may take exponential time
    plain = _EXACT.sub("", plain)
    many = len(_MANY.findall(plain)) + (not pattern.startswith("^"))
    choices = 2 ** min(plain.count("?") + plain.count("|"), 30)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of syntax that may change its meaning some day
            compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None

    def search(text: str) -> bool | None:
        if choices * (len(text) + 1) ** many > MOST_STEPS:
            return None
        return compiled.search(text) is not None

    return search
