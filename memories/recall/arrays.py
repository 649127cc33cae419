"""An array that grows."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)
CAPACITY = 16  # rows that an array has room for at least


class GrowableArray(Generic[Scalar]):
    """Rows of one dtype; the capacity doubles when it is used up.

    Args:
        dtype: The type of a row.
    """

    def __init__(self, dtype: DTypeLike) -> None:
        self._room: NDArray[Scalar] = np.zeros(CAPACITY, dtype)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def rows(self) -> NDArray[Scalar]:
        """All rows as a view, valid until the length changes."""
        return self._room[: self._used]

    def extend(self, rows: ArrayLike) -> None:
        """Add rows at the end."""
        added = np.asarray(rows, self._room.dtype)
        used = self._used + len(added)
        if used > len(self._room):
            self._move(self.rows, max(used, 2 * len(self._room)))
        self._room[self._used : used] = added
        self._used = used

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, and what they held from memory too."""
        kept = self.rows[rows]
        self._move(kept, max(CAPACITY, len(kept)))
        self._used = len(kept)

    def _move(self, rows: NDArray[Scalar], size: int) -> None:
        room = np.zeros(size, self._room.dtype)
        room[: len(rows)] = rows
        self._room = room
