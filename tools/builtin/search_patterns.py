"""Search patterns that cannot hang.

Regular expressions are for RE2 alone (extra ``search``): it is linear in the text by construction
and bounds its memory. Engines that backtrack are no choice for patterns that a model writes: ``re``
knows no timeout, and ``regex``, which does, can be made to take all memory while it compiles.
Without RE2 there is plain text, which needs no engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from unicodedata import normalize

from agent_brain.tools.errors import ToolError

MAX_PATTERN = 500  # characters; RE2 reads deeply nested brackets in memory that it does not bound
MAX_MEMORY = 8 << 20  # bytes that RE2 may take for a pattern


class Deadline:
    """So many seconds for everything that is searched together."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def check(self) -> None:
        """Go on, if there is time left.

        Raises:
            ToolError: There is none.
        """
        if time.monotonic() >= self._end:
            raise ToolError(
                f"The search took longer than {self.seconds:g} s and was stopped: search in fewer "
                "files"
            )


def has_regex() -> bool:
    """Whether regular expressions can be searched for here."""
    return find_spec("re2") is not None


def text_matcher(query: str, *, ignore_case: bool) -> Callable[[str], bool]:
    """A function that tells whether a line contains ``query``.

    Raises:
        ToolError: The query is empty.
    """
    if not query:
        raise ToolError("The query is empty: say what to search for")

    def same(text: str) -> str:
        composed = normalize("NFC", text)
        return normalize("NFC", composed.casefold()) if ignore_case else composed

    wanted = same(query)
    return lambda line: wanted in same(line)


def regex_matcher(query: str, *, ignore_case: bool) -> Callable[[str], bool]:
    """A function that tells whether the regular expression ``query`` is found in a line.

    Raises:
        ToolError: It is empty, too long, or none that RE2 takes (back references and look-around
            are not linear).
    """
    if not query:
        raise ToolError("The query is empty: say what to search for")
    if len(query) > MAX_PATTERN:
        raise ToolError(f"The pattern has {len(query)} characters; {MAX_PATTERN} are allowed")
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.case_sensitive = not ignore_case
    try:
        pattern = re2.compile(query, options)
    except re2.error as error:
        why = error.args[0] if error.args else error
        text = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise ToolError(f"{query!r} is no regular expression for RE2: {text}") from None
    return lambda line: pattern.search(line) is not None
