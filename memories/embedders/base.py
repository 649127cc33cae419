"""The base class for embedders, and embedding in checked batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agent_brain.common.text import clean
from agent_brain.memories.errors import EmbeddingError
from agent_brain.memories.runs.work import current_work

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class EmbeddingResult:
    """Vectors, and what they have used.

    Attributes:
        vectors: One for each text, in order.
        input_tokens: How many tokens the model has read; None if unknown.
        cost: US dollars; None if unknown.
    """

    vectors: Any
    input_tokens: int | None = None
    cost: float | None = None


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
        local: Whether the model runs on this machine and costs nothing.
    """

    name: str
    dimension: int | None = None
    batch_size: int = 64
    local: bool = False

    @abstractmethod
    async def embed(self, texts: Sequence[str]) -> Any:
        """Return one vector for each of ``texts``, in order: a list of lists, or an array.

        Called with at least one and at most ``batch_size`` texts. Slow computations belong in a
        thread (``anyio.to_thread``).
        """

    async def embed_with_usage(self, texts: Sequence[str]) -> EmbeddingResult:
        """Return what :meth:`embed` returns, with its tokens and cost.

        The default knows neither, unless the model is ``local`` or :meth:`embed` returns an
        :class:`EmbeddingResult`.
        """
        result = await self.embed(texts)
        if isinstance(result, EmbeddingResult):
            return result
        return EmbeddingResult(result, 0, 0.0) if self.local else EmbeddingResult(result)

    async def aclose(self) -> None:
        """Release resources; idempotent. Does nothing by default."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"


async def embed_all(embedder: Embedder, texts: Sequence[str]) -> NDArray[np.float32]:
    """Embed any number of texts in batches and return the vectors as the rows of a matrix.

    Inside :meth:`Memory.work_for` the run makes the calls.

    Raises:
        EmbeddingError: The embedder returned the wrong number of vectors, vectors of the wrong
            dimension, or numbers that are not finite.
    """
    import numpy as np

    dimension = embedder.dimension
    work = current_work()
    parts = []
    for start in range(0, len(texts), embedder.batch_size):
        batch = [clean(text) for text in texts[start : start + embedder.batch_size]]
        if work is None:
            vectors = (await embedder.embed_with_usage(batch)).vectors
        else:
            vectors = await work[0].embed(embedder, batch)
        parts.append(_checked(embedder, vectors, len(batch), dimension))
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
