"""Searches the messages of a session: embeds the question, once, and does not block the loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from agent_brain.common.secrets import get_logger
from agent_brain.memories.embedders import Embedder, embed_all
from agent_brain.memories.errors import EmbeddingError
from agent_brain.memories.recall.indexing import EAGER
from agent_brain.memories.recall.passages import LONGEST, fitting, shortened
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
    goal: str | None = None,
    is_goal: bool = False,
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
        goal: The ID of the goal, if it is here.
        is_goal: Whether it is the question.

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
            count += is_goal  # whose cosine is not counted
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
        goal=goal,
        is_goal=is_goal,
        vectors=vectors.known,
    )
    return await anyio.to_thread.run_sync(find) if len(index) > EAGER else find()


def passage_of(
    index: RecallIndex | None,
    vectors: Vectors | Together,
    questions: Mapping[str, Any],
    question: str,
    item_id: str,
    text: str,
) -> str:
    """Return the passage of a message that fits the question of a search best.

    Args:
        index: What was searched.
        vectors: As for :func:`search`.
        questions: Likewise, with the vector of this question, if there is one.
        question: The question.
        item_id: The ID of the message.
        text: Its text.

    Returns:
        The passage; an empty text if the message has only one.
    """
    if len(text) <= LONGEST:
        return ""
    question = shortened(question)
    cosines: list[float] = []
    vector = None if index is None else questions.get(index.dense_question(question))
    if vector is not None and (rows := vectors.known([item_id]).get(item_id)) is not None:
        from agent_brain.memories.vectors.ram import unit_vectors

        (unit,) = unit_vectors([vector])
        cosines = (rows @ unit).tolist()
    return fitting(question, text, cosines)


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
