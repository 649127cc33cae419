"""Whose words a text is, as the messages that it rests on tell."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Collection, Iterator

from agent_brain.common.text import folded
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
# Any other element, besides emphasis and what programs put around the words of users.
_ELEMENT = r"(?!(?:strong|mark|user|question|query|task|request|goal|prompt))[a-z][\w.:-]{2,}"
_TRANSLATE = "translate|übersetzen?|übersetze|traduis|traduire|traduce|traducir"
_LINE = r"[ \t*]*(?:from|sent|date|to|b?cc|subject|von|gesendet|datum|an|betreff)[ \t*]*:"
_QUOTED = re.compile(
    rf"<{_B}(?P<tag>{_NAMES})\b[^<>]*>.*?(?:<{_B}/{_B}(?P=tag){_B}>|\Z)"
    r"|<!--.*?(?:-->|\Z)"
    r"|(?P<fence>```|~~~|\"\"\").*?(?:(?P=fence)|\Z)|^[ \t]*>[^\n]*"
    # lines of a table, and of a record of a chat
    r"|^[ \t]*\|[^\n]*\|[ \t]*$|^[ \t]*(?:user|assistant|human|system|ai|bot)[ \t]*:[^\n]*"
    # forwarded mail, to the end: its first line, its headers, or "On … wrote:"
    r"|^[ \t]*(?:-{3,}[^\n]*|begin )(?:forwarded|original|weitergeleitete|ursprüngliche)"
    r" (?:message|nachricht).*\Z"
    rf"|^(?=(?:{_LINE}[^\n]*\n\s*){{0,5}}[ \t*]*(?:from|von)[ \t*]*:)"
    rf"(?=(?:{_LINE}[^\n]*\n\s*){{1,5}}[ \t*]*(?:sent|subject|gesendet|betreff)[ \t*]*:"
    rf"|[ \t*]*(?:sent|subject|gesendet|betreff)[ \t*]*:[^\n]*\n\s*{_LINE}).*\Z"
    r"|^[ \t]*(?:on|am|le|el)\b[^\n]*(?:\n[^\n]+)?\b"
    r"(?:wrote|schrieb\b[^\n:]*|a écrit|escribió)[ \t]*:[ \t]*\r?\n(?!\s*>).*\Z"
    # what is to be translated or worked on
    rf"|^[ \t]*(?:(?:can|could) you |please |bitte )?(?:{_TRANSLATE}"
    r"|(?:proofread|correct|rewrite|rephrase|paraphrase|summari[sz]e|fix|improve|edit)"
    r" (?:my|this|the|these)|(?:korrigiere|verbessere) (?:mein|dies|den|die)\w*)"
    r"\b[^\n:.?!\"“„«]{0,60}[:：].*\Z"
    rf"|\b(?:{_TRANSLATE})\s*'(?:[^'\n]|'\w){{1,500}}'(?!\w)"
    rf"|(?:[:：]|\b(?:{_TRANSLATE}|says|writes|claims|states|reads|tells|said|wrote|told me"
    r"|sagte?|schreibt|schrieb|dice|dijo|dit),?)\s*"
    r"(?:\"[^\"\n]+\"|“[^”]+”|„[^“”]+[“”]|«[^»]+»|»[^«]+«|‘(?:[^‘’]|’\w)+’)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_STRAY = re.compile(rf"\A.*<{_B}/{_B}(?:{_NAMES}|{_ELEMENT}){_B}>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(rf"<{_B}(?P<ends>/?){_B}(?P<name>{_ELEMENT})\b[^<>]*>", re.IGNORECASE)
_MARKDOWN = str.maketrans(dict.fromkeys("*_`"))
NOT = re.compile(
    r"(?:\b(?:not|cannot|never|no longer|neither|nor)|n['’]t)\b(?! (?:only|just|forget|wait)\b)"
    r"|\b(?:ca|wo|do|does|did|is|are|was|were|have|has|had|would|could|should)nt\b"
    r"|\b(?:might|maybe|perhaps|hardly|i wish)\b|\b(?:almost|nearly)(?= \w+ed\b)|不|没"
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
    for start, end in reversed([*_elements(text)]):
        text = f"{text[:start]}\n{text[end:]}"
    return _STRAY.sub("", _QUOTED.sub(_gap, text))


def _elements(text: str) -> Iterator[tuple[int, int]]:
    """Yield where elements such as ``<webpage>…</webpage>`` begin and end."""
    tags = [(found["name"].lower(), found) for found in _TAG.finditer(text)]
    ends: dict[str, list[int]] = {}
    for name, found in tags:
        if found["ends"]:
            ends.setdefault(name, []).append(found.end())
    upto = 0
    for name, found in tags:
        behind = ends.get(name, ())
        at = bisect(behind, found.start())
        if not found["ends"] and at < len(behind) and found.start() >= upto:
            yield found.start(), (upto := behind[at])


def _gap(found: re.Match[str]) -> str:
    """Return what stands for a quotation; a title or a name in quotation marks stays."""
    words = found[0].split()
    if found[0][-1] in '"”“»«’' and 2 * sum(word[:1].isupper() for word in words) > len(words):
        return found[0]
    return "\n"


def data_in(text: str) -> str:
    """Return what stands in a text as data, code or a quotation."""
    elements = [text[start:end] for start, end in _elements(text)]
    quoted = (found[0] for found in _QUOTED.finditer(text) if _gap(found) == "\n")
    return "\n".join([*elements, *quoted])


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
