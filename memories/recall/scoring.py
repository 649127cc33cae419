"""What each cue adds to each message for one question."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall.dates import Span, closeness
from agent_brain.memories.recall.features import Columns
from agent_brain.memories.recall.weights import (
    WITH_VECTORS,
    WORDS_ALONE,
    Scores,
    Weights,
    asked_before,
    beside,
    best_around,
)

Parts = dict[str, Scores]


@dataclass(frozen=True)
class Evidence:
    """How a question fits every row, before its cues are weighed.

    Attributes:
        cosine: How far that of the vectors stands out; None where there are no vectors.
        likeness: The cosine on a scale from 0, what any two texts have, to 1; None likewise.
        words: BM25.
        share: Which part of the question's words, weighed by their rarity, the message has.
        speaker: The number of the person whom the question is about; None for nobody.
        asks_when: It asks for a time.
        spans: The days that it names.
    """

    cosine: Scores | None
    likeness: Scores | None
    words: Scores
    share: Scores
    speaker: int | None
    asks_when: bool
    spans: list[Span]


def score(evidence: Evidence, columns: Columns) -> tuple[Scores, Parts]:
    """The score of each row, and what each cue added to it.

    Cues that say nothing for this question are left out, and a row that none speaks for scores
    -inf. Surroundings count by their subject and time alone: who said a message makes the one next
    to it no better.
    """
    weights = WORDS_ALONE if evidence.cosine is None else WITH_VECTORS
    parts = _subject(evidence, columns, weights)
    if parts:
        parts |= _surroundings(_total(parts.values()), columns, weights)
    if evidence.speaker is not None:
        parts["speaker"] = (columns.speakers == evidence.speaker) * np.float32(weights.speaker)
    if not parts:
        return np.full(len(columns.there), -np.inf, np.float32), parts
    total = _total(parts.values())
    parts["telling"] = columns.fullness * np.float32(weights.fullness)
    parts["telling"] -= columns.ask * np.float32(weights.question)
    spoken_for = columns.there if evidence.cosine is not None else columns.there & (total != 0)
    return np.where(spoken_for, total + parts["telling"], np.float32(-np.inf)), parts


def _subject(evidence: Evidence, columns: Columns, weights: Weights) -> Parts:
    parts = {}
    if evidence.cosine is not None:
        parts["meaning"] = evidence.cosine
    best = evidence.words.max(initial=0)
    if best > 0:
        parts["words"] = evidence.words * np.float32(weights.words / best)
    if evidence.asks_when:
        parts["when"] = columns.tell_time * np.float32(weights.when)
    if evidence.spans:
        parts["date"] = closeness(columns.days, evidence.spans) * np.float32(weights.date)
    return parts


def _surroundings(subject: Scores, columns: Columns, weights: Weights) -> Parts:
    reading = columns.reading()
    rows, groups = reading.rows, reading.sittings
    scores, asks, speakers = subject[rows], columns.ask[rows], columns.speakers[rows]
    found = {
        "window": best_around(scores, groups) * np.float32(weights.window),
        "neighbours": beside(scores, groups) * np.float32(weights.neighbours),
        "answers": asked_before(scores, groups, asks, speakers) * np.float32(weights.answers),
    }
    return {name: _spread(values, rows, len(subject)) for name, values in found.items()}


def _spread(values: Scores, rows: NDArray[np.intp], count: int) -> Scores:
    """``values`` in the places of ``rows``; 0 elsewhere."""
    spread = np.zeros(count, np.float32)
    spread[rows] = values
    return spread


def _total(parts: Iterable[Scores]) -> Scores:
    total: Scores | None = None
    for part in parts:
        total = part.copy() if total is None else np.add(total, part, out=total)
    assert total is not None
    return total
