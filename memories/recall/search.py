"""Searches the messages of a session: embeds the question, once, and does not block the loop."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from agent_brain.common.secrets import get_logger
from agent_brain.memories.embedders import Embedder, embed_all
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


async def search(
    index: RecallIndex | None,
    vectors: Vectors | Together,
    questions: dict[str, Any],
    question: str,
    k: int,
    *,
    where: Callable[[str], bool] | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    now: datetime,
    patient: bool = True,
    min_score: float | None = None,
    itself: str | None = None,
) -> list[Hit]:
    """Return the ``k`` messages that fit ``question`` best.

    Args:
        index: The messages.
        vectors: Their vectors.
        questions: The vectors of the last questions, which searches with one embedder may share.
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
    question = shortened(question)
    if index is None or not question.strip():
        return []
    cosines = None
    if vectors.dimension is not None and (patient or not vectors.failing):
        vector = await _embedded(vectors.embedder, index.dense_question(question), questions)
        if vector is not None:
            from agent_brain.memories.recall.meaning import NEAREST

            filtered = where is not None or since is not None or until is not None
            count = max(NEAREST_FILTERED if filtered else NEAREST, k)
            cosines = await vectors.nearest(vector, min(count, len(index)))
    find = partial(
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
        vectors=vectors.known,
    )
    return await anyio.to_thread.run_sync(find) if len(index) > EAGER else find()


async def _embedded(embedder: Embedder | None, text: str, known: dict[str, Any]) -> Any:
    """Return the vector of a text; None without an embedder, or if it fails."""
    if embedder is None:
        return None
    if text not in known:
        try:
            vector = (await embed_all(embedder, [text]))[0]
        except Exception as error:
            log.warning(
                "A question could not be embedded, so recall uses only its words: %s",
                error,
                exc_info=not isinstance(error, EmbeddingError),
            )
            return None
        if len(known) >= QUESTIONS:
            known.clear()
        known[text] = vector
    return known[text]
