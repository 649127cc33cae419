"""Whose words a text is, as the messages that it rests on tell."""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Collection, Iterable, Iterator
from itertools import groupby

from agent_brain.common.text import folded
from agent_brain.memories.message import Message, Role
from agent_brain.memories.recall.tokenizer import runs, terms
from agent_brain.memories.user.facts import Origin

_B = r"[\s\u200b-\u200f\u2060\ufeff]*"  # blanks, also those that nobody sees
_NAMES = (
    "data|documents?|file|page|e?mail|article|content|context|source|(?:block)?quote|result|html"
)
# Any other element, besides emphasis and what programs put around the words of users.
_ELEMENT = r"(?!(?:strong|mark|user|question|query|task|request|goal|prompt))[a-z][\w.:-]{2,}"
_LINE = r"[ \t*]*(?:from|sent|date|to|b?cc|subject|von|gesendet|datum|an|betreff)[ \t*]*:"
_WORK = (  # what is asked to be done to a text
    r"(?:translat(?:e|ion)|übersetz\w*|tradu\w+|vertaal|vertal\w+|(?:prze)?tłumacz\w*|перев[её]\w+"
    r"|перевод\w*|proofread|spell-?check|rephrase|paraphrase|summari[sz]e"
    r"|check (?:the |my )?(?:spelling|grammar|style|wording))\b(?! (?:is|was|ist|est|es|è|é)\b)"
)
_TO_WORK_ON = (
    r"(?:correct|rewrite|fix|improve|edit) (?:my|this|the|these)"
    r"|(?:korrigiere|verbessere) (?:mein|dies|den|die)\w*"
)
_SAY = (
    "says?|said|writes?|wrote|claims?|claimed|states|stated|reads|tells|told(?: me| us)?|sagte?"
    "|schreibt|schrieb|meinte?|dice|dijo|diz|disse|dit"
)
_QUOTATION = (
    r"(?:\"[^\"\n]+\"|“[^“”]+”|„[^„“”]+[“”]|«[^«»]+»|»[^«»]+«|‘(?:[^‘’]|’\w)+’"
    r"|(?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w))+'(?!\w))"
)
_QUOTED = re.compile(
    rf"<{_B}(?P<tag>{_NAMES})\b[^<>]*>.*?(?:<{_B}/{_B}(?P=tag){_B}>|\Z)"
    r"|<!--.*?(?:-->|\Z)|\"\"\".*?(?:\"\"\"|\Z)|^[ \t]*[>＞][^\n]*"
    # a fence, up to a line of as many marks or more and nothing else; then code in a line
    r"|^(?P<indent>[ \t]*)(?P<fence>(?P<mark>[`~])(?P=mark){2,})"
    r"(?:(?<=~)[^\n]*|(?<=`)[^`\n]*)(?=\n|\Z)"
    r".*?(?:^(?: {0,3}|(?P=indent))(?P=fence)(?P=mark)*[ \t\r]*$|\Z)"
    r"|(?<!`)(?P<ticks>`{3,})(?!`)(?:.+?(?<!`)(?P=ticks)(?!`)|\w*[ \t\r]*(?:\n.*)?\Z)"
    # lines of a table, and of a talk with an assistant
    r"|^[ \t]*\|[^\n]*\|[ \t]*$|^[ \t]*(?:user|assistant|human|system|ai|bot)[ \t]*:[^\n]*"
    # forwarded mail, to the end: its first line, its headers, or "On … wrote:"
    r"|^[ \t]*(?:-{3,}[^\n]*|begin )(?:forwarded|original|weitergeleitete|ursprüngliche)"
    r" (?:message|nachricht).*\Z"
    rf"|^(?=(?:{_LINE}[^\n]*\n\s*){{0,5}}[ \t*]*(?:from|von)[ \t*]*:)"
    rf"(?=(?:{_LINE}[^\n]*\n\s*){{1,5}}[ \t*]*(?:sent|subject|gesendet|betreff)[ \t*]*:"
    rf"|[ \t*]*(?:sent|subject|gesendet|betreff)[ \t*]*:[^\n]*\n\s*{_LINE}).*\Z"
    r"|^[ \t]*(?:on|am|le|el)\b[^\n]*(?:\n[^\n]+)?\b"
    r"(?:wrote|schrieb\b[^\n:]*|a écrit|escribió)[ \t]*:[ \t]*\r?\n(?!\s*>).*\Z"
    # what is to be translated or worked on: behind a colon, or below
    rf"|^[ \t]*(?:(?:can|could) you |please |bitte )?(?:{_WORK}|{_TO_WORK_ON}\b)"
    r"(?:[^\n:.?!\"“„«]{0,60}[:：]"
    r"|[^\n:.?!]{0,60}\b(?:following|below|folgend\w*|siguiente|suivant\w*)\b[^\n:.?!]{0,30}"
    r"[.!]?[ \t\r]*\n).*\Z"
    r"|^[^\n:：.。?!？]{0,20}翻[译譯][^\n:：.。?!？]{0,60}[:：].*\Z"
    # what somebody says in quotation marks
    rf"|(?:[:：]|\b(?:{_WORK}[^\n:.,?!\"“„«‘']{{0,40}}?|(?:{_SAY}),?))\s*(?P<said>{_QUOTATION})"
    rf"|(?P<quoted>{_QUOTATION})[ \t]*,?[ \t]*(?:(?!(?:i|we)\b)[\w.’'-]+[ \t]+){{0,3}}"
    rf"(?:{_SAY})\b(?![ \t]+(?:i|we)\b)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_STRAY = re.compile(rf"\A.*<{_B}/{_B}(?:{_NAMES}|{_ELEMENT}){_B}>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(rf"<{_B}(?P<ends>/?){_B}(?P<name>{_ELEMENT})\b[^<>]*>", re.IGNORECASE)

_DAY = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_TIME = (
    rf"[\[(]?(?:{_DAY},?[^\S\n]+)?\d{{1,2}}:\d\d(?::\d\d)?(?:[^\S\n]?[AaPp]\.?[Mm]\b\.?)?"
    rf"(?:,?[^\S\n]+{_DAY})?[\])]?"
)
_SPOKEN = re.compile(  # a line that begins with who says it, perhaps with a time
    rf"^[ \t*_~-]{{0,12}}(?P<time>{_TIME}[ \t]*(?:[-–—|][ \t]*)?)?"
    r"(?:<[@+%~]?(?P<nick>[\w.-]{1,30})>[ \t](?![^\n]*</)"
    r"|[*_@~]{0,4}(?P<name>[^\W\d_][\w.'’-]{0,30}(?: [^\W\d_a-z][\w.'’-]{0,30}){0,2})"
    rf"(?P<after>[ \t]*[\[(]{_TIME}[\])]?)?[*_]{{0,4}}[ \t]*[:：](?!/))[^\n]*",
    re.MULTILINE,
)
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


def unquoted(text: str) -> str:
    """Return a text without what stands in it as data, code, a quotation or a record of a chat."""
    text = _without(text, _elements(text))
    return _STRAY.sub("", _without(text, [*_quotations(text), *_chats(text)]))


def data_in(text: str) -> str:
    """Return what stands in a text as data, code, a quotation or a record of a chat."""
    spans = [*_elements(text), *_quotations(text), *_chats(text)]
    return "\n".join(text[start:end] for start, end in spans)


def _without(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """Return a text with a line break in place of parts of it, which may overlap."""
    left, upto = [], 0
    for start, end in sorted(spans):
        left.append(text[upto:start])
        upto = max(upto, end)
    return "\n".join([*left, text[upto:]])


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


def _quotations(text: str) -> Iterator[tuple[int, int]]:
    """Yield where data, code and quotations are; a title or a name in quotation marks is none."""
    for found in _QUOTED.finditer(text):
        words = (found["said"] or found["quoted"] or "")[1:-1].split()
        titles = sum(word[:1].isupper() and not word.isupper() for word in words[1:])
        if not words or 2 * titles <= len(words[1:]) or not words[0][:1].isupper():
            yield found.span()


def _chats(text: str) -> Iterator[tuple[int, int]]:
    """Yield where records of chats are.

    One line with a time and a name is enough. Without times, names have to take turns: "Bob: …",
    "Ann: …", "Bob: …". Lines with other words before each colon, such as "Name: Ann" and "Home:
    Porto", may be what the user fills in.
    """
    run: list[re.Match[str]] = []
    for found in _SPOKEN.finditer(text):
        if run and not _follows(text, run[-1], found):
            yield from _record(run)
            run = []
        run.append(found)
    yield from _record(run)


def _follows(text: str, line: re.Match[str], other: re.Match[str]) -> bool:
    """Return whether a line of a chat goes on after another: no blank line is between them."""
    between = text[line.end() : other.start()]
    blank = not between.strip() or re.search(r"\n[ \t\r]*\n", between) is None
    return blank and _is_timed(line) == _is_timed(other)


def _record(run: list[re.Match[str]]) -> Iterator[tuple[int, int]]:
    """Yield where lines begin and end, if they are the record of a chat."""
    names = [
        name for name, _ in groupby((found["nick"] or found["name"]).casefold() for found in run)
    ]
    turns = len(names) > len(set(names))
    nicks = sum(found["nick"] is not None for found in run)
    if turns or nicks > 1 or any(map(_is_timed, run)):
        yield run[0].start(), run[-1].end()


def _is_timed(line: re.Match[str]) -> bool:
    return bool(line["time"] or line["after"])
