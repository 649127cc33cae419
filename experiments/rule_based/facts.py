"""Read facts and questions in plain English sentences.

A fact is "The code of the cellar is 4821." or an entry of a record, "Ann Berg. town: Bergen; …", or
an equation, "17 + 25 = 42". A question names a fact: "What is the code of the cellar?". What is
asked for may be reached over several facts: "the town of the manager of Logistics".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from agent_brain.experiments.expressions import ExpressionError, read_expression, write

Facts = dict[str, str]
"""Values by what they are the value of: ``"code of cellar"``, or an expression."""

_SENTENCE = r"(?:[^.?!;:\n]|\.(?=\d))+?"
_FACT = re.compile(
    rf"\bthe ({_SENTENCE} of {_SENTENCE}) (?:is|are) (?:now )?({_SENTENCE})[.!](?!\d)", re.I
)
_QUESTION = re.compile(
    rf"\b(?:what is|find|look up|tell me) the ({_SENTENCE} of {_SENTENCE})[.?!](?!\d)", re.I
)
_ENTRY = re.compile(r"(?:^|[.;]) *([a-z][a-z ]*): ([^;\n]+?)(?=\.?(?:;|$))", re.MULTILINE)
_EQUATION = re.compile(r"([(\d-][\d\s()+*/-]*[\d)]) = (-?\d+(?:/\d+)?)(?![\d.]*\d)")
_DATA = re.compile(r"<data>.*?</data>", re.DOTALL)
_DATE = re.compile(r"\[(\d{4}-\d\d-\d\d(?: \d\d:\d\d)?)")
_OF = re.compile(r" of (?:the )?", re.I)


def facts_in(texts: Iterable[str]) -> Facts:
    """Return the facts that texts state; of several about one thing, the last."""
    found: Facts = {}
    for text in texts:
        found |= {name: value for _, name, value in statements_in(text)}
        for match in _EQUATION.finditer(text):
            try:
                found[write(read_expression(match[1]))] = match[2]
            except ExpressionError:
                continue
    return found


def statements_in(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield the sentences that state a fact, each with what it is the value of, and the value."""
    for match in _FACT.finditer(text):
        yield match[0], key(chain(match[1])), match[2].strip()


def in_order(record: str) -> str:
    """Return a record of what was said with its lines by their dates, which some show best first.

    Without what others said: it stands in ``<data>``.
    """
    lines = _DATA.sub("", record).splitlines()
    return "\n".join(sorted(lines, key=lambda line: "".join(_DATE.findall(line)[:1])))


def entries_in(record: str) -> Facts:
    """Return the entries of a record: ``"Ann Berg. town: Bergen; room: 12"``."""
    return {match[1].casefold(): match[2].strip() for match in _ENTRY.finditer(record)}


def questions_in(text: str) -> list[list[str]]:
    """Return what a text asks for, each as a chain: ``["town", "manager", "Logistics"]``."""
    return [chain(match[1]) for match in _QUESTION.finditer(text)]


def chain(phrase: str) -> list[str]:
    """Return the parts of "the town of the manager of Logistics"."""
    parts = [part.strip() for part in _OF.split(phrase)]
    return [re.sub(r"^the ", "", parts[0], flags=re.I), *parts[1:]]


def key(parts: Iterable[str]) -> str:
    """Return the key of a fact."""
    return " of ".join(parts).casefold()


def words_of(parts: Iterable[str]) -> str:
    """Return a chain as it is said: "the town of the manager of Logistics"."""
    first, *rest = parts
    *between, subject = rest
    named = subject if subject[:1].isupper() or subject.startswith("my ") else f"the {subject}"
    said = " of ".join(["the " + part for part in (first, *between)])
    return f"{said} of {named}"


def shorter(parts: list[str]) -> Iterator[list[str]]:
    """Yield the chains that lead to a chain, the shortest first, and the chain itself."""
    for begin in range(len(parts) - 2, -1, -1):
        yield parts[begin:]
