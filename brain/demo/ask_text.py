"""Questions about letters and words."""

from __future__ import annotations

import re

from agent_brain.demo.asks import Ask

_OF = r"(?:(?:the |this )?(?:words?|phrase|text|string|sentence|letters?|name|list)(?: of)?:? )?"
_X = rf"{_OF}(?P<text>.+?)"
_MANY = r"(?:how many|count(?: the)?|(?:the )?(?:number|count) of|(?:the )?amount of)"
_IN = r"(?: (?:are|is|does|do))?(?: there)? (?:in|of|has|have)"
_CASE = r"(?:(?:to|into|in) )?(?:all )?(?P<case>upper|lower)(?:[- ]?case)?"
_THINGS = {"letter": "count_letters", "character": "count_characters", "word": "count_words"}
_THINGS |= {"vowel": "count_vowels", "char": "count_characters"}

_COUNT = re.compile(
    rf"{_MANY} (?:\w+ )??(?P<thing>letters?|characters?|chars?|words?|vowels?){_IN} {_X}", re.I
)
_COUNT_OF = re.compile(
    rf"{_MANY} (?P<thing>letters?|characters?|words?|vowels?) (?:does|do) {_X} (?:have|contain)",
    re.I,
)
_LETTER = re.compile(
    rf"{_MANY} (?:times )?(?:(?:the )?letters? )?"
    rf"(?P<search>'[a-z]'|\"[a-z]\"|[a-z])(?:'?s)?{_IN} {_X}",
    re.I,
)
_TIMES = re.compile(
    r"how (?:many times|often) (?:does|do|is) (?:the )?(?:letter |word )?(?P<search>.+?) "
    rf"(?:appear|occur|come up|used|show up|found)s? in {_X}",
    re.I,
)
_LENGTH = re.compile(rf"(?:how long is|(?:the )?length of|what is the length of) {_X}", re.I)
_PATTERNS: list[tuple[str, re.Pattern[str]]] = [
    ("reverse", re.compile(rf"(?:reverse|flip) {_X}", re.I)),
    (
        "reverse",
        re.compile(rf"(?:what is|write|spell|say|type) {_X} (?:spelled )?backwards?", re.I),
    ),
    ("reverse", re.compile(rf"(?:what is )?the reverse of {_X}", re.I)),
    ("reverse", re.compile(rf"{_X} (?:spelled )?(?:backwards|reversed)", re.I)),
    (
        "sort_words",
        re.compile(
            r"(?:sort|alphabeti[sz]e|order)(?: (?=\w)|(?=:)| (?=['\"]))"
            r"(?:(?:the |these )?(?:words|list))?(?: "
            r"alphabetically)?:? ?(?P<text>.+?)(?: alphabetically)?",
            re.I,
        ),
    ),
    ("is_palindrome", re.compile(rf"(?:is|are) {_X} an? palindrome", re.I)),
    (
        "is_palindrome",
        re.compile(rf"(?:(?:check|test) )?(?:whether|if) {_X} is a palindrome", re.I),
    ),
]
_CASES = [
    re.compile(rf"{_CASE} {_X}", re.I),
    re.compile(rf"(?:make|write|convert|turn|put|change|say) {_X} {_CASE}", re.I),
    re.compile(rf"(?P<case>capitali[sz]e|upcase) (?:all (?:of )?)?{_X}", re.I),
]


def read_text(text: str) -> list[Ask] | None:
    """The question about a text that ``text`` is, or None."""
    words = re.sub(r"\bwhat's\b", "what is", text.strip(), flags=re.I).strip(" ?!.")
    for pattern in (_LETTER, _TIMES):
        if match := pattern.fullmatch(words):
            slots = {"text": _bare(match["text"]), "search": _bare(match["search"])}
            return [Ask("count_occurrences", text, slots)]
    for pattern in (_COUNT, _COUNT_OF):
        if match := pattern.fullmatch(words):
            kind = _THINGS[match["thing"].lower().rstrip("s")]
            return [Ask(kind, text, {"text": _bare(match["text"])})]
    if (match := _LENGTH.fullmatch(words)) and (_quoted(match["text"]) or "word " in words):
        return [Ask("count_characters", text, {"text": _bare(match["text"])})]
    for pattern in _CASES:
        if match := pattern.fullmatch(words):
            kind = "lowercase" if match["case"].lower() == "lower" else "uppercase"
            return [Ask(kind, text, {"text": _bare(match["text"])})]
    for kind, pattern in _PATTERNS:
        if match := pattern.fullmatch(words):
            return [Ask(kind, text, {"text": _bare(match["text"])})]
    return None


def _quoted(text: str) -> bool:
    return len(text) > 1 and text[0] in "'\"“‘`«" and text[-1] in "'\"”’`»"


def _bare(text: str) -> str:
    return text[1:-1] if _quoted(text) else text.strip()
