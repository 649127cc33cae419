"""What somebody who misspelt a name may have meant."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from typing import Any


def closest(name: str, known: Iterable[str]) -> str | None:
    """The known name that is closest to ``name``; None if none is close."""
    by_fold = {text.casefold(): text for text in known}
    close = get_close_matches(name.casefold(), by_fold, n=1)
    return by_fold[close[0]] if close else None


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """``" Did you mean 'react'?"``, or nothing if no known name is close to ``name``."""
    close = closest(str(name), known)
    return "" if close is None else f" Did you mean {close!r}?"


def wrong_option(function: Callable[..., Any], options: Iterable[str]) -> str | None:
    """What is wrong with the first option that ``function`` does not take; None if it takes all."""
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
