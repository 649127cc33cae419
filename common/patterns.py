"""Match regular expressions of JSON Schemas without ever hanging.

A ``pattern`` may come from anybody, and Python's own engine can take exponential time. RE2 (extra
``search``) takes linear time. Without it, and for syntax that RE2 does not support, a pattern is
tried only on texts short enough for the worst case to be quick. Where there is no quick answer, the
text counts as valid: schemas are written for ECMAScript, which neither engine supports in full.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

LONGEST = 500
"""Longest pattern that is tried, in characters: RE2 does not bound its memory for parsing one."""

MOST_STEPS = 2_000_000

_ATOMS = re.compile(r"\\.|\[\^?(?:\\.|[^\]\\])*\]", re.DOTALL)
_EXACT = re.compile(r"\{\d+\}")
_MANY = re.compile(r"[*+{]")

Search = Callable[[str], bool | None]


def found(pattern: str, text: str) -> bool | None:
    """Return whether ``pattern`` is found in ``text``; None if there is no quick answer."""
    search = _searcher(pattern)
    return None if search is None else search(text)


def is_checked(pattern: str) -> bool:
    """Return whether texts, at least short ones, can be checked against ``pattern``."""
    return _searcher(pattern) is not None


def has_re2() -> bool:
    """Return whether RE2 is installed."""
    return find_spec("re2") is not None


def compile_re2(pattern: str, *, ignore_case: bool = False) -> Any:
    """Compile ``pattern`` with bounded memory; raises ``re2.error`` for what RE2 refuses."""
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    options.case_sensitive = not ignore_case
    return re2.compile(pattern, options)


@lru_cache(maxsize=1000)
def _searcher(pattern: str) -> Search | None:
    if len(pattern) > LONGEST:
        return None
    return (_with_re2(pattern) if has_re2() else None) or _with_limits(pattern)


def _with_re2(pattern: str) -> Search | None:
    import re2

    try:
        compiled = compile_re2(pattern)
    except (re2.error, UnicodeError):
        return None

    def search(text: str) -> bool | None:
        try:
            return compiled.search(text) is not None
        except (re2.error, UnicodeError):
            return None

    return search


def _with_limits(pattern: str) -> Search | None:
    """Use Python's engine for texts on which it takes a limited number of steps."""
    plain = _ATOMS.sub("x", pattern)
    if re.search(r"\)[*+{]", plain):
        return None  # a repeated group may take exponential time
    plain = _EXACT.sub("", plain)
    many = len(_MANY.findall(plain)) + (not pattern.startswith("^"))
    choices = 2 ** min(plain.count("?") + plain.count("|"), 30)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about syntax whose meaning may change
            compiled = re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None

    def search(text: str) -> bool | None:
        if choices * (len(text) + 1) ** many > MOST_STEPS:
            return None
        return compiled.search(text) is not None

    return search
