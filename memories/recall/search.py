"""Asks the index of a session: embeds the question, once, and searches without blocking."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from agent_brain.memories.embedders import embed_all
from agent_brain.memories.errors import EmbedderMismatchError
from agent_brain.memories.vectors.vector_index import VectorIndex
from agent_brain.tools.secrets import get_logger

if TYPE_CHECKING:
    from agent_brain.memories.recall.index import RecallIndex
    from agent_brain.memories.recall.items import Hit

log = get_logger(__name__)
IN_THREAD = 5_000  # messages to search, above which a thread does it


class Questions:
    """Questions to one session.

    Args:
        vectors: The messages of the session.
    """

    def __init__(self, vectors: VectorIndex) -> None:
        self._vectors = vectors
        self._last: tuple[str, Any] = ("", None)  # a question, and its vector

    async def find(
        self,
        question: str,
        k: int,
        where: Callable[[str], bool] | None,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        now: datetime,
        patient: bool = True,
        min_score: float | None = None,
        itself: str | None = None,
    ) -> list[Hit]:
        """The ``k`` messages that fit ``question`` best.

        Args:
            question: Any text.
            k: How many at most.
            where: Only messages for whose id this is true.
            since: Only messages of this moment or later.
            until: Only messages of before this moment.
            now: When the question is asked.
            patient: Ask the embedder even if it failed when it was last asked.
            min_score: Only messages with this score or a better one.
            itself: Id of the message that is the question, if there is one.

        Raises:
            EmbedderMismatchError: The messages were embedded by another model.
        """
        index = self._vectors.words
        if index is None or not question.strip():
            return []
        vector = await self._embed(question, index, patient=patient)

        def search() -> list[Hit]:
            return index.search(
                question,
                k,
                query_vector=vector,
                since=since,
                until=until,
                where=where,
                now=now,
                min_score=min_score,
                itself=itself,
            )

        if len(index) > IN_THREAD:
            return await anyio.to_thread.run_sync(search)
        return search()

    async def _embed(self, question: str, index: RecallIndex, *, patient: bool) -> Any:
        """Its vector; None where there is none, and where the embedder fails."""
        embedder = self._vectors.embedder
        if embedder is None or index.dimension is None:
            return None
        text = index.dense_question(question)
        if self._last[0] != text or self._last[1] is None:
            if self._vectors.failing and not patient:
                return None
            try:
                self._last = text, (await embed_all(embedder, [text]))[0]
            except Exception:
                log.warning("A question could not be embedded; words decide", exc_info=True)
                return None
        vector, known = self._last[1], index.dimension
        if known not in (None, len(vector)):
            raise EmbedderMismatchError(
                f"{embedder.name}, {known} numbers", f"{embedder.name}, {len(vector)} numbers"
            )
        return vector
