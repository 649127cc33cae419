"""Vectors in RAM: those that are not stored in Chroma, or not yet."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from agent_brain.memories.errors import EmbeddingError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike, NDArray

Floats: TypeAlias = "NDArray[np.float32]"
CAPACITY = 16  # vectors that there is room for at least


class RamVectors:
    """Unit vectors by key, all of the dimension of the first."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._keys: list[str] = []
        self._room: Floats

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: object) -> bool:
        return key in self._places

    @property
    def dimension(self) -> int | None:
        """The number of numbers in a vector; None if there is no vector."""
        return self._room.shape[1] if self._keys else None

    def keys(self) -> list[str]:
        """Return all keys, oldest first unless some were removed."""
        return self._keys.copy()

    def rows(self, keys: Iterable[str]) -> dict[str, Floats]:
        """Return copies of the vectors of these keys, as far as there are any."""
        return {key: self._room[self._places[key]].copy() for key in keys if key in self._places}

    def put(self, keys: Sequence[str], vectors: ArrayLike) -> None:
        """Add vectors; known keys keep theirs."""
        units = unit_vectors(vectors)
        fresh = [i for i, key in enumerate(keys) if key not in self._places]
        used = len(self._keys)
        self._grow(used + len(fresh), units.shape[1])
        self._room[used : used + len(fresh)] = units[fresh]
        for i in fresh:
            self._places[keys[i]] = len(self._keys)
            self._keys.append(keys[i])

    def _grow(self, count: int, dimension: int) -> None:
        import numpy as np

        if not self._keys:
            self._room = np.zeros((max(CAPACITY, count), dimension), np.float32)
        elif count > len(self._room):
            more = np.zeros((max(count, 2 * len(self._room)), dimension), np.float32)
            more[: len(self._keys)] = self._room[: len(self._keys)]
            self._room = more

    def remove(self, key: str) -> bool:
        """Remove a vector, also from RAM; returns whether there was one."""
        place = self._places.pop(key, None)
        if place is None:
            return False
        last = self._keys.pop()
        if last != key:
            self._keys[place], self._places[last] = last, place
            self._room[place] = self._room[len(self._keys)]
        self._room[len(self._keys)] = 0
        return True

    def nearest(self, unit: Floats, count: int) -> dict[str, float]:
        """Return the cosines of the ``count`` vectors that are nearest to ``unit``."""
        if not self._keys:
            return {}
        import numpy as np

        keys, vectors = self._keys, self._room[: len(self._keys)]
        # not @, whose threads wait for each other for tens of milliseconds on a busy machine
        cosines = np.einsum("ij,j->i", vectors, unit)
        if count >= len(keys):
            return dict(zip(keys, cosines.tolist(), strict=True))
        places = np.argpartition(-cosines, count)[:count]
        return {keys[place]: float(cosines[place]) for place in places.tolist()}


def unit_vectors(vectors: ArrayLike) -> Floats:
    """Return ``vectors``, one a row, at unit length; zeros stay zeros.

    Raises:
        EmbeddingError: They are not vectors, or not finite.
    """
    import numpy as np

    values = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(values, axis=-1, keepdims=True)
    if values.ndim != 2 or not np.isfinite(lengths).all():
        raise EmbeddingError("recall", "a vector has numbers that are not finite, or is none")
    return (values / np.where(lengths == 0, 1, lengths)).astype(np.float32)
