"""Whose words a text is, as the messages that it rests on tell."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from unicodedata import normalize

from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.tokenizer import runs, terms
from agent_brain.memories.user.facts import Origin

# Parts of a user's message that are not the user's own words: data, code, quotations, and lines of
# what the library itself recalls.
_RECALLED = re.compile(
    r"^Recalled from .*"
    r"|^[ \t>*-]*\[\d{4}-\d\d-\d\d[^\]]*\].*(?:\n  .*)*"
    r"|^.*; fact_\w+\].*$",
    re.MULTILINE,
)
_B = r"[\s\u200b-\u200f\u2060\ufeff]*"  # blanks, also those that nobody sees
_NAMES = (
    "data|documents?|file|page|e?mail|article|content|context|source|(?:block)?quote|result|html"
)
_QUOTED = re.compile(
    rf"<{_B}(?P<tag>{_NAMES})\b[^<>]*>.*?(?:<{_B}/{_B}(?P=tag){_B}>|\Z)"
    r"|```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)|^[ \t]*>[^\n]*"
    r"|^[ \t]*-{3,}[^\n]*(?:forwarded|original) message.*\Z"
    r"|(?:[:：]|\b(?:says|writes|claims|states|reads|tells|said|wrote|told me),?)\s*"
    r"(?:\"[^\"\n]+\"|“[^”]+”|„[^“”]+[“”]|«[^»]+»)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_STRAY = re.compile(rf"\A.*<{_B}/{_B}(?:{_NAMES}){_B}>", re.DOTALL | re.IGNORECASE)
_SIMPLE = str.maketrans(
    {**dict.fromkeys("‘’‛′", "'"), **dict.fromkeys("“”„‟«»", '"'), **dict.fromkeys("‐‑‒–—−", "-")}
    | dict.fromkeys("*_`")
)
_NOT = re.compile(
    r"\b(?:not|never|no longer|neither|nor|without|hates?|dislikes?)\b|n['’]t\b"
    r"|\b(?:nicht|nie|kein\w*|nunca|jamás)\b|不|没"
)


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
    told = _RECALLED.sub("\n", message.content)
    if has_quote(_unquoted(told), quote):
        return Origin.USER
    if has_quote(told, quote):
        return Origin.DOCUMENT
    return None


def own_words(message: Message, names: Collection[str] = ()) -> str:
    """Return what the user says in a message; empty if somebody else wrote it."""
    said = _unquoted(_RECALLED.sub("\n", message.content))
    return said if said.strip() and origin_of(message, said, names) is Origin.USER else ""


def _unquoted(text: str) -> str:
    """Return a text without what stands in it as data, code or a quotation."""
    return _STRAY.sub("", _QUOTED.sub(_gap, text))


def _gap(found: re.Match[str]) -> str:
    """Return what stands for a quotation; a title or a name in quotation marks stays."""
    words = found[0].split()
    if found[0][-1] in '"”“»' and 2 * sum(word[:1].isupper() for word in words) > len(words):
        return found[0]
    return "\n"


def data_in(text: str) -> str:
    """Return what stands in a text as data, code or a quotation."""
    return "\n".join(found[0] for found in _QUOTED.finditer(text) if _gap(found) == "\n")


def has_quote(text: str, quote: str) -> bool:
    """Return whether a text has a quote: the same words, whatever the case and the spaces."""
    return plain(quote) in plain(text)


def plain(text: str) -> str:
    """Return a text in one case, with single spaces and simple quotation marks and dashes."""
    return " ".join(normalize("NFKC", text).translate(_SIMPLE).casefold().split())


def words_of(text: str) -> list[str]:
    """Return the stems of the words of a text that carry meaning."""
    return terms(runs(text))


def is_negative(text: str) -> bool:
    """Return whether a text denies something."""
    return _NOT.search(text.casefold()) is not None


def least_trusted(origins: Iterable[Origin]) -> Origin:
    """Return the origin that is trusted least."""
    return max(origins, key=lambda origin: (origin.rank, origin))
