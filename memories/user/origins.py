"""Whose words a text is, as the messages that it rests on tell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.tokenizer import runs, terms
from agent_brain.memories.user.facts import Origin

# Parts of a user's message that are not the user's own words: data, code, quotations, and lines of
# what the library itself recalls.
_RECALLED = re.compile(
    r"^Recalled from .*"
    r"|^- \[\d{4}-\d\d-\d\d[^\]]*\].*(?:\n  .*)*"
    r"|^- .*; fact_\w+\]$",
    re.MULTILINE,
)
_QUOTED = re.compile(
    r"<\s*data\b[^>]*>.*?(?:<\s*/\s*data\s*>|\Z)|```.*?(?:```|\Z)|^[ \t]*>.*$",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_DATE = re.compile(r"\b\d{4}(?:-\d\d(?:-\d\d)?)?\b")
_MARKED = re.compile(r"[^\s\w]*(\w+(?:[-_./:@+]\w+)*)")  # a word, with what is inside it


def origin_of(message: Message, quote: str, names: Collection[str] = ()) -> Origin | None:
    """Return whose words a quote of a message is; None if the message is no source.

    Records of the library (system messages, summaries, what was recalled) are none.

    Args:
        message: The message.
        quote: Words of it.
        names: The user's names, where several people speak; empty if every speaker is the user.
    """
    if message.role is Role.SYSTEM or "recalled" in message.metadata:
        return None
    if message.role is Role.TOOL:
        return Origin.TOOL
    if message.sent_from is not None:
        return Origin.OTHER
    if message.role is Role.ASSISTANT:
        return Origin.ASSISTANT
    if message.cause_by is not None:  # a state or a memory wrote it, such as a summary
        return Origin.ASSISTANT
    if names and message.name is not None and message.name not in names:
        return Origin.OTHER
    if has_quote(_QUOTED.sub("\n", _RECALLED.sub("\n", message.content)), quote):
        return Origin.USER
    if has_quote(_RECALLED.sub("\n", message.content), quote):
        return Origin.DOCUMENT
    return None


def own_words(message: Message, names: Collection[str] = ()) -> str:
    """Return what the user says in a message; empty if somebody else wrote it."""
    said = _QUOTED.sub("\n", _RECALLED.sub("\n", message.content))
    return said if said.strip() and origin_of(message, said, names) is Origin.USER else ""


def has_quote(text: str, quote: str) -> bool:
    """Return whether a text has a quote: the same words, whatever the case and the spaces."""
    return _plain(quote) in _plain(text)


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def words_of(text: str) -> list[str]:
    """Return the stems of the words of a text that carry meaning."""
    return terms(runs(text))


def least_trusted(origins: Iterable[Origin]) -> Origin:
    """Return the origin that is trusted least."""
    return max(origins, key=lambda origin: (origin.rank, origin))


def lowered(text: str, origin: Origin, own: str, others: Sequence[tuple[str, Origin]]) -> Origin:
    """Return the origin of a fact whose words may not all be from what it cites.

    A model may cite the user for what a web page says. So words of the fact that the user did not
    use are looked for in what others said. Names, numbers and addresses count alone, other words if
    they are at least half of the fact's. Names and numbers that nobody said are the model's own.

    Args:
        text: The fact.
        origin: That of what it cites.
        own: What the user said in the cited messages.
        others: What others said, and who.
    """
    said = set(words_of(own))
    stems = set(words_of(text))
    new = stems - said
    if not new:
        return origin
    marked = {stem for word in _marked(text) for stem in words_of(word)} - said
    found = origin
    for other, whose in others:
        there = new & set(words_of(other))
        if whose.rank > found.rank and (marked & there or 2 * len(there) >= len(stems)):
            found = whose
    if found.rank == 0 and (marked or not said):
        return Origin.ASSISTANT
    return found


def _marked(text: str) -> Iterator[str]:
    """Yield the words of a text that are names, numbers or addresses; dates are not."""
    for n, match in enumerate(_MARKED.finditer(_DATE.sub(" ", text))):
        word = match[1]
        inner = any(mark in word for mark in "@./:_+") or any(c.isdigit() for c in word)
        if inner or (n and word[:1].isupper()) or word[1:] != word[1:].lower():
            yield word
