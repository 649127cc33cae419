"""Who takes part in a conversation, and who of them a question names.

People speak of themselves in the first person and ask about others by name. A vector of "When did
Ann join?" is therefore closest to messages that *address* Ann; "When did I join?" is closest to
what Ann said. So names come out of the question before it is embedded, and are a cue of their own.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from agent_brain.memories.recall.stopwords import ENGLISH
from agent_brain.memories.recall.words import UNSPACED

_WORD = re.compile(r"\w+")
_POSSESSIVE = re.compile(r"['’]s\b", re.I)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_SPACES = re.compile(r"\s+")
Words = tuple[str, ...]


@dataclass(frozen=True)
class Mention:
    """A name in a text: where it stands and whose it may be."""

    start: int
    end: int
    people: frozenset[str]


class Participants:
    """The distinct senders of messages, found in a text by their names or parts of their names."""

    def __init__(self) -> None:
        self._messages: Counter[str] = Counter()
        self._people: dict[Words, set[str]] = {}
        self._longest = 0

    def add(self, sender: str) -> None:
        """Count a message of ``sender``."""
        self._messages[sender] += 1
        if self._messages[sender] == 1:
            for words in _names(sender):
                self._people.setdefault(words, set()).add(sender)
                self._longest = max(self._longest, len(words))

    def remove(self, sender: str) -> None:
        """Take back one :meth:`add`; who has no message left takes no part any more."""
        self._messages[sender] -= 1
        if not self._messages[sender]:
            del self._messages[sender]
            for words in _names(sender):
                self._people[words].discard(sender)
                if not self._people[words]:
                    del self._people[words]

    def mentions(self, text: str) -> list[Mention]:
        """Every name in ``text``, longest first where several begin at one place."""
        return list(self._mentions(text)) if self._people else []

    def _mentions(self, text: str) -> Iterator[Mention]:
        words = list(_WORD.finditer(text))
        at = 0
        while at < len(words):
            for length in range(min(self._longest, len(words) - at), 0, -1):
                found = words[at : at + length]
                people = self._people.get(tuple(word[0].casefold() for word in found))
                if people and _is_name(found, at):
                    yield Mention(found[0].start(), found[-1].end(), frozenset(people))
                    at += length
                    break
            else:
                at += 1


def replace(text: str, mentions: list[Mention], whose: str, who: str) -> str:
    """``text`` with ``whose`` for names in the possessive and ``who`` for all others."""
    out, done = [], 0
    for mention in mentions:
        possessive = _POSSESSIVE.match(text, mention.end)
        out += [text[done : mention.start], whose if possessive else who]
        done = possessive.end() if possessive else mention.end
    return _SPACES.sub(" ", "".join([*out, text[done:]])).strip()


def _names(sender: str) -> set[Words]:
    """What ``sender`` is called: the whole name and those of its parts that can stand alone."""
    words = tuple(_WORD.findall(sender.casefold()))
    parts = {(word,) for word in words if len(word) > 1 and word not in ENGLISH}
    return parts | ({words} if words else set())


def _is_name(found: list[re.Match[str]], at: int) -> bool:
    """Whether words that could be a name are one: "will" is not, "Will" inside a sentence is."""
    word = found[0][0]
    return len(found) > 1 or word.casefold() not in ENGLISH or (at > 0 and word[:1].isupper())
