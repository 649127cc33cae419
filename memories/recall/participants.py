"""The participants of a conversation, and where a question names them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agent_brain.memories.recall.tokenizer import ENGLISH, UNSPACED

_WORD = re.compile(r"\w+")
_UNSPACED_NAME = re.compile(f"[{UNSPACED}]{{2,}}")
Words = tuple[str, ...]
NOBODY = -1


@dataclass(frozen=True)
class Mention:
    """A name in a text: its place, and the people whose name it may be."""

    start: int
    end: int
    people: frozenset[str]

    def overlaps(self, other: Mention) -> bool:
        """Return whether both have characters in common."""
        return self.start < other.end and other.start < self.end


class Labels:
    """Labels, such as names of senders, as numbers."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._last = NOBODY

    def add(self, label: str | None) -> int:
        """Return the number of ``label``, a new one if it has none; :data:`NOBODY` for None."""
        if label is None:
            return NOBODY
        if label not in self._numbers:
            self._last += 1
            self._numbers[label] = self._last
        return self._numbers[label]

    def keep(self, numbers: Iterable[int]) -> list[str]:
        """Forget the labels with other numbers than these; return those labels."""
        used = {*numbers}
        gone = [label for label, number in self._numbers.items() if number not in used]
        for label in gone:
            del self._numbers[label]
        return gone

    def number(self, label: str) -> int:
        """Return the number of ``label``; :data:`NOBODY` if it is not in use."""
        return self._numbers.get(label, NOBODY)


class Participants:
    """The senders of messages, found in a text by their names or parts of their names."""

    def __init__(self) -> None:
        self._senders = Labels()
        self._people: dict[Words, set[str]] = {}
        self._unspaced: set[str] = set()
        self._longest = 1

    def add(self, sender: str | None) -> int:
        """Add the sender of a message; return the number of the sender."""
        if sender is not None and self._senders.number(sender) == NOBODY:
            for words in _names(sender):
                self._people.setdefault(words, set()).add(sender)
                self._longest = max(self._longest, len(words))
            if _UNSPACED_NAME.fullmatch(sender):
                self._unspaced.add(sender)
        return self._senders.add(sender)

    def keep(self, numbers: Iterable[int]) -> None:
        """Forget the senders with other numbers than these."""
        for sender in self._senders.keep(numbers):
            self._unspaced.discard(sender)
            for words in _names(sender):
                self._people[words].discard(sender)
                if not self._people[words]:
                    del self._people[words]

    def number(self, sender: str) -> int:
        """Return the number of ``sender``."""
        return self._senders.number(sender)

    def mentions(self, text: str) -> list[Mention]:
        """Return the names in ``text`` in order: whole words, any case, the longest that fits."""
        found = list(self._in_words(text)) if self._people else []
        if self._unspaced:
            apart = [m for m in self._in_runs(text) if not any(m.overlaps(f) for f in found)]
            found = sorted(found + apart, key=lambda mention: mention.start)
        return found

    def _in_words(self, text: str) -> Iterator[Mention]:
        words = list(_WORD.finditer(text))
        folded = [word[0].casefold() for word in words]
        at = 0
        while at < len(words):
            for end in range(min(at + self._longest, len(words)), at, -1):
                people = self._people.get(tuple(folded[at:end]))
                if people and (end - at > 1 or _is_name(words[at][0], at)):
                    yield Mention(words[at].start(), words[end - 1].end(), frozenset(people))
                    at = end
                    break
            else:
                at += 1

    def _in_runs(self, text: str) -> Iterator[Mention]:
        """Yield the names in scripts without spaces, which are inside runs of characters."""
        names = sorted((name for name in self._unspaced if name in text), key=len, reverse=True)
        if names:
            for found in re.finditer("|".join(map(re.escape, names)), text):
                yield Mention(found.start(), found.end(), frozenset([found[0]]))


def _names(sender: str) -> set[Words]:
    """Return the name of ``sender`` and its parts, without initials."""
    words = tuple(_WORD.findall(sender.casefold()))
    parts = {(word,) for word in words if len(word) > 1}
    return parts | ({words} if words else set())


def _is_name(word: str, at: int) -> bool:
    """Return whether a word is a name: "will" is not, "Will" inside a sentence is."""
    return word.casefold() not in ENGLISH or (at > 0 and word[:1].isupper())
