"""Searches the messages of a session: embeds the question, once, and does not block the loop."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from agent_brain.memories.embedders import embed_all
from agent_brain.memories.errors import EmbedderMismatchError, EmbeddingError, VectorStoreError
from agent_brain.memories.vectors.pipeline import VectorPipeline, embedded
from agent_brain.tools.secrets import get_logger

if TYPE_CHECKING:
    from agent_brain.memories.recall.index import Hit, RecallIndex

log = get_logger(__name__)
IN_THREAD = 5_000  # messages from which on a thread searches
NEAREST = 300  # messages that Chroma's index is asked for
NEAREST_FILTERED = 2_000  # with filters, as most of them may not pass
QUESTIONS = 16  # whose vectors are kept
BY_WORDS = 200  # of the best matches by words are compared by their vectors too


class Search:
    """Searches one session.

    Args:
        pipeline: The messages of the session.
        questions: The vectors of the last questions, which searches with one embedder may share.
    """

    def __init__(self, pipeline: VectorPipeline, questions: dict[str, Any]) -> None:
        self._pipeline = pipeline
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
        index, question = self._pipeline.index, embedded(question)
        if index is None or not question.strip():
            return []
        vector = await self._embed(question, index, patient=patient)
        nearest = None
        if vector is not None and index.partial:
            filtered = where is not None or since is not None or until is not None
            nearest = await self._nearest(question, vector, index, filtered=filtered)

        def search() -> list[Hit]:
            return index.search(
                question,
                k,
                query_vector=vector,
                nearest=nearest,
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

    async def _nearest(
        self, question: str, vector: Any, index: RecallIndex, *, filtered: bool
    ) -> dict[str, float]:
        """Return the cosines of the nearest messages in the store, and of the best by words.

        If the store fails, there are none: recall uses the words, and the vectors in RAM.
        """
        count = min(NEAREST_FILTERED if filtered else NEAREST, len(index))
        by_words = partial(index.best_by_words, question, BY_WORDS)
        try:
            return await self._pipeline.nearest(vector, count, by_words)
        except VectorStoreError:
            log.warning("The vectors of a large session cannot be searched", exc_info=True)
            return {}

    async def _embed(self, question: str, index: RecallIndex, *, patient: bool) -> Any:
        """Return its vector; None if there is none, or the embedder fails."""
        embedder = self._pipeline.embedder
        if embedder is None or index.dimension is None:
            return None
        text = index.dense_question(question)
        vector = self._questions.get(text)
        if vector is None:
            if self._pipeline.failing and not patient:
                return None
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
        known = index.dimension
        if known not in (None, len(vector)):
            raise EmbedderMismatchError(
                f"{embedder.name}, {known} numbers", f"{embedder.name}, {len(vector)} numbers"
            )
        return vector
