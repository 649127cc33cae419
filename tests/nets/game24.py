"""The Game of 24: make 24 of four numbers, each used once. Exact, in fractions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import combinations

Numbers = tuple[Fraction, ...]
_STEP = re.compile(r"(\S+) ([-+*/]) (\S+) = (\S+) \(left: (.*)\)")


def steps(numbers: Numbers) -> Iterator[tuple[str, Numbers]]:
    """Every way to put two of the numbers together, written as in the paper, and what is left."""
    for pair in combinations(range(len(numbers)), 2):
        one, two = numbers[pair[0]], numbers[pair[1]]
        rest = [n for index, n in enumerate(numbers) if index not in pair]
        ways = {(one, "+", two): one + two, (one, "*", two): one * two}
        ways |= {(one, "-", two): one - two, (two, "-", one): two - one}
        ways |= {(one, "/", two): one / two} if two else {}
        ways |= {(two, "/", one): two / one} if one else {}
        for (a, sign, b), value in ways.items():
            left = tuple(sorted([*rest, value]))
            yield f"{a} {sign} {b} = {value} (left: {' '.join(map(str, left))})", left


def left_after(puzzle: str, path: Sequence[str]) -> Numbers:
    """The numbers that are left after these thoughts."""
    text = path[-1].partition("left: ")[2].rstrip(")") if path else puzzle
    return tuple(sorted(map(Fraction, text.split())))


def propose(puzzle: str, path: Sequence[str]) -> list[str]:
    """Every thought that could come next."""
    return list(dict.fromkeys(text for text, _ in steps(left_after(puzzle, path))))


@cache
def solvable(numbers: Numbers) -> bool:
    """Whether 24 can be made of the numbers."""
    if len(numbers) == 1:
        return numbers[0] == 24
    return any(solvable(left) for _, left in steps(numbers))


def all_nodes(puzzle: str, path: tuple[str, ...] = ()) -> int:
    """How many thoughts an exhaustive search looks at."""
    found = propose(puzzle, path)
    return len(found) + sum(all_nodes(puzzle, (*path, thought)) for thought in found)


def is_solution(puzzle: str, path: Sequence[str]) -> bool:
    """Whether every thought is right, uses what was left, and the last leaves 24."""
    numbers = list(map(Fraction, puzzle.split()))
    for thought in path:
        match = _STEP.fullmatch(thought)
        assert match is not None
        a, sign, b, result = Fraction(match[1]), match[2], Fraction(match[3]), Fraction(match[4])
        value = {"+": a + b, "-": a - b, "*": a * b, "/": a / b if b else None}[sign]
        if value != result:
            return False
        numbers.remove(a)
        numbers.remove(b)
        numbers.append(result)
    return numbers == [24]
