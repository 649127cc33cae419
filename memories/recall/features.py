"""The properties of messages besides their words and vectors, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.arrays import GrowableArray
from agent_brain.memories.recall.participants import NOBODY

ROW = np.dtype(
    [
        ("speaker", np.int32),  # a number
        ("thread", np.int32),  # the number of the conversation
        ("time", np.float64),  # seconds since 1970; not a number if that is not known
        ("user", np.bool_),  # a person said it, and neither an assistant nor a tool
        ("asks", np.float32),  # 1 if it only asks, 0.5 if it ends with a question
        ("passages", np.uint16),  # that have vectors
        ("length", np.float32),  # the logarithm of the number of words
    ]
)
SOON = 50  # messages after which age begins to count
PAUSE = 6 * 3600.0  # seconds without a message after which the subject is a new one
DAY = 24 * 3600.0
FIRST_DAY = date(1970, 1, 1).toordinal()


class Order(NamedTuple):
    """How the messages are read, one after another.

    Attributes:
        rows: The rows as they are read, each thread in one piece.
        sittings: The number of the sitting of each of ``rows``; it ends at a pause.
        sitting: The number of the sitting of each row.
        recency: Of the newest message of the sitting: from 1 for the newest of all, and little less
            for the next :data:`SOON`, to 0 for the oldest.
        longer: The logarithm of how many times longer the messages of others are than those of
            users; 0 if they are not, or if there are no others.
        among_people: Several people with names talk with each other, and not one with an assistant.
    """

    rows: NDArray[np.intp]
    sittings: NDArray[np.int32]
    sitting: NDArray[np.int32]
    recency: NDArray[np.float32]
    longer: float
    among_people: bool


class Features:
    """One row for each message, numbered from 0 as they are added; see :data:`ROW`."""

    def __init__(self) -> None:
        self._table: GrowableArray[Any] = GrowableArray(ROW)
        self._order: Order | None = None

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column of :data:`ROW`, valid until the length changes."""
        values: NDArray[Any] = self._table.rows[column]
        return values

    def add(self, columns: Sequence[Sequence[Any]]) -> None:
        """Add rows as the columns of :data:`ROW`, with the numbers of words as their lengths."""
        added = np.rec.fromarrays(columns, ROW)
        added["length"] = np.log1p(added["length"].astype(np.float64))
        self._table.extend(added)
        self._order = None

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, and renumber the others."""
        self._table.keep(rows)
        self._order = None

    def days(self) -> NDArray[np.float64]:
        """Return the day (UTC) of each row as a proleptic ordinal; not a number if unknown."""
        return self["time"] // DAY + FIRST_DAY

    def years(self) -> range:
        """Return the years (UTC) from the first to the last message."""
        times = self["time"][~np.isnan(self["time"])]
        if not len(times):
            return range(0)
        first, last = (datetime.fromtimestamp(t, UTC).year for t in (times.min(), times.max()))
        return range(first, last + 1)

    def order(self) -> Order:
        """Return the order of the rows."""
        if self._order is None:
            oldest = np.argsort(np.nan_to_num(self["time"], nan=-np.inf), kind="stable")
            recency = np.zeros(len(self), np.float32)
            ages = np.log1p(np.arange(len(self)) / SOON) / np.log1p(len(self) / SOON)
            recency[oldest[::-1]] = 1 - ages
            rows = np.argsort(self["thread"], kind="stable")
            threads, times = self["thread"][rows], self["time"][rows]
            cuts = (np.diff(threads) != 0) | (np.abs(np.diff(times)) > PAUSE)
            sittings = np.zeros(len(rows), np.int32)
            np.cumsum(cuts, out=sittings[1:])
            sitting = np.empty_like(sittings)
            sitting[rows] = sittings
            if len(rows):
                starts = np.flatnonzero(np.diff(sittings, prepend=-1))
                recency[rows] = np.maximum.reduceat(recency[rows], starts)[sittings]
            users, lengths = self["user"][rows], self["length"][rows]
            longer = 0.0
            if users.any() and not users.all():
                longer = max(float(lengths[~users].mean() - lengths[users].mean()), 0.0)
            speakers = np.unique(self["speaker"][rows][users])
            people = len(speakers) > 1 and bool((speakers > NOBODY).all())
            self._order = Order(rows, sittings, sitting, recency, longer, people)
        return self._order
