"""Find personal data in text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ipaddress import ip_address
from typing import Any, NamedTuple

from agent_brain.errors import BrainDefinitionError

Find = Callable[[str], Iterable[str]]
Places = Callable[[str], Iterable[tuple[int, int]]]
Trim = Callable[[str], str | None]


class Span(NamedTuple):
    """A piece of personal data in a text: where it begins and ends, and what it is."""

    start: int
    end: int
    kind: str


_ISSUER = re.compile(r"[456]|3[04-9]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)")
_IBANS = (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 "
    "DJ27 DK18 DO28 EE20 EG29 ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HN28 "
    "HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 LC32 LI21 LT20 LU20 LV21 LY25 "
    "MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 QA29 "
    "RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 "
    "VA22 VG24 XK20 YE30"
)
_IBAN_LENGTHS = {entry[:2]: int(entry[2:]) for entry in _IBANS.split()}


def _card_in(text: str) -> str | None:
    """Return the first card number among groups of digits, perhaps beside others."""
    groups = [*re.finditer(r"\d+", text)]
    sizes = [len(group[0]) for group in groups]
    if (min(sizes[:-1], default=3) >= 3 or max(sizes) == 1) and _is_card(text):  # no dates
        return text
    for first in range(len(groups) if max(sizes) >= 4 else 0):
        for last in range(min(first + 5, len(groups)), first, -1):
            piece = text[groups[first].start() : groups[last - 1].end()]
            if _is_usual(sizes[first:last]) and _is_card(piece):
                return piece
    return None


def _is_usual(sizes: Sequence[int]) -> bool:
    """Whether groups of digits are those in which card numbers are printed."""
    in_fours = {*sizes[:-1]} <= {4} and (len(sizes) == 1 or sizes[-1] <= 4)
    return in_fours or sizes in ([4, 6, 5], [4, 6, 4])


def _is_card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    if not 13 <= len(digits) <= 19 or not _ISSUER.match(digits):
        return False
    numbers = [*map(int, reversed(digits))]
    doubled = [sum(divmod(2 * number, 10)) for number in numbers[1::2]]
    return (sum(numbers[::2]) + sum(doubled)) % 10 == 0


def _iban_in(text: str) -> str | None:
    length = _IBAN_LENGTHS.get(text[:2].upper(), 0)
    characters = [*re.finditer("[^ \xa0\u202f-]", text)][:length]
    if not length or len(characters) < length:
        return None
    bare, end = "".join(character[0] for character in characters), characters[-1].end()
    whole = not text[end : end + 1].isalnum()
    fits = int("".join(str(int(c, 36)) for c in bare[4:] + bare[:4])) % 97 == 1
    return text[:end] if whole and fits else None


def _address_in(text: str) -> str | None:
    text = text.rstrip(".")
    try:
        ip_address(text)
    except ValueError:
        return None
    return text


_DATE = re.compile(r"\d{1,2}[./-](?:\d{1,2}[./-]\d{2,4}|(?:19|20)\d\d)\b")


def _phone_in(text: str) -> str | None:
    is_phone = 8 <= sum(map(str.isdigit, text)) <= 15 and _DATE.match(text) is None
    return text if is_phone else None


_GAP = r"[ ./-]?"
_PHONE = (
    r"(?<![\w.,/+-])(?<!\d )"
    rf"(?:(?:\+|00(?=[1-9]))\d{{1,3}}{_GAP}(?:\(\d{{1,4}}\){_GAP})?|\(\d{{2,5}}\){_GAP}|0(?=[1-9])"
    r"|(?=\d{3}[ .-]\d{3}[ .-]\d{4}\b))"
    rf"\d(?:{_GAP}\d){{5,13}}(?![\w-])"
)
_ADDRESS = (
    r"(?<![\w.:])(?:(?<![Vv]ersion )\d{1,3}(?:\.\d{1,3}){3}(?!\w|\.\d)"
    r"|(?:(?=[^\s:]*:[^\s:]*:)[0-9A-Fa-f:.]{7,45}|::1)(?![\w:]))"
)
KINDS: dict[str, tuple[str, Trim | None]] = {
    "email": (r"(?<![\w.+-])[\w.+-]{1,64}@(?:[\w-]{1,63}\.)+[^\W\d_]{2,24}\b", None),
    "iban": ("\\b[A-Za-z]{2}\\d{2}(?:[ \xa0\u202f-]?[A-Za-z0-9]){11,30}(?!\\w)", _iban_in),
    "card": ("(?<![\\w.-])\\d(?:[ \xa0\u202f-]{0,3}\\d){12,40}(?![\\w-])", _card_in),
    "ip": (_ADDRESS, _address_in),
    "phone": (_PHONE, _phone_in),
}
"""The patterns of what is found by itself, with what of a match it is."""


def finder(pattern: str, trim: Trim | None = None) -> Places:
    """Return a function that finds the matches of a regular expression."""
    compiled = re.compile(pattern)

    def find(text: str) -> Iterator[tuple[int, int]]:
        at = 0
        while match := compiled.search(text, at):
            piece, start = match[0] if trim is None else trim(match[0]), match.start()
            at = match.end() + (not match[0])
            if piece:
                start += match[0].index(piece)
                at = start + len(piece)
                yield start, at

    return find


def own_finder(kind: str, find: Find) -> Places:
    """Return a function that finds the pieces of a text which a program's own function returns."""

    def places(text: str) -> Iterator[tuple[int, int]]:
        found: object = find(text)
        pieces: list[Any] = (
            [*found] if isinstance(found, Iterable) and not isinstance(found, str) else [found]
        )
        if isinstance(found, str) or not all(isinstance(piece, str) for piece in pieces):
            raise BrainDefinitionError(
                f"also={{{kind!r}: {find!r}}} returned {type(found).__name__}: return a list of "
                "pieces of the text"
            )
        for piece in sorted({*pieces}, key=len, reverse=True):
            at = text.find(piece) if piece else -1
            while at >= 0:
                yield at, at + len(piece)
                at = text.find(piece, at + len(piece))

    return places


def spans(text: str, finders: Mapping[str, Places]) -> list[Span]:
    """Return what ``finders`` find in a text, in order; what one has found no later one finds."""
    taken: list[Span] = []
    for kind, find in finders.items():
        for start, end in find(text):
            if all(end <= known.start or known.end <= start for known in taken):
                taken.append(Span(start, end, kind))
    return sorted(taken)
