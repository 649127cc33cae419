"""Recognises steps that say nearly the same in other words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from agent_brain.common.secrets import get_logger
from agent_brain.memories.base import Memory
from agent_brain.memories.embedders import as_embedder
from agent_brain.memories.embedders.base import embed_all
from agent_brain.memories.recall.tokenizer import runs, terms
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.stuck import StuckPolicy

log = get_logger(__name__)


@dataclass(slots=True)
class _Said:
    mark: str
    about: Sequence[str]
    text: str
    vector: Any = None  # or its words


class Paraphrases:
    """The last texts of a run: what says nearly the same as one of them gets its fingerprint.

    Texts are compared from the second one on, so a run that answers at once embeds nothing.

    Args:
        policy: From when on texts count as equal, and what embeds them.
    """

    def __init__(self, policy: StuckPolicy) -> None:
        self._embedder = as_embedder(policy.embedder)
        self._similar = policy.similar or 1
        self._said: deque[_Said] = deque(maxlen=policy.threshold * policy.max_cycle)

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
            await self._read([each for each in (*others, said) if each.vector is None], memory)
        except Exception as error:
            log.warning("Texts are compared as they are, as they could not be embedded: %s", error)
            return mark
        likeness, best = max((_likeness(other, said), other.mark) for other in others)
        said.mark = best if likeness >= self._similar else mark
        return said.mark

    async def _read(self, texts: Sequence[_Said], memory: Memory) -> None:
        vectors: Iterable[Any] = (frozenset(terms(runs(said.text))) for said in texts)
        if self._embedder is not None:
            with memory.work_for(EMBEDDING):
                vectors = await embed_all(self._embedder, [said.text for said in texts])
        for said, vector in zip(texts, vectors, strict=True):
            said.vector = vector


def _likeness(one: _Said, other: _Said) -> float:
    """Return the cosine of two vectors, or the share of words that both texts have."""
    a, b = one.vector, other.vector
    if isinstance(a, frozenset):
        return len(a & b) / (len(a | b) or 1)
    return float(a @ b) / (float((a @ a) * (b @ b)) ** 0.5 or 1)
