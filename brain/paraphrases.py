"""Recognises steps that say nearly the same in other words."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zlib import crc32

from agent_brain.common.secrets import get_logger
from agent_brain.memories.base import Memory
from agent_brain.memories.embedders.base import Embedder, embed_all
from agent_brain.memories.recall.tokenizer import runs, terms
from agent_brain.memories.runs.work import EMBEDDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

log = get_logger(__name__)
WIDTH = 1024  # numbers of a vector of words


@dataclass(slots=True)
class _Said:
    mark: str
    about: Sequence[str]
    text: str
    vector: Any = None


class Paraphrases:
    """The last texts of a run: what says nearly the same as one of them gets its fingerprint.

    Texts are compared from the second one on, so a run that answers at once embeds nothing.

    Args:
        embedder: Makes the vectors, as work of the run; None compares words.
        similar: The least cosine, above 0 and at most 1.
        keep: How many texts are compared.
    """

    def __init__(self, embedder: Embedder | None, similar: float, keep: int) -> None:
        self._embedder = embedder
        self._similar = similar
        self._said: deque[_Said] = deque(maxlen=keep)

    async def mark(self, mark: str, about: Sequence[str], text: str, memory: Memory) -> str:
        """Return the fingerprint of a step that says nearly the same, or its own.

        Args:
            mark: Its own fingerprint.
            about: Its state, and what a person answered; other steps are not compared.
            text: What it says.
            memory: The memory of the run.
        """
        others = [said for said in self._said if said.about == about]
        said = _Said(mark, about, text)
        self._said.append(said)
        if not others or any(other.mark == mark for other in others):
            return mark
        try:
            await self._embed([*others, said], memory)
        except Exception as error:
            log.warning("Texts are compared as they are, as they could not be embedded: %s", error)
            return mark
        best = max(others, key=lambda other: float(other.vector @ said.vector))
        if float(best.vector @ said.vector) >= self._similar:
            said.mark = best.mark
        return said.mark

    async def _embed(self, texts: Sequence[_Said], memory: Memory) -> None:
        import numpy as np

        new = [said for said in texts if said.vector is None]
        if self._embedder is None:
            vectors = _words([said.text for said in new])
        else:
            with memory.work_for(EMBEDDING):
                vectors = await embed_all(self._embedder, [said.text for said in new])
        for said, vector in zip(new, vectors, strict=True):
            said.vector = vector / max(float(np.linalg.norm(vector)), 1e-9)


def _words(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return vectors that count the words of texts, but for function words, by their stems."""
    import numpy as np

    counts = np.zeros((len(texts), WIDTH), np.float32)
    for row, text in zip(counts, texts, strict=True):
        for term in terms(runs(text)):
            row[crc32(term.encode()) % WIDTH] += 1
    return counts
