"""Who takes part in a conversation, and where a question names them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from agent_brain.memories.recall.tokenizer import ENGLISH, UNSPACED

_WORD = re.compile(r"\w+")
_UNSPACED_NAME = re.compile(f"[{UNSPACED}]{{2,}}")
Words = tuple[str, ...]
NOBODY = -1


@dataclass(frozen=True)
class Mention:
    """A name in a text: where it stands and whose it may be."""

    start: int
    end: int
    people: frozenset[str]

    def overlaps(self, other: Mention) -> bool:
        """Whether both stand, in part, on the same characters."""
        return self.start < other.end and other.start < self.end


class Labels:
    """Gives each label a number for as long as something carries it, and then forgets it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._labels: dict[int, str] = {}
        self._carried: dict[int, int] = {}
        self._next = 0

    def add(self, label: str | None) -> int:
        """The number of ``label``, which one thing more carries; :data:`NOBODY` for None."""
        if label is None:
            return NOBODY
        if label not in self._numbers:
            self._numbers[label] = self._next
            self._labels[self._next] = label
            self._next += 1
        number = self._numbers[label]
        self._carried[number] = self._carried.get(number, 0) + 1
        return number

    def remove(self, number: int) -> str | None:
        """Take back one :meth:`add`; returns the label if nothing carries it any more."""
        if number == NOBODY:
            return None
        self._carried[number] -= 1
        if self._carried[number]:
            return None
        del self._carried[number]
        label = self._labels.pop(number)
        del self._numbers[label]
        return label

    def number(self, label: str) -> int:
        """The number of ``label``; :data:`NOBODY` if nothing carries it."""
        return self._numbers.get(label, NOBODY)


class Participants:
    """The distinct senders of messages, found in a text by their names or parts of their names."""

    def __init__(self) -> None:
        self._senders = Labels()
        self._people: dict[Words, set[str]] = {}
        self._unspaced: set[str] = set()
        self._longest = 1

    def add(self, sender: str | None) -> int:
        """Count a message of ``sender``; returns the sender's number, if there is one."""
        if sender is not None and self._senders.number(sender) == NOBODY:
            for words in _names(sender):
                self._people.setdefault(words, set()).add(sender)
                self._longest = max(self._longest, len(words))
            if _UNSPACED_NAME.fullmatch(sender):
                self._unspaced.add(sender)
        return self._senders.add(sender)

    def remove(self, number: int) -> None:
        """Take back one :meth:`add`; who has no message left takes no part any more."""
        sender = self._senders.remove(number)
        if sender is not None:
            self._unspaced.discard(sender)
            for words in _names(sender):
                self._people[words].discard(sender)
                if not self._people[words]:
                    del self._people[words]

    def number(self, sender: str) -> int:
        """The number that stands for ``sender``."""
        return self._senders.number(sender)

    def mentions(self, text: str) -> list[Mention]:
        """The names in ``text`` in order: whole words, any case, the longest where several fit."""
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
        """Names in scripts without spaces stand inside runs of characters."""
        names = sorted((name for name in self._unspaced if name in text), key=len, reverse=True)
        if names:
            for found in re.finditer("|".join(map(re.escape, names)), text):
                yield Mention(found.start(), found.end(), frozenset([found[0]]))


def _names(sender: str) -> set[Words]:
    """What ``sender`` is called: the whole name and its parts, apart from initials."""
    words = tuple(_WORD.findall(sender.casefold()))
    parts = {(word,) for word in words if len(word) > 1}
    return parts | ({words} if words else set())


def _is_name(word: str, at: int) -> bool:
    """Whether a word that could be a name is one: "will" is not, "Will" inside a sentence is."""
    return word.casefold() not in ENGLISH or (at > 0 and word[:1].isupper())
