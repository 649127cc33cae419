"""The names of a journal's keys in Redis."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import quote

from agent_brain.memories.errors import JournalError, MemoryDefinitionError


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of the keys of a journal; all of them begin with its prefix.

    The keys of a session have its key in braces, without anything that means something to Redis,
    so that they are together on one node of whatever distributes keys by such tags.
    """

    prefix: str

    def __post_init__(self) -> None:
        if not self.prefix or {*self.prefix} & {*"{}"}:
            raise MemoryDefinitionError(
                f"prefix={self.prefix!r}: give a text without braces that is not empty"
            )

    @property
    def layout(self) -> str:
        """The key of the version of the layout."""
        return f"{self.prefix}:layout"

    def of(self, session: str, *more: str) -> list[str]:
        """Return the keys that every script gets, and ``more`` keys of the session.

        Raises:
            JournalError: The session's key is not a text that can be stored.
        """
        names = ("head", "entries", "history", "lease", *more)
        head, entries, history, lease, *others = [self._name(session, name) for name in names]
        common = [f"{self.prefix}:deleted", f"{self.prefix}:sessions"]
        return [head, entries, history, lease, *common, *others]

    def head(self, session: str) -> str:
        """Return the key of a session's head."""
        return self._name(session, "head")

    def _name(self, session: str, name: str) -> str:
        try:
            return f"{self.prefix}:{{s:{quote(session, safe='')}}}:{name}"
        except UnicodeEncodeError as error:
            raise JournalError(
                f"The session's key {session!r} cannot be encoded: {error}"
            ) from None


def pattern(prefix: str) -> str:
    """Return a pattern of Redis for what starts with ``prefix``."""
    return "".join(f"\\{letter}" if letter in "\\*?[]^" else letter for letter in prefix) + "*"
