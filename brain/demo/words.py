"""What can be counted in a text, and how it can be turned around."""

from __future__ import annotations

from collections.abc import Callable

OPERATIONS: dict[str, Callable[[str], int | str | bool]] = {
    "count_letters": lambda text: sum(letter.isalpha() for letter in text),
    "count_characters": len,
    "count_words": lambda text: len(text.split()),
    "count_vowels": lambda text: sum(letter in "aeiou" for letter in text.lower()),
    "reverse": lambda text: text[::-1],
    "uppercase": str.upper,
    "lowercase": str.lower,
    "sort_words": lambda text: " ".join(sorted(text.replace(",", " ").split(), key=str.lower)),
    "is_palindrome": lambda text: _is_palindrome([c for c in text.lower() if c.isalnum()]),
}


def _is_palindrome(letters: list[str]) -> bool:
    return bool(letters) and letters == letters[::-1]
