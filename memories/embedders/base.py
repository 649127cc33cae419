"""What turns texts into vectors."""

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
    """Texts to vectors, so that texts of like meaning are close by their cosine.

    Attributes:
        name: Tells models apart: vectors of one are never compared with vectors of another.
        dimension: Numbers in a vector; None where that shows only when a text is embedded.
        batch_size: How many texts :func:`embed_all` hands over at a time.
    """

    name: str
    dimension: int | None = None
    batch_size: int = 64

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Any:
        """One vector for each of ``texts``, in order: a list of lists of numbers, or an array.

        Called with at least one and at most ``batch_size`` texts. Work that takes its time belongs
        in a thread (``anyio.to_thread``), so that nothing else waits for it.
        """

    async def aclose(self) -> None:
        """Give back what the embedder opened; twice is fine. Default: nothing."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


async def embed_all(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of any number of texts as the rows of a matrix, in batches, checked.

    Raises:
        EmbeddingError: The embedder gave back another number of vectors than it was given texts, or
            vectors of another dimension, or numbers that are not finite.
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
            f"gave back {type(vectors).__name__}, which is no list of vectors of one length",
        ) from error
    if matrix.ndim != 2 or len(matrix) != count:
        raise EmbeddingError(
            embedder.name,
            f"gave back an array of shape {matrix.shape} for {count} texts; it must give one "
            "vector for each text",
        )
    if matrix.shape[1] != (dimension or matrix.shape[1]) or not matrix.shape[1]:
        raise EmbeddingError(
            embedder.name, f"gave back vectors of {matrix.shape[1]} numbers, not of {dimension}"
        )
    if not np.isfinite(matrix).all():
        raise EmbeddingError(embedder.name, "gave back numbers that are not finite")
    return matrix
