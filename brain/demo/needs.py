"""How tools for a known kind of question are recognised, and what their parameters are called."""

from __future__ import annotations

from collections.abc import Mapping


def _any(text: str) -> tuple[frozenset[str], ...]:
    """Alternatives split by "|"; all words of one of them must be there."""
    return tuple(frozenset(words.split()) for words in text.split("|"))


# kind of ask -> words by which a tool for it is known, as stems
SIGNS: dict[str, tuple[frozenset[str], ...]] = {
    "calculate": _any("calculate|calculator|calc|arithmetic|math|evaluate expression|expression"),
    "days_between": _any("day between|date difference|date diff|day until|date between|diff day"),
    "add_days": _any("add day|add date|date add|day after|date offset|shift date|plus day"),
    "weekday": _any("weekday|day of week|day week"),
    "now": _any("current time|current date|now|clock|time zone|today|local time|time in"),
    "convert": _any("convert unit|unit conversion|unit converter|convert|conversion|converter"),
    "count_letters": _any("count letter|letter count|number letter|word length"),
    "count_characters": _any("count character|character count|char count|count char|length"),
    "count_words": _any("count word|word count|number word"),
    "count_vowels": _any("count vowel|vowel count|vowel"),
    "count_occurrences": _any(
        "count occurrence|occurrence|count letter|count character|letter count|count char|count in"
    ),
    "reverse": _any("reverse|reversed|backward|flip text|flip string"),
    "uppercase": _any("uppercase|upper|to upper|upper case"),
    "lowercase": _any("lowercase|lower|to lower|lower case"),
    "sort_words": _any("sort word|sort|order word|alphabetize"),
    "is_palindrome": _any("palindrome"),
}

# operator or function -> the same for tools that do only that
OPERATION_SIGNS: dict[str, tuple[frozenset[str], ...]] = {
    "+": _any("add|sum|plus|addition"),
    "-": _any("subtract|minus|difference|sub|subtraction"),
    "*": _any("multiply|product|time|multiplication|mul"),
    "/": _any("divide|quotient|division|div"),
    "%": _any("modulo|mod|remainder"),
    "**": _any("power|pow|exponent|raise"),
    "neg": _any("negate|neg"),
    "sqrt": _any("sqrt|square root|root"),
    "cbrt": _any("cbrt|cube root"),
    "factorial": _any("factorial"),
    "abs": _any("abs|absolute"),
    "round": _any("round"),
}

# slot of an ask -> words in the name of a parameter that takes it; slots are placed in this order
ROLES: Mapping[str, frozenset[str]] = {
    role: frozenset(words.split())
    for role, words in {
        "expression": "expression expr formula equation calculation math input query problem",
        "end": "end to until till second later 2 b other target",
        "start": "start from begin first earlier since 1 a date",
        "days": "day n amount delta offset number count",
        "months": "month",
        "date": "date day start base when from",
        "zone": "zone timezone tz location city place",
        "search": "search character char letter substring needle sub target pattern",
        "text": "text word string s input sentence phrase content value message",
        "to_unit": "to target dest destination into",
        "from_unit": "from source src unit",
        "value": "value amount quantity number x magnitude",
    }.items()
}

# what a kind is called where no tool fits it; others are called by their names
LABELS = {
    "add_days": "counting from a date",
    "calculate": "arithmetic",
    "convert": "converting units",
    "days_between": "days between two dates",
    "now": "telling the current date or time",
    "weekday": "telling the weekday of a date",
}
