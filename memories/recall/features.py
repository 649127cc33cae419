"""What is known of each message besides its words and its vector, as arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.growable_array import Growing
from agent_brain.memories.recall.query_analysis import Traits

PAUSE = 6 * 3600.0  # seconds of silence after which people start on something else
NO_DAY = -(10**6)  # no day of any calendar is near it


@dataclass(frozen=True)
class Reading:
    """Rows in the order in which they are read: each conversation in one piece.

    Attributes:
        rows: Numbers of the rows that are there.
        sittings: For each of them the stretch of talk that it belongs to; equal ones are adjacent.
    """

    rows: NDArray[np.intp]
    sittings: NDArray[np.int32]


class Columns:
    """One entry a row in each array. Rows are numbered as they are added, from 0."""

    def __init__(self) -> None:
        self._there = Growing(np.bool_)
        self._speakers = Growing(np.int32)
        self._threads = Growing(np.int32)
        self._times = Growing(np.float64)
        self._days = Growing(np.int32)
        self._tell_time = Growing(np.float32)
        self._ask = Growing(np.float32)
        self._fullness = Growing(np.float32)
        self._reading: Reading | None = None
        self._years: Counter[int] = Counter()

    def add(self, traits: Traits, time: datetime | None, speaker: int, thread: int) -> None:
        """Add a row; ``speaker`` and ``thread`` are numbers that stand for them."""
        self._there.append(True)
        self._speakers.append(speaker)
        self._threads.append(thread)
        self._times.append(np.nan if time is None else time.timestamp())
        day = None if time is None else time.astimezone(UTC)
        self._days.append(NO_DAY if day is None else day.toordinal())
        self._tell_time.append(traits.tells_time)
        self._ask.append(traits.asks)
        self._fullness.append(traits.fullness)
        self._reading = None
        if day is not None:
            self._years[day.year] += 1

    def clear(self, row: int) -> tuple[int, int]:
        """Take a row out; its number stays taken until :meth:`keep`. Returns speaker and thread."""
        self._there.rows[row] = False
        self._reading = None
        day = int(self._days.rows[row])
        if day != NO_DAY:
            self._years[date.fromordinal(day).year] -= 1
        return int(self._speakers.rows[row]), int(self._threads.rows[row])

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Renumber: drop the rows where ``rows`` is false."""
        for column in vars(self).values():
            if isinstance(column, Growing):
                column.keep(rows)
        self._reading = None

    @property
    def years(self) -> list[int]:
        """The years (UTC) in which anything was said."""
        return [year for year, count in self._years.items() if count]

    @property
    def there(self) -> NDArray[np.bool_]:
        """Whether the row is there: false once it was cleared."""
        return self._there.rows

    @property
    def speakers(self) -> NDArray[np.int32]:
        """The number of who said it."""
        return self._speakers.rows

    @property
    def times(self) -> NDArray[np.float64]:
        """When it was said, in seconds since 1970; not a number where that is not known."""
        return self._times.rows

    @property
    def days(self) -> NDArray[np.int32]:
        """The day (UTC) when it was said, as a proleptic ordinal."""
        return self._days.rows

    @property
    def tell_time(self) -> NDArray[np.float32]:
        """1 where it has a word of time."""
        return self._tell_time.rows

    @property
    def ask(self) -> NDArray[np.float32]:
        """1 where it is a question."""
        return self._ask.rows

    @property
    def fullness(self) -> NDArray[np.float32]:
        """How much it can tell, see :class:`~agent_brain.memories.recall.query_analysis.Traits`."""
        return self._fullness.rows

    def reading(self) -> Reading:
        """The rows in reading order: a thread at a time, cut where it paused."""
        if self._reading is None:
            rows = np.flatnonzero(self.there)
            rows = rows[np.argsort(self._threads.rows[rows], kind="stable")]
            threads, times = self._threads.rows[rows], self.times[rows]
            cuts = (np.diff(threads) != 0) | (np.abs(np.diff(times)) > PAUSE)
            sittings = np.zeros(len(rows), np.int32)
            np.cumsum(cuts, out=sittings[1:])
            self._reading = Reading(rows, sittings)
        return self._reading
