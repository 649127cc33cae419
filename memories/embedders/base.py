"""The base class for embedders, and embedding in checked batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agent_brain.memories.errors import EmbeddingError
from agent_brain.tools.text import clean

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Embedder(ABC):
    """Base class for embedders, which turn texts into vectors.

    Texts with similar meanings get vectors with a high cosine::

        class Lengths(Embedder):
            name = "lengths"

            async def embed(self, texts):
                return [[len(text), 1.0] for text in texts]

    Attributes:
        name: Identifies the model; vectors of different models are never compared.
        dimension: The number of numbers in a vector; None if it is not known beforehand.
        batch_size: The most texts that :func:`embed_all` passes at once.
    """

    name: str
    dimension: int | None = None
    batch_size: int = 64

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Any:
        """Return one vector for each of ``texts``, in order: a list of lists, or an array.

        Called with at least one and at most ``batch_size`` texts. Slow computations belong in a
        thread (``anyio.to_thread``).
        """

    async def aclose(self) -> None:
        """Release resources; idempotent. Does nothing by default."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


async def embed_all(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed any number of texts in batches and return the vectors as the rows of a matrix.

    Raises:
        EmbeddingError: The embedder returned the wrong number of vectors, vectors of the wrong
            dimension, or numbers that are not finite.
    """
    import numpy as np

    dimension = embedder.dimension
    parts = []
    for start in range(0, len(texts), embedder.batch_size):
        batch = [clean(text) for text in texts[start : start + embedder.batch_size]]
        parts.append(_checked(embedder, await embedder.embed(batch), len(batch), dimension))
        dimension = parts[0].shape[1]
    return np.concatenate(parts) if parts else np.zeros((0, dimension or 0), np.float32)


def _checked(
    embedder: Embedder, vectors: Any, count: int, dimension: int | None
) -> NDArray[np.float32]:
    import numpy as np

    try:
        matrix = np.asarray(vectors, np.float32)
    except (TypeError, ValueError) as error:
        raise EmbeddingError(
            embedder.name,
            f"returned {type(vectors).__name__}, which is not a list of vectors of one length",
        ) from error
    if matrix.ndim != 2 or len(matrix) != count:
        raise EmbeddingError(
            embedder.name,
            f"returned an array of shape {matrix.shape} for {count} texts; it must return one "
            "vector for each text",
        )
    if matrix.shape[1] != (dimension or matrix.shape[1]) or not matrix.shape[1]:
        raise EmbeddingError(
            embedder.name, f"returned vectors of {matrix.shape[1]} numbers, not of {dimension}"
        )
    if not np.isfinite(matrix).all():
        raise EmbeddingError(embedder.name, "returned numbers that are not finite")
    return matrix
