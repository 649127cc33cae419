"""The cosine of a question to every message, from unit vectors in RAM and from an index.

If all vectors are in RAM the cosines are exact. Of a large session only a sample is in RAM, which
gives the mean and the spread; the cosines of the nearest messages come from the index of the store,
and all other messages get the mean.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_brain.memories.errors import EmbeddingError
from agent_brain.memories.recall.features import GrowableArray

Floats = NDArray[np.float32]
SPREAD = 0.1  # standard deviation of the cosines of a question to the messages of a conversation
FEW = 5  # messages that are assumed, as a few real ones are no basis for statistics
NOBODY = -1


class DenseIndex:
    """One vector a row, in RAM or elsewhere, or none yet. Rows are numbered from 0 as added.

    All vectors have the dimension of the first.

    Attributes:
        held: The number of vectors in RAM.
    """

    def __init__(self) -> None:
        self._present = GrowableArray(np.bool_)
        self._slots = GrowableArray(np.int32)  # of each row: 1 + the place of its vector, or 0
        self._owners = GrowableArray(np.int32)  # of each vector in RAM: its row, or NOBODY
        self._vectors: GrowableArray[np.float32] | None = None
        self.held = 0

    @property
    def dimension(self) -> int | None:
        """The number of numbers in a vector; None if there is no vector in RAM."""
        return None if self._vectors is None else self._vectors.rows.shape[1]

    @property
    def present(self) -> NDArray[np.bool_]:
        """Whether each row has a vector."""
        return self._present.rows

    @property
    def elsewhere(self) -> NDArray[np.bool_]:
        """Whether each row has a vector that is not in RAM."""
        absent: NDArray[np.bool_] = self.present & (self._slots.rows == 0)
        return absent

    def vectors(self) -> tuple[list[int], Floats]:
        """Return the rows whose vectors are in RAM, and a copy of these at unit length."""
        if self._vectors is None:
            return [], np.zeros((0, 0), np.float32)
        held = self._owners.rows != NOBODY
        return self._owners.rows[held].tolist(), self._vectors.rows[held]

    def extend(self, count: int) -> None:
        """Add rows without vectors."""
        self._present.extend(count)
        self._slots.extend(count)

    def put(self, rows: Sequence[int], vectors: ArrayLike) -> None:
        """Set the vectors of rows; a vector of zeros counts as none.

        Raises:
            EmbeddingError: See :meth:`units`.
        """
        units = self.units(vectors)
        numbers = np.asarray(rows, np.int32)
        for row in numbers[self._slots.rows[numbers] > 0]:
            self.clear(int(row))
        self._present.rows[numbers] = False
        taken = units.any(axis=1)
        numbers, units = numbers[taken], units[taken]
        if not len(numbers):
            return
        if self._vectors is None:
            self._vectors = GrowableArray(np.float32, (units.shape[1],))
        first = len(self._owners)
        self._owners.extend(len(numbers))
        self._vectors.extend(len(numbers))
        self._owners.rows[first:] = numbers
        self._vectors.rows[first:] = units
        self._slots.rows[numbers] = np.arange(first + 1, len(self._owners) + 1)
        self._present.rows[numbers] = True
        self.held += len(numbers)

    def put_elsewhere(self, rows: Sequence[int]) -> None:
        """Note that rows have vectors that are not in RAM."""
        self._present.rows[rows] = True

    def clear(self, row: int) -> None:
        """Remove the vector of a row; its number is not used again before :meth:`keep`."""
        self._present.rows[row] = False
        slot = int(self._slots.rows[row])
        if not slot or self._vectors is None:
            return
        self._slots.rows[row] = 0
        self._owners.rows[slot - 1] = NOBODY
        self._vectors.rows[slot - 1] = 0
        self.held -= 1
        if not self.held:
            self._vectors, self._owners = None, GrowableArray(np.int32)

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Drop the rows where ``rows`` is false, and renumber the others."""
        for row in np.flatnonzero(~rows):
            self.clear(int(row))
        self._present.keep(rows)
        self._slots.keep(rows)
        if self._vectors is not None:
            held = self._owners.rows != NOBODY
            self._owners.keep(held)
            self._vectors.keep(held)
            numbers = np.cumsum(rows, dtype=np.int32) - 1
            self._owners.rows[:] = numbers[self._owners.rows]
            self._slots.rows[self._owners.rows] = np.arange(1, self.held + 1)

    def units(self, vectors: ArrayLike) -> Floats:
        """Return ``vectors``, one a row, at unit length; zeros stay zeros.

        Raises:
            EmbeddingError: They are not of this index's dimension, or not finite.
        """
        values = np.asarray(vectors, np.float64)
        if values.ndim != 2 or self.dimension not in (None, values.shape[1]):
            raise EmbeddingError(
                "recall",
                f"vectors of shape {values.shape} do not fit an index of dimension "
                f"{self.dimension}: were its messages embedded by another model? Embed them again",
            )
        lengths = np.linalg.norm(values, axis=1, keepdims=True)
        if not np.isfinite(lengths).all():
            raise EmbeddingError("recall", "a vector has numbers that are not finite")
        return (values / np.where(lengths == 0, 1, lengths)).astype(np.float32)

    def evidence(
        self, vector: ArrayLike, nearest: Mapping[int, float] | None = None
    ) -> tuple[Floats, Floats] | None:
        """Return the standardised cosine and the likeness of each row; None without vectors.

        The range of cosines depends on the embedder: with some, any two texts have 0.7 to 0.9. So
        a cosine is standardised to a mean of 0 and a standard deviation of :data:`SPREAD`. Rows
        without a vector get 0, the mean.

        The likeness is the cosine on a scale from 0, for unrelated texts, to 1; it is comparable
        between questions. :data:`FEW` messages that are unlike the question are assumed.

        Args:
            vector: The question's.
            nearest: Cosines of rows whose vectors are not in RAM.

        Raises:
            EmbeddingError: See :meth:`units`.
        """
        unit = self.units(np.asarray(vector)[None])[0]
        if self._vectors is None or not unit.any():
            return None
        rows = self._owners.rows
        # not @, whose threads wait for each other for tens of milliseconds on a busy machine
        known: Floats = np.einsum("ij,j->i", self._vectors.rows, unit)
        if self.held < len(rows):
            held = rows != NOBODY
            rows, known = rows[held], known[held]
        cosines = np.full(len(self.present), known.mean(), np.float32)
        if nearest:
            cosines[[*nearest]] = [*nearest.values()]
        cosines[rows] = known
        standard = (cosines - known.mean()) * (SPREAD / _spread(known))
        count = int(self.present.sum())
        base = min(float(known.mean()) * count / (count + FEW), 0.99)
        likeness = np.clip((cosines - np.float32(base)) / np.float32(1 - base), 0, 1)
        standard[~self.present] = 0
        likeness[~self.present] = 0
        return standard, likeness


def _spread(cosines: Floats) -> np.float32:
    """Return the standard deviation, with :data:`FEW` more cosines that have the usual one."""
    count = len(cosines)
    variance = (count * float(cosines.var()) + FEW * SPREAD**2) / (count + FEW)
    return np.float32(variance**0.5)
