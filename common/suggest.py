"""Suggestions for misspelt names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any


def closest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """Return the known name that is most similar to ``name``, whatever its case, or None."""
    from difflib import get_close_matches

    by_fold = {text.casefold(): text for text in known}
    close = get_close_matches(name.casefold(), by_fold, n=1, cutoff=cutoff)
    return by_fold[close[0]] if close else None


def did_you_mean(name: object, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return ``" Did you mean 'react'?"``, or ``""`` if no known name is similar to ``name``."""
    close = closest(str(name), known, cutoff)
    return "" if close is None else f" Did you mean {close!r}?"


def wrong_option(function: Callable[..., Any], options: Iterable[str]) -> str | None:
    """Return a message about the first option that ``function`` does not take, or None."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return None
    known = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY or p.default is not p.empty]
    for name in options:
        if name not in known:
            return f"there is no option {name!r}.{did_you_mean(name, known)}" + (
                f" It takes: {', '.join(known)}" if known else " It takes none"
            )
    return None
