"""Whose words a text is, as the messages that it rests on tell."""

from __future__ import annotations

import re
from collections.abc import Collection

from agent_brain.common.text import folded
from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.tokenizer import runs, terms
from agent_brain.memories.user.facts import Origin
from agent_brain.memories.user.quoting import unquoted

# Lines of what the library itself recalls, which are nobody's words.
_RECALLED = re.compile(
    r"^Recalled from .*"
    r"|^[ \t>*-]*\[\d{4}-\d\d-\d\d[^\]]*\].*(?:\n  .*)*"
    r"|^.*; fact_\w+\].*$",
    re.MULTILINE,
)
_MARKDOWN = str.maketrans(dict.fromkeys("*_`"))
NOT = re.compile(
    r"(?:\b(?:not|cannot|never|no longer|neither|nor)|n['’]t)\b(?! (?:only|just|forget|wait)\b)"
    r"|\b(?:ca|wo|do|does|did|is|are|was|were|have|has|had|would|could|should)nt\b"
    r"|\b(?:might|maybe|perhaps|hardly|i wish)\b|\b(?:almost|nearly)(?= \w+ed\b)|不|没"
    r"|(?<!no )(?<!a )(?<!any )\bdoubts?\b|\b(?:i deny|denies|(?:false|untrue|wrong|a lie) that)\b"
    r"|\b(?:far from|refused? to|decided against|(?:sick|tired) of|fed up with|(?:except|but) me)\b"
)
# In languages in which it may stand behind the verb.
NOT_ELSEWHERE = re.compile(
    r"\b(?:nicht|nie|niemals|kein\w*|nunca|jam[aá]s|tampoco|n[aã]o|niet|geen|inte|ikke|не|pas|jamais)\b"
    r"(?! (?:nur|bloß|s[oóò]lo|s[oó]|alleen|только|seulement|que|loin|mal)\b)"
    r"|\b(?:vielleicht|peut-être|quizás?)\b"
    r"|\bn(?:e\b|['’])(?=[^.,;:!?\n]{0,60}\b(?:plus|rien|aucune?|guère)\b)"
    r"|않|ません|ない\b"
    r"|\bnon (?!solo\b|j|m(?:on|a|es)\b)"
    r"|(?:^|\b(?:yo|ya|mí|pero|y) )\s*no (?:me|te|le|les|nos|lo|la|se|hay|soy|estoy|es|\w+o)\b"
)
_AGAINST = re.compile(r"\b(?:without|hates?|dislikes?)\b")


LEAST_WORDS = 2  # of a quote that is looked for in all messages: "yes" is in too many


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
    speaker = speaker_of(message, names)
    told = _RECALLED.sub("\n", message.content)
    if speaker is Origin.USER:
        if has_quote(unquoted(told), quote):
            return Origin.USER
        return Origin.DOCUMENT if has_quote(told, quote) else None
    repeats = any(has_quote(found[0], quote) for found in _RECALLED.finditer(message.content))
    return None if repeats and not has_quote(told, quote) else speaker


def speaker_of(message: Message, names: Collection[str] = ()) -> Origin:
    """Return who has written a message; see :func:`origin_of`."""
    if message.role is Role.TOOL:
        return Origin.TOOL
    if message.sent_from is not None:
        return Origin.OTHER
    if message.role is not Role.USER or message.cause_by is not None:
        return Origin.ASSISTANT  # also what a state or a memory wrote, such as a summary
    return Origin.OTHER if names and message.name not in (None, *names) else Origin.USER


def own_words(message: Message, names: Collection[str] = ()) -> str:
    """Return what the user says in a message; empty if somebody else wrote it."""
    said = unquoted(_RECALLED.sub("\n", message.content))
    return said if said.strip() and origin_of(message, said, names) is Origin.USER else ""


def has_quote(text: str, quote: str) -> bool:
    """Return whether a text has a quote: the same words, whatever the case and the spaces."""
    return plain(quote) in plain(text)


def plain(text: str) -> str:
    """Return a text in one case, with single spaces and simple quotation marks and dashes."""
    return " ".join(folded(text).translate(_MARKDOWN).split())


def words_of(text: str) -> list[str]:
    """Return the stems of the words of a text that carry meaning."""
    return terms(runs(text))


def is_negative(text: str) -> bool:
    """Return whether a text denies something."""
    text = text.casefold()
    return any(words.search(text) for words in (NOT, NOT_ELSEWHERE, _AGAINST))
