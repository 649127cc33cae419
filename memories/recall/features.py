"""The properties of messages besides their words and vectors, as arrays."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)
NOBODY = 0  # the number of no label
ROW = np.dtype(
    [
        ("speaker", np.int32),  # a number; below 0 for a role without a name
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


class Labels(dict[str, int]):
    """The numbers of labels, such as names of senders or terms: from 1, as they are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.last = NOBODY

    def __missing__(self, label: str) -> int:
        self.last += 1
        self[label] = self.last
        return self.last

    def keep(self, numbers: NDArray[np.int32]) -> list[str]:
        """Forget the labels with other numbers than these; return those labels."""
        used = np.zeros(self.last + 1, np.bool_)
        used[np.maximum(numbers, NOBODY)] = True
        gone = [label for label, number in self.items() if not used[number]]
        for label in gone:
            del self[label]
        return gone


class Column(Generic[Scalar]):
    """Rows of one dtype; the room doubles when it is used up.

    Args:
        dtype: The type of a row.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._room: NDArray[Scalar] = np.zeros(0, dtype)
        self._used = 0

    @property
    def rows(self) -> NDArray[Scalar]:
        """All rows as a view, valid until they change."""
        return self._room[: self._used]

    def extend(self, rows: ArrayLike) -> None:
        """Add rows at the end."""
        added = np.asarray(rows, self._room.dtype)
        used = self._used + len(added)
        if used > len(self._room):
            room = np.zeros(2 * used, self._room.dtype)
            room[: self._used] = self.rows
            self._room = room
        self._room[self._used : used] = added
        self._used = used

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, and what they held from memory too."""
        self._room = self.rows[rows]
        self._used = len(self._room)


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


class Features(Column[Any]):
    """One row for each message, numbered from 0 as they are added; see :data:`ROW`."""

    def __init__(self) -> None:
        super().__init__(ROW)
        self._ordered: tuple[int, NDArray[Any], Order] | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, column: str) -> NDArray[Any]:
        """Return a column of :data:`ROW`."""
        values: NDArray[Any] = self.rows[column]
        return values

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
        """Return the order of the rows, which is found once."""
        used, room = self._used, self._room  # another one when rows were dropped
        if self._ordered is None or self._ordered[0] != used or self._ordered[1] is not room:
            self._ordered = used, room, self._in_order()
        return self._ordered[2]

    def _in_order(self) -> Order:
        oldest = np.argsort(np.nan_to_num(self["time"], nan=-np.inf), kind="stable")
        recency = np.zeros(len(self), np.float32)
        recency[oldest[::-1]] = 1 - np.log1p(np.arange(len(self)) / SOON) / np.log1p(
            len(self) / SOON
        )
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
        return Order(rows, sittings, sitting, recency, longer, people)
