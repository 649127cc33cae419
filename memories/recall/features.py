"""The properties of messages besides their words and vectors, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.arrays import GrowableArray

ROW = np.dtype(
    [
        ("there", np.bool_),  # false once the row was cleared
        ("speaker", np.int32),  # a number
        ("thread", np.int32),  # the number of the conversation
        ("time", np.float64),  # seconds since 1970; not a number if that is not known
        ("asks", np.bool_),  # it is a question, and is rarely an answer
        ("fullness", np.float32),  # the logarithm of the number of words, at most LONG_ENOUGH
    ]
)
LONG_ENOUGH = 3.5  # more than some thirty words add nothing
PAUSE = 6 * 3600.0  # seconds without a message after which the subject is a new one
DAY = 24 * 3600.0
FIRST_DAY = date(1970, 1, 1).toordinal()


class Features:
    """One row for each message, numbered from 0 as they are added; see :data:`ROW`."""

    def __init__(self) -> None:
        self._table: GrowableArray[Any] = GrowableArray(ROW)
        self._order: tuple[NDArray[np.intp], NDArray[np.int32]] | None = None

    def __len__(self) -> int:
        return len(self._table)

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column of :data:`ROW`, valid until the length changes."""
        values: NDArray[Any] = self._table.rows[column]
        return values

    def add(
        self,
        speakers: Sequence[int],
        threads: Sequence[int],
        times: Sequence[datetime | None],
        asks: Sequence[bool],
        words: Sequence[int],
    ) -> None:
        """Add rows; ``words`` are how many words they have."""
        added = np.zeros(len(times), ROW)
        added["there"] = True
        added["speaker"] = speakers
        added["thread"] = threads
        added["time"] = [np.nan if time is None else time.timestamp() for time in times]
        added["asks"] = asks
        added["fullness"] = np.minimum(np.log1p(words), LONG_ENOUGH)
        self._table.extend(added)
        self._order = None

    def clear(self, rows: Sequence[int]) -> None:
        """Remove rows; their numbers are free after :meth:`keep`."""
        self._table.rows[rows] = np.zeros(1, ROW)
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
        times = self["time"][self["there"] & ~np.isnan(self["time"])]
        if not len(times):
            return range(0)
        first, last = (datetime.fromtimestamp(t, UTC).year for t in (times.min(), times.max()))
        return range(first, last + 1)

    def order(self) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
        """Return the rows in the order in which they are read, each thread in one piece.

        The second array has the number of the sitting of each, which ends at a pause.
        """
        if self._order is None:
            rows = np.flatnonzero(self["there"])
            rows = rows[np.argsort(self["thread"][rows], kind="stable")]
            threads, times = self["thread"][rows], self["time"][rows]
            cuts = (np.diff(threads) != 0) | (np.abs(np.diff(times)) > PAUSE)
            sittings = np.zeros(len(rows), np.int32)
            np.cumsum(cuts, out=sittings[1:])
            self._order = rows, sittings
        return self._order
