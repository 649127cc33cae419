"""Numbers in words: "two million five hundred and six" is 2000506."""

from __future__ import annotations

import re

_SMALL = {
    word: value
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen".split()
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(), start=2
    )
}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
_WORD = "|".join([*_SMALL, *_TENS, *_SCALES, "hundred", "dozen"])
_RUN = re.compile(
    rf"\b(?:an?\s+(?=(?:hundred|thousand|million|billion|dozen)\b))?(?:{_WORD})"
    rf"(?:(?:\s+|-)(?:{_WORD})"
    rf"|(?<=hundred|million|billion)\s+and\s+(?:{_WORD})"
    rf"|(?<=thousand)\s+and\s+(?:{_WORD}))*"
    rf"(?:\s+point(?:\s+(?:{'|'.join(_SMALL)}))+)?\b",
    re.I,
)
_GROUPED = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])")
_SCALED = re.compile(r"(\d+(?:\.\d+)?)\s+(hundred|thousand|million|billion|trillion)\b", re.I)


def words_to_digits(text: str) -> str:
    """``text`` with its number words, and "2,500" and "3 million", as plain digits."""
    text = _GROUPED.sub(lambda match: match[0].replace(",", ""), text)
    text = _SCALED.sub(lambda match: _scaled(match[1], match[2].lower()), text)
    return _RUN.sub(lambda match: _in_digits(match[0]), text)


def _scaled(digits: str, scale: str) -> str:
    value = float(digits) * {"hundred": 100, **_SCALES}[scale]
    return str(int(value)) if value == int(value) else str(value)


def _in_digits(words: str) -> str:
    whole, _, decimals = words.lower().partition(" point ")
    numbers = [str(value) for value in _values(re.findall(r"[a-z]+", whole))]
    tail = "".join(str(_SMALL[word]) for word in decimals.split())
    return " ".join(numbers) + (f".{tail}" if tail else "")


def _values(words: list[str]) -> list[int]:
    """The numbers that ``words`` say; "four five" says two."""
    done: list[int] = []
    total = group = 0
    last = ""  # the kind of the word before
    for word in words:
        kind = _kind(word)
        if kind in ("skip", ""):
            continue
        if not _continues(last, kind):
            done.append(total + group)
            total = group = 0
        if kind in ("small", "ten", "teen"):
            group += _SMALL.get(word, 0) or _TENS.get(word, 0)
        elif kind == "scale":
            total, group = total + (group or 1) * _SCALES[word], 0
        else:
            group = (group or 1) * (100 if word == "hundred" else 12)
        last = kind
    return [*done, total + group]


def _kind(word: str) -> str:
    if word in _SMALL:
        return "small" if 0 < _SMALL[word] < 10 else "teen"
    if word in _TENS:
        return "ten"
    if word in _SCALES:
        return "scale"
    return {"hundred": "hundred", "dozen": "dozen"}.get(word, "skip")


def _continues(last: str, kind: str) -> bool:
    if not last or kind in ("scale", "hundred", "dozen"):
        return True
    return last in ("hundred", "scale") or (last == "ten" and kind == "small")
