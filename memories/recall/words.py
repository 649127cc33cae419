"""What a text is found by: the terms that lexical search compares.

A term is a stemmed lower-case word without accents. English function words say nothing about what
a message is about and are left out; elsewhere the rarity that BM25 measures does that work.
Scripts written without spaces give overlapping pairs of characters, as in Lucene's CJK analysis:
which characters stand together tells texts apart, and it takes no dictionary.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import snowballstemmer

from agent_brain.memories.recall.stopwords import ENGLISH

LONGEST_TERM = 64  # characters; what is longer is data, not language, and is cut
LONGEST_WORD = 32  # characters; what is longer is not stemmed

# Han and kana, Hangul (spaced, but particles stick to words), Thai, Lao, Myanmar, Khmer
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = HAN + "\u3005\u3041-\u30ff\uac00-\ud7a3\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u109d\u1780-\u17d3"
# vowel signs and the like, which belong to the word though they are no letters of their own
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0970-\u0dff\u0f71-\u0f84\u135d-\u135f\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0"
)
PICTURES = "\u2600-\u27bf\U0001f300-\U0001faff"
# points and accents that writers leave out as often as not; the breve of Cyrillic й stays
_OPTIONAL = re.compile(
    "(?<![иу])\u0306|[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]"
)
_ASCII = re.compile(r"[a-z0-9]+(?:[-_./:][a-z0-9]+)*")
_LETTER = rf"(?:[^\W_{UNSPACED}]|[{MARKS}])"
_ANY = re.compile(
    rf"(?P<unspaced>[{UNSPACED}]+)|(?P<picture>[{PICTURES}])"
    rf"|[^\W_{UNSPACED}]{_LETTER}*(?:[-_./:][^\W_{UNSPACED}]{_LETTER}*)*"
)
_HAN = re.compile(f"[{HAN}]")
_JOINER = re.compile(r"[-_./:]")
_SCRIPTS = (
    ("\u024f", "english"),
    ("\u03ff", "greek"),
    ("\u052f", "russian"),
    ("\u058f", "armenian"),
    ("\u05ff", ""),
    ("\u06ff", "arabic"),
    ("\u08ff", ""),
    ("\u097f", "hindi"),
)
_stemming = threading.Lock()  # stemmers keep the word they work on


def fold(text: str) -> str:
    """``text`` in lower case, compatibility forms made plain, accents and optional points off."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.casefold())
    return unicodedata.normalize("NFKC", _OPTIONAL.sub("", apart))


def terms(text: str) -> list[str]:
    """The terms of ``text`` in order, repeated as often as they occur."""
    return list(_terms(fold(text)))


def count_words(text: str) -> int:
    """How many words ``text`` has, function words included; two unspaced characters are one."""
    if text.isascii():
        return len(_WORDS_ASCII.findall(text))
    count = 0.0
    for found in _ANY.finditer(text):
        count += len(found[0]) / 2 if found["unspaced"] else found["picture"] is None
    return int(count + 0.5)


_WORDS_ASCII = re.compile(r"[A-Za-z0-9]+")


def _terms(text: str) -> Iterator[str]:
    if text.isascii():
        for run in _ASCII.findall(text):
            yield from _spaced(run)
        return
    for found in _ANY.finditer(text):
        if found["unspaced"]:
            yield from _unspaced(found[0])
        elif found["picture"]:
            yield found[0]
        else:
            yield from _spaced(found[0])


def _unspaced(run: str) -> Iterator[str]:
    """Pairs of neighbours; a Han character is a word often enough to count by itself too."""
    if len(run) == 1:
        yield run
        return
    yield from _HAN.findall(run)
    for i in range(len(run) - 1):
        yield run[i : i + 2]


def _spaced(run: str) -> Iterator[str]:
    """The words of a run; one with digits, such as ``inv-2041``, is a name and counts whole too."""
    parts = _JOINER.split(run)
    if len(parts) > 1 and any(map(str.isdigit, run)):
        yield run[:LONGEST_TERM]
    for word in parts:
        if word not in ENGLISH:
            yield _stem(word[:LONGEST_TERM])


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    language = next((name for last, name in _SCRIPTS if word[0] <= last), "")
    if not language or len(word) > LONGEST_WORD:
        return word
    with _stemming:
        stem: str = _stemmer(language).stemWord(word)
    return stem or word


@lru_cache
def _stemmer(language: str) -> snowballstemmer.stemmer:
    return snowballstemmer.stemmer(language)
