"""The properties of messages besides their words and vectors, as arrays."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_brain.memories.recall.query_analysis import Traits

Scalar = TypeVar("Scalar", bound=np.generic)
CAPACITY = 16  # rows that an array has room for at least
PAUSE = 6 * 3600.0  # seconds without a message after which the subject is a new one
NO_DAY = -(10**6)  # no day of any calendar is near it


class GrowableArray(Generic[Scalar]):
    """Rows of one dtype; the capacity doubles when it is used up.

    Args:
        dtype: The type of the numbers.
        shape: The shape of one row; one number by default.
    """

    def __init__(self, dtype: type[Scalar], shape: tuple[int, ...] = ()) -> None:
        self._room = np.zeros((CAPACITY, *shape), dtype)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def rows(self) -> NDArray[Scalar]:
        """All rows as a view, valid until the length changes."""
        return self._room[: self._used]

    def append(self, row: ArrayLike) -> None:
        """Add a row at the end."""
        if self._used == len(self._room):
            self._move(self.rows, 2 * self._used)
        self._room[self._used] = row
        self._used += 1

    def extend(self, count: int) -> None:
        """Add ``count`` rows of zeros at the end."""
        used = self._used + count
        if used > len(self._room):
            self._move(self.rows, max(used, 2 * len(self._room)))
        self._used = used

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, and what they held from memory too."""
        kept = self.rows[rows]
        self._move(kept, max(CAPACITY, len(kept)))
        self._used = len(kept)

    def _move(self, rows: NDArray[Scalar], size: int) -> None:
        room = np.zeros((size, *self._room.shape[1:]), self._room.dtype)
        room[: len(rows)] = rows
        self._room = room


@dataclass(frozen=True)
class ReadingOrder:
    """Rows in the order in which they are read, each conversation in one piece.

    Attributes:
        rows: The numbers of the rows that exist; a slice if they are all, in this order.
        sittings: For each of them the number of its sitting, which ends at a pause.
    """

    rows: NDArray[np.intp] | slice
    sittings: NDArray[np.int32]


class Features:
    """One entry a row in each array. Rows are numbered from 0 as they are added.

    Attributes:
        there: Whether the row exists: false once it was cleared.
        speakers: The number of the speaker.
        threads: The number of the conversation.
        times: When it was said, in seconds since 1970; not a number if that is not known.
        days: The day (UTC) when it was said, as a proleptic ordinal.
        tell_time: 1 if it has a word of time.
        ask: 1 if it is a question.
        fullness: See
            :class:`~agent_brain.memories.recall.query_analysis.Traits`.
    """

    def __init__(self) -> None:
        self.there = GrowableArray(np.bool_)
        self.speakers = GrowableArray(np.int32)
        self.threads = GrowableArray(np.int32)
        self.times = GrowableArray(np.float64)
        self.days = GrowableArray(np.int32)
        self.tell_time = GrowableArray(np.float32)
        self.ask = GrowableArray(np.float32)
        self.fullness = GrowableArray(np.float32)
        self._order: ReadingOrder | None = None
        self._years: Counter[int] = Counter()

    def add(self, traits: Traits, time: datetime | None, speaker: int, thread: int) -> None:
        """Add a row; ``speaker`` and ``thread`` are their numbers."""
        self.there.append(True)
        self.speakers.append(speaker)
        self.threads.append(thread)
        self.times.append(np.nan if time is None else time.timestamp())
        day = None if time is None else time.astimezone(UTC)
        self.days.append(NO_DAY if day is None else day.toordinal())
        self.tell_time.append(traits.tells_time)
        self.ask.append(traits.asks)
        self.fullness.append(traits.fullness)
        self._order = None
        if day is not None:
            self._years[day.year] += 1

    def clear(self, row: int) -> tuple[int, int]:
        """Remove a row and return its speaker and thread; its number is free after keep()."""
        self.there.rows[row] = False
        self._order = None
        day = int(self.days.rows[row])
        if day != NO_DAY:
            self._years[date.fromordinal(day).year] -= 1
        return int(self.speakers.rows[row]), int(self.threads.rows[row])

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, and renumber the others."""
        for column in vars(self).values():
            if isinstance(column, GrowableArray):
                column.keep(rows)
        self._order = None

    @property
    def years(self) -> list[int]:
        """The years (UTC) of the messages."""
        return [year for year, count in self._years.items() if count]

    def order(self) -> ReadingOrder:
        """Return the rows thread by thread, cut at pauses."""
        if self._order is None:
            rows = np.flatnonzero(self.there.rows)
            rows = rows[np.argsort(self.threads.rows[rows], kind="stable")]
            threads, times = self.threads.rows[rows], self.times.rows[rows]
            cuts = (np.diff(threads) != 0) | (np.abs(np.diff(times)) > PAUSE)
            sittings = np.zeros(len(rows), np.int32)
            np.cumsum(cuts, out=sittings[1:])
            as_added = len(rows) == len(self.there) and bool((np.diff(rows) == 1).all())
            self._order = ReadingOrder(slice(None) if as_added else rows, sittings)
        return self._order
