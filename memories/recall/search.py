"""Searches the messages of a session: embeds the question, once, and does not block the loop."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from agent_brain.common.secrets import get_logger
from agent_brain.memories.embedders import embed_all
from agent_brain.memories.errors import EmbeddingError
from agent_brain.memories.recall.indexing import EAGER
from agent_brain.memories.recall.passages import shortened
from agent_brain.memories.vectors.vectors import Vectors

if TYPE_CHECKING:
    from agent_brain.memories.recall.index import Hit, RecallIndex
    from agent_brain.memories.recall.tenant import Together

log = get_logger(__name__)
NEAREST_FILTERED = 2_000  # with filters, as most of them may not pass
QUESTIONS = 16  # whose vectors are kept


class Search:
    """Searches one session.

    Args:
        index: Its messages.
        vectors: Their vectors.
        questions: The vectors of the last questions, which searches with one embedder may share.
    """

    def __init__(
        self, index: RecallIndex | None, vectors: Vectors | Together, questions: dict[str, Any]
    ) -> None:
        self._index = index
        self._vectors = vectors
        self._questions = questions

    async def find(
        self,
        question: str,
        k: int,
        where: Callable[[str], bool] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        *,
        now: datetime,
        patient: bool = True,
        min_score: float | None = None,
        itself: str | None = None,
    ) -> list[Hit]:
        """Return the ``k`` messages that fit ``question`` best.

        Args:
            question: Any text.
            k: The most messages to return.
            where: Only messages for whose ID this is true.
            since: Only messages of this moment or later.
            until: Only messages before this moment.
            now: When the question is asked.
            patient: Call the embedder even if it failed the last time.
            min_score: Only messages with this score or a better one.
            itself: The ID of the message that is the question, if there is one.

        Raises:
            EmbedderMismatchError: The messages were embedded by another model.
        """
        index, question = self._index, shortened(question)
        if index is None or not question.strip():
            return []
        vector = await self._embed(index.dense_question(question), patient=patient)
        cosines = None
        if vector is not None:
            from agent_brain.memories.recall.meaning import NEAREST

            filtered = where is not None or since is not None or until is not None
            count = max(NEAREST_FILTERED if filtered else NEAREST, k)
            cosines = await self._vectors.nearest(vector, min(count, len(index)))
        search = partial(
            index.search,
            question,
            k,
            cosines=cosines,
            since=since,
            until=until,
            where=where,
            now=now,
            min_score=min_score,
            itself=itself,
            vectors=self._vectors.known,
        )
        return await anyio.to_thread.run_sync(search) if len(index) > EAGER else search()

    async def _embed(self, text: str, *, patient: bool) -> Any:
        """Return the vector of a text; None if no message has one, or the embedder fails."""
        embedder, vectors = self._vectors.embedder, self._vectors
        if embedder is None or vectors.dimension is None or (vectors.failing and not patient):
            return None
        if text not in self._questions:
            try:
                vector = (await embed_all(embedder, [text]))[0]
            except Exception as error:
                log.warning(
                    "A question could not be embedded, so recall uses only its words: %s",
                    error,
                    exc_info=not isinstance(error, EmbeddingError),
                )
                return None
            if len(self._questions) >= QUESTIONS:
                self._questions.clear()
            self._questions[text] = vector
        return self._questions[text]
