"""From the user's words to the things asked for, in order."""

from __future__ import annotations

import re
from itertools import product

from agent_brain.demo.arithmetic import read_arithmetic
from agent_brain.demo.ask_dates import read_dates
from agent_brain.demo.ask_talk import read_talk
from agent_brain.demo.ask_text import read_text
from agent_brain.demo.ask_units import read_units
from agent_brain.demo.asks import Ask

MAX_LENGTH = 20_000  # characters that are looked at
MAX_SENTENCE = 1_500  # characters of one sentence, not counting what is in quotes
MAX_SPLITS = 4  # joints tried in one sentence

_QUOTE = re.compile(
    r"(?<![\w])(\"[^\"\n]*\"|“[^”\n]*”|‘[^’\n]*’|«[^»\n]*»|`[^`\n]*`|'[^'\n]+')(?!\w)"
)
_SENTENCE = re.compile(r"(?<=[?;\n])\s*|(?<=[a-zA-Z0-9¤)\"'”][.!])\s+(?=\S)")
_POLITE = re.compile(
    r"^(?:(?:please|kindly|hey|hi|hello|ok|okay|so|and|then|now|next|also|"
    r"after that|finally|well|first|"
    r"quick question|(?:can|could|would|will) you(?: please)?|i(?:'d| would) like to know|"
    r"i(?:'d| would) like you to|i (?:want|need) (?:you )?to(?: know)?|(?:do you know|tell me|"
    r"show me|give me|let me know)(?= (?:what|how|which|the|whether|if))|let's|"
    r"use (?:the|your) tools? to"
    r"|help me)\b[\s,:]*)+(?=\S)",
    re.I,
)
_POLITE_TAIL = re.compile(r"[\s,]*(?:\b(?:please|thanks|thank you|for me)\b[\s,.!?]*)+$", re.I)
_QUESTION = re.compile(r"(?:what|who|where|when|which|how|tell me|give me|get)\b", re.I)
_JOINT = re.compile(
    r"\s*[,;]?\s*\b(?:and )?then\b,?\s+|\s*,\s*and\s+|\s+and\s+|\s*,\s+(?=\D)", re.I
)


def understand(text: str) -> list[Ask]:
    """What ``text`` asks for: at least one ask, of kind "other" where no parser knows the words."""
    quotes: list[str] = []

    def mask(match: re.Match[str]) -> str:
        quotes.append(match[0])
        return f"¤{len(quotes) - 1}¤"

    masked = _QUOTE.sub(mask, text[:MAX_LENGTH])
    sentences = [part.strip() for part in _SENTENCE.split(masked) if part.strip(" ?!.;,\n")]
    asks = [ask for sentence in sentences for ask in _sentence(sentence, quotes)]
    useful = [ask for ask in asks if not _is_politeness(ask)]
    return useful or asks or [Ask("other", text)]


def _is_politeness(ask: Ask) -> bool:
    return ask.kind == "talk" and ask.slots["topic"] in ("hello", "thanks", "bye", "told")


def _sentence(sentence: str, quotes: list[str]) -> list[Ask]:
    """One sentence: the finest split into parts that are understood, else the whole."""
    if len(sentence) > MAX_SENTENCE:
        return [Ask("other", _restored(sentence, quotes))]
    splits = _splits(sentence)
    for parts in splits:
        known = [_clause(part, quotes) for part in parts]
        if all(known) and not any(_is_politeness(ask) for asks in known for ask in asks or ()):
            return [ask for asks in known for ask in asks or ()]
    whole = _clause(sentence, quotes)
    if whole:
        return whole
    for parts in splits:
        likely = [_part(part, quotes) for part in parts]
        if all(likely):
            return [ask for asks in likely for ask in asks or ()]
    return [Ask("other", _restored(sentence, quotes))]


def _splits(sentence: str) -> list[list[str]]:
    """Every way to cut ``sentence`` at its joints, the finest first."""
    joints = [match.span() for match in _JOINT.finditer(sentence)][:MAX_SPLITS]
    choices = sorted(product((True, False), repeat=len(joints)), key=sum, reverse=True)
    return [
        _parts(sentence, [joint for joint, cut in zip(joints, cuts, strict=True) if cut])
        for cuts in choices
        if any(cuts)
    ]


def _part(part: str, quotes: list[str]) -> list[Ask] | None:
    """A part of a sentence; one that opens like a question may be one for some tool."""
    known = _clause(part, quotes)
    if known or not _QUESTION.match(part) or len(part.split()) < 3:
        return known
    return [Ask("other", _restored(part, quotes))]


def _parts(sentence: str, joints: list[tuple[int, int]]) -> list[str]:
    ends = [0, *(end for _, end in joints)]
    starts = [*(start for start, _ in joints), len(sentence)]
    return [sentence[end:start] for end, start in zip(ends, starts, strict=True)]


def _clause(clause: str, quotes: list[str]) -> list[Ask] | None:
    words = _restored(clause, quotes).strip()
    small_talk = read_talk(words)
    if small_talk:
        return small_talk
    for form in dict.fromkeys((_plain(words), words)):
        for reader in (read_talk, read_dates, read_units, read_text):
            asks = reader(form)
            if asks:
                return asks
        node = read_arithmetic(form)
        if node is not None:
            return [Ask("calculate", form, {"expression": node})]
    return None


def _plain(words: str) -> str:
    words = _POLITE_TAIL.sub("", words.strip(" ?.,;"))
    return _POLITE.sub("", words)


def _restored(text: str, quotes: list[str]) -> str:
    return re.sub(r"¤(\d+)¤", lambda match: quotes[int(match[1])], text)
