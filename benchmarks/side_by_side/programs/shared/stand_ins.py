"""What the programs meet offline: a database, and a person who is asked."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from typing import Any


def shop() -> None:
    """Make a database."""
    with closing(sqlite3.connect("shop.db")) as database:
        database.executescript(
            "DROP TABLE IF EXISTS goods; CREATE TABLE goods (name, price); "
            "INSERT INTO goods VALUES ('tea', 4), ('milk', 2)"
        )


def person(*answers: str) -> Callable[[str], str]:
    """Return what stands for ``input``: it shows a question and gives the next answer."""
    given = iter(answers)

    def ask(question: str) -> str:
        print(question)
        return next(given)

    return ask


def flight(
    number: str, price: int, origin: str = "SFO", destination: str = "ANC"
) -> dict[str, Any]:
    """Return the data of a flight."""
    places = {"origin": origin, "destination": destination, "day": "2027-01-10"}
    return {"number": number, "price": price, **places}


PAGE = """
AK456, 10 January 2027, San Francisco (SFO) to Fairbanks (FAI): 320 dollars
LA101, 10 January 2027, San Francisco (SFO) to Anchorage (ANC): 350 dollars
AK123, 10 January 2027, San Francisco (SFO) to Anchorage (ANC): 380 dollars
"""
FLIGHTS = [flight("AK456", 320, destination="FAI"), flight("LA101", 350), flight("AK123", 380)]
SEAT = {"row": 14, "letter": "A"}
