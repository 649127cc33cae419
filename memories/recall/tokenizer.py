"""The terms of a text, which lexical search compares.

A term is a stemmed lower-case word without accents. English function words are left out; in other
languages their frequency makes BM25 ignore them. Scripts written without spaces give overlapping
pairs of characters, as in Lucene's CJK analysis, which needs no dictionary.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

import snowballstemmer  # type: ignore[import-untyped]

LONGEST_TERM = 64  # characters; longer words are data and are cut
LONGEST_WORD = 32  # characters; longer words are not stemmed

# Han and kana, Hangul (spaced, but particles stick to words), Thai, Lao, Myanmar, Khmer
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
UNSPACED = (
    HAN + "\u3005\u3041-\u30ff\uac00-\ud7a3\u0e01-\u0e4e\u0e81-\u0ecd\u1000-\u109d\u1780-\u17d3"
)
# vowel signs and other marks, which belong to the word but are not letters
MARKS = (
    "\u0300-\u036f\u0483-\u0487\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed"
    "\u0900-\u0963\u0970-\u0dff\u0f71-\u0f84\u135d-\u135f\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0"
)
PICTURES = "\u2600-\u27bf\U0001f300-\U0001faff"
# points and accents that writers often leave out; the breve of Cyrillic й stays
_OPTIONAL = re.compile(
    "(?<![иу])\u0306|[\u0300-\u0305\u0307-\u036f\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]"
)
_ASCII = re.compile(r"[a-z0-9]+(?:[-_./:][a-z0-9]+)*")
_LETTER = rf"(?:[^\W_{UNSPACED}]|[{MARKS}])"
_ANY = re.compile(
    rf"[{UNSPACED}]+|[{PICTURES}]"
    rf"|[^\W_{UNSPACED}]{_LETTER}*(?:[-_./:][^\W_{UNSPACED}]{_LETTER}*)*"
)
_ALPHANUMERIC = re.compile("[A-Za-z0-9]")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_PICTURE = re.compile(f"[{PICTURES}]")
_HAN = re.compile(f"[{HAN}]")
_JOINER = re.compile(r"[-_./:]")
HAS_DIGIT = re.compile(r"\d").search
# the last letter of each block, and the Snowball stemmer for words that begin in it
_STEMMERS = (
    ("\u024f", "english"),
    ("\u03ff", "greek"),
    ("\u052f", "russian"),
    ("\u058f", "armenian"),
    ("\u05ff", ""),
    ("\u06ff", "arabic"),
    ("\u08ff", ""),
    ("\u097f", "hindi"),
)
_stemming = threading.Lock()  # a stemmer stores the word that it works on

# English function words: the classic list of information retrieval, with contractions as
# the apostrophe splits them ("don", "t") and as people type them without one ("dont").
ENGLISH = frozenset(
    """
    a about above after again against all am an and any are as at be because been before being
    below between both but by can cannot could did do does doing down during each few for from
    further had has have having he her here hers herself him himself his how i if in into is it its
    itself let me more most my myself no nor not of off on once only or other ought our ours
    ourselves out over own same she should so some such than that the their theirs them themselves
    then there these they this those through to too under until up very was we were what when where
    which while who whom why with won would you your yours yourself yourselves
    will shall may might must
    arent cant couldnt didnt doesnt dont hadnt hasnt havent hed hell hes heres hows id ill im ive
    isnt lets mustnt shant shed shell shes shouldnt thats theres theyd theyll theyre theyve wasnt
    wed well were weve werent whats whens wheres whos whys wont wouldnt youd youll youre youve
    s t d m ll re ve don didn doesn isn wasn wouldn couldn shouldn hasn haven hadn aren weren ain
    """.split()
)

# Stems of words that only ask ("What kind of cake did Ann say …"); left out of questions.
ASKING = frozenset(
    "say said mention tell told talk discuss describ kind type mani often much".split()
)


def runs(text: str) -> list[str]:
    """Return ``text`` folded and cut into runs.

    A run is a word, words joined as in ``inv-2041``, a stretch of a script without spaces, or a
    pictograph. Folding means lower case, plain compatibility forms, and no accents or
    optional points.
    """
    if text.isascii():
        return _ASCII.findall(text.lower())
    apart = unicodedata.normalize("NFKD", text.casefold().replace("ı", "i"))
    return _ANY.findall(unicodedata.normalize("NFKC", _OPTIONAL.sub("", apart)))


def terms(text_runs: Iterable[str]) -> list[str]:
    """Return the terms of runs in order, with repetitions."""
    found: list[str] = []
    for run in text_runs:
        if run.isascii() and run.isalnum():
            found.append(_term(run[:LONGEST_TERM]))
        elif _UNSPACED.match(run):
            found.extend(_characters(run))
        else:
            found.extend(_joined(run))
    return [term for term in found if term]


def count_words(text: str, spaced: int) -> int:
    """Return about how many words there are, with function words.

    Two characters of a script without spaces count as one.

    Args:
        text: The text.
        spaced: How many words there are between spaces.
    """
    if text.isascii():
        return spaced if text[:1].isalnum() or _ALPHANUMERIC.search(text) else 0
    return sum(map(_word_count, runs(text)))


def _word_count(run: str) -> int:
    if run.isascii():
        return 1
    if _UNSPACED.match(run):
        return (len(run) + 1) // 2
    return 0 if _PICTURE.match(run) else 1


def _characters(run: str) -> Iterator[str]:
    """Yield pairs of neighbours, and Han characters, many of which are words, alone too."""
    if len(run) == 1:
        yield run
        return
    yield from _HAN.findall(run)
    for i in range(len(run) - 1):
        yield run[i : i + 2]


def _joined(run: str) -> Iterator[str]:
    """Yield the words of a run; one with digits, such as ``inv-2041``, is a name and whole too."""
    parts = _JOINER.split(run)
    if len(parts) > 1 and HAS_DIGIT(run):
        yield run[:LONGEST_TERM]
    for part in parts:
        yield _term(part[:LONGEST_TERM])


def _term(word: str) -> str:
    """Return the stem of a folded word; "" for a function word.

    A word with digits may be a secret and is not kept in the cache.
    """
    return _stem(word) if word.isalpha() or not HAS_DIGIT(word) else word


@lru_cache(maxsize=1 << 16)
def _stem(word: str) -> str:
    if word in ENGLISH:
        return ""
    language = next((name for last, name in _STEMMERS if word[0] <= last), "")
    if not language or len(word) > LONGEST_WORD:
        return word
    with _stemming:
        stem = _stemmer(language)(word)
    return stem or word


@lru_cache
def _stemmer(language: str) -> Callable[[str], str]:
    """Return a stemmer of snowballstemmer, or of PyStemmer, which it prefers."""
    stem: Callable[[str], str] = snowballstemmer.stemmer(language).stemWord
    return stem
