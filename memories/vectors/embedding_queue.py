"""Texts that wait for their vectors, and what happens when an embedder fails."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.tools.secrets import get_logger
from agent_brain.tools.text import shorten

log = get_logger(__name__)
EMBEDDED_TOKENS = 2_000  # of a message; what a huge one is about shows in its head and its tail

Give = Callable[[Mapping[str, str], Iterable[Any]], None]


def embedded(text: str) -> str:
    """What is embedded of a message's text."""
    return shorten(text, EMBEDDED_TOKENS)


class EmbeddingQueue:
    """Texts by message id, embedded in batches.

    A batch on which the embedder fails is set aside and tried again the next time, in ever smaller
    parts: new texts go first, and one that no model takes does not hold up the others.

    Attributes:
        failing: The embedder failed when it was last asked.
    """

    def __init__(self) -> None:
        self.failing = False
        self._fresh: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._together = 1  # so many of the refused are tried at once

    def __bool__(self) -> bool:
        return bool(self._fresh or self._refused)

    def add(self, message_id: str, text: str) -> None:
        """Have ``text`` wait."""
        self._fresh[message_id] = text

    def drop(self, message_id: str) -> None:
        """A message is gone; unknown ids are passed over."""
        self._fresh.pop(message_id, None)
        self._refused.pop(message_id, None)

    def take(self, message_id: str, text: str) -> bool:
        """End the waiting of ``text``, as it has its vector; whether it has waited at all."""
        for waiting in (self._fresh, self._refused):
            if waiting.get(message_id) == text:
                del waiting[message_id]
                return True
        return False

    def waiting(self) -> dict[str, str]:
        """A copy of all that wait."""
        return {**self._refused, **self._fresh}

    async def embed(self, embedder: Embedder, give: Give, *, strict: bool) -> None:
        """Hand all vectors that can be had to ``give``, which takes their texts.

        Args:
            embedder: Makes the vectors.
            give: Called with texts by id and their vectors, in the same order; it calls
                :meth:`take` for each that is still wanted.
            strict: Raise if the embedder fails.
        """
        while self._fresh:
            batch = dict(islice(self._fresh.items(), embedder.batch_size))
            if not await self._try(embedder, batch, give, strict=strict):
                self._set_aside(batch, self._fresh)
                return
        while self._refused:
            batch = dict(islice(self._refused.items(), self._together))
            if not await self._try(embedder, batch, give, strict=strict):
                self._set_aside(batch, self._refused)
                return
            self._together = min(2 * self._together, embedder.batch_size)

    def _set_aside(self, batch: Mapping[str, str], among: dict[str, str]) -> None:
        """To the end of the refused."""
        for message_id in batch:
            if message_id in among:
                self._refused[message_id] = among.pop(message_id)
        self._together = max(1, len(batch) // 2)

    async def _try(
        self, embedder: Embedder, batch: dict[str, str], give: Give, *, strict: bool
    ) -> bool:
        texts = [embedded(text) for text in batch.values()]
        try:
            vectors = await embed_all(embedder, texts)
        except Exception:
            self.failing = True
            if strict:
                raise
            log.warning("%d messages could not be embedded yet", len(batch), exc_info=True)
            return False
        self.failing = False
        give(batch, vectors)
        for message_id, text in batch.items():  # gone meanwhile, or said anew with another text
            self.take(message_id, text)
        return True
