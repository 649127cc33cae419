"""The cosine of a question to every message: one matrix product over unit vectors.

Exact, and up to some ten thousand messages faster than an approximate index; at fifty thousand
still a few milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_brain.memories.errors import EmbeddingError
from agent_brain.memories.recall.growable_array import Growing

Floats = NDArray[np.float32]
SPREAD = 0.1  # standard deviation of the cosines of a question to the messages of a conversation
FEW = 5  # messages


class DenseIndex:
    """One vector a row, or none yet. Rows are numbered as they are added, from 0.

    All vectors have the dimension of the first.
    """

    def __init__(self) -> None:
        self._present = Growing(np.bool_)
        self._vectors: Growing[np.float32] | None = None

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; None while there is no vector."""
        return None if self._vectors is None else self._vectors.rows.shape[1]

    @property
    def present(self) -> NDArray[np.bool_]:
        """For each row, whether it has a vector."""
        return self._present.rows

    def matrix(self) -> Floats:
        """The vectors, one a row, at unit length; zeros where there is none."""
        if self._vectors is None:
            return np.zeros((len(self._present), 0), np.float32)
        return self._vectors.rows

    def extend(self, count: int) -> None:
        """Add rows without vectors."""
        self._present.extend(count)
        if self._vectors is not None:
            self._vectors.extend(count)

    def put(self, rows: Sequence[int], vectors: ArrayLike) -> None:
        """Give rows their vectors; a vector of zeros says nothing, as none does.

        Raises:
            EmbeddingError: See :meth:`units`.
        """
        units = self.units(vectors)
        if not rows:
            return
        if self._vectors is None:
            self._vectors = Growing(np.float32, (units.shape[1],))
            self._vectors.extend(len(self._present))
        self._vectors.rows[rows] = units
        self._present.rows[rows] = units.any(axis=1)

    def clear(self, row: int) -> None:
        """Forget the vector of a row; its number stays taken until :meth:`keep`."""
        self._present.rows[row] = False
        if not self._present.rows.any():
            self._vectors = None
        if self._vectors is not None:
            self._vectors.rows[row] = 0

    def keep(self, rows: NDArray[np.bool_]) -> None:
        """Renumber: drop the rows where ``rows`` is false."""
        self._present.keep(rows)
        if self._vectors is not None:
            self._vectors.keep(rows)

    def units(self, vectors: ArrayLike) -> Floats:
        """``vectors``, one a row, at unit length; zeros stay zeros.

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

    def scores(self, vector: ArrayLike) -> Floats | None:
        """How far the cosine of every row to ``vector`` stands out; None without vectors.

        Embedders differ in what a high cosine is: some keep all texts of the world between 0.7 and
        0.9. So a cosine counts by its distance from the mean, scaled to :data:`SPREAD`. Rows
        without a vector get 0: not knowing is no reason to rank a message above or below.

        Raises:
            EmbeddingError: See :meth:`units`.
        """
        cosines = self.cosines(vector)
        return None if cosines is None else self.standing_out(cosines)

    def cosines(self, vector: ArrayLike) -> Floats | None:
        """The cosine of every row to ``vector``, 0 without a vector; None if there are none at all.

        Raises:
            EmbeddingError: See :meth:`units`.
        """
        unit = self.units(np.asarray(vector)[None])[0]
        if self._vectors is None or not unit.any() or not self.present.any():
            return None
        cosines: Floats = self._vectors.rows @ unit
        cosines[~self.present] = 0
        return cosines

    def standing_out(self, cosines: Floats) -> Floats:
        """How far each of :meth:`cosines` stands out."""
        present = self.present
        known = cosines if present.all() else cosines[present]
        scores: Floats = (cosines - known.mean()) * (SPREAD / _spread(known))
        scores[~present] = 0
        return scores

    def likeness(self, cosines: Floats) -> Floats:
        """:meth:`cosines` from 0, what any two texts have, to 1; comparable between questions.

        Embedders differ in how like any two texts are, so that is learnt from all of them; of a few
        messages little can be learnt, so :data:`FEW` that are not like the question are added.
        """
        base = min(float(cosines.sum()) / (int(self.present.sum()) + FEW), 0.99)
        likeness: Floats = np.clip((cosines - np.float32(base)) / np.float32(1 - base), 0, 1)
        return likeness


def _spread(cosines: Floats) -> np.float32:
    """Their standard deviation; a few tell little of it, so :data:`FEW` usual ones are added."""
    count = len(cosines)
    variance = (count * float(cosines.var()) + FEW * SPREAD**2) / (count + FEW)
    return np.float32(variance**0.5)
