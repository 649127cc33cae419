"""Arrays that grow at their end at a cost that does not depend on how long they are."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


class Growing(Generic[Scalar]):
    """Rows of one dtype; capacity doubles when it is used up.

    Args:
        dtype: Of the numbers.
        width: Numbers in a row; None for rows that are one number each.
    """

    def __init__(self, dtype: DTypeLike, width: int | None = None) -> None:
        self._room: NDArray[Scalar] = np.zeros((16,) if width is None else (16, width), dtype)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def rows(self) -> NDArray[Scalar]:
        """All rows, as a view: valid until the next change of length."""
        return self._room[: self._used]

    def append(self, row: object) -> None:
        """Add a row at the end."""
        self.extend(1)
        self._room[self._used - 1] = row

    def extend(self, count: int) -> None:
        """Add ``count`` rows of zeros at the end."""
        used = self._used + count
        if used > len(self._room):
            room = np.zeros((max(used, 2 * len(self._room)), *self._room.shape[1:]), self._room.dtype)
            room[: self._used] = self.rows
            self._room = room
        self._room[self._used : used] = 0
        self._used = used

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false; what they held is gone from memory too."""
        kept = self.rows[rows]
        room = np.zeros((max(len(kept), 16), *self._room.shape[1:]), self._room.dtype)
        room[: len(kept)] = kept
        self._room, self._used = room, len(kept)
