"""Arrays that grow at their end at a cost that does not depend on how long they are."""

from __future__ import annotations

from typing import Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

Scalar = TypeVar("Scalar", bound=np.generic)
LEAST = 16  # rows that there is always room for


class Growing(Generic[Scalar]):
    """Rows of one dtype; capacity doubles when it is used up.

    Args:
        dtype: Of the numbers.
        shape: Of one row; the default is one number.
    """

    def __init__(self, dtype: type[Scalar], shape: tuple[int, ...] = ()) -> None:
        self._room = np.zeros((LEAST, *shape), dtype)
        self._used = 0

    def __len__(self) -> int:
        return self._used

    @property
    def rows(self) -> NDArray[Scalar]:
        """All rows, as a view: valid until the next change of length."""
        return self._room[: self._used]

    def append(self, row: ArrayLike) -> None:
        """Add a row at the end."""
        self.extend(1)
        self._room[self._used - 1] = row

    def extend(self, count: int) -> None:
        """Add ``count`` rows of zeros at the end."""
        used = self._used + count
        if used > len(self._room):
            self._move(self.rows, max(used, 2 * len(self._room)))
        self._used = used

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false; what they held is gone from memory too."""
        kept = self.rows[rows]
        self._move(kept, max(LEAST, len(kept)))
        self._used = len(kept)

    def _move(self, rows: NDArray[Scalar], size: int) -> None:
        room = np.zeros((size, *self._room.shape[1:]), self._room.dtype)
        room[: len(rows)] = rows
        self._room = room
