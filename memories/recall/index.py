"""The index beneath recall: everything a question is compared with, kept up to date in memory."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_brain.memories.recall import cues, ranking
from agent_brain.memories.recall.columns import Columns
from agent_brain.memories.recall.dates import closeness, relative_spans, spans_of
from agent_brain.memories.recall.dense import DenseIndex
from agent_brain.memories.recall.lexical import LexicalIndex
from agent_brain.memories.recall.names import Participants
from agent_brain.memories.recall.words import terms

Scores = NDArray[np.float32]
Where = Callable[[str], bool] | AbstractSet[str]


@dataclass(frozen=True)
class Item:
    """A message as the index takes it.

    Attributes:
        id: Unique in the index.
        text: What was said.
        sender: Who said it, by name; None where nobody is named.
        time: When, aware.
        thread: The conversation that it belongs to; None is one conversation of its own.
        vector: Its embedding, if there is one already.
    """

    id: str
    text: str
    sender: str | None = None
    time: datetime | None = None
    thread: str | None = None
    vector: ArrayLike | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Hit:
    """A message that was found.

    Attributes:
        id: Of the message.
        score: How well it fits; comparable within one search only.
        why: What each cue added to the score; cues that added nothing are left out.
    """

    id: str
    score: float
    why: dict[str, float]


class RecallIndex:
    """Messages of one scope, found by meaning, words, speaker, time and surroundings.

    Adding, removing and searching are plain computation without I/O; one lock makes the index safe
    to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}
        self._ids: list[str | None] = []
        self._participants = Participants()
        self._lexical = LexicalIndex()
        self._dense = DenseIndex()
        self._columns = Columns()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, item_id: str) -> bool:
        return item_id in self._rows

    def add(self, items: Iterable[Item]) -> None:
        """Add ``items`` in the order in which they were said; ids that are here are passed over."""
        with self._lock:
            for item in items:
                if item.id not in self._rows:
                    self._add(item)

    def _add(self, item: Item) -> None:
        if item.vector is not None:
            self._dense.unit(item.vector)
        row = len(self._ids)
        self._rows[item.id] = row
        self._ids.append(item.id)
        self._lexical.add(terms(item.text))
        self._dense.extend(1)
        self._columns.add(item.text, item.sender, item.time, item.thread)
        if item.sender is not None:
            self._participants.add(item.sender)
        if item.vector is not None:
            self._dense.put(row, item.vector)

    def dense_question(self, query: str) -> str:
        with self._lock:
            return cues.read(query, self._participants).dense

    def search(self, query, k=10, *, query_vector=None, since=None, until=None, where=None, now=None):
        with self._lock:
            parts = self._parts(cues.read(query, self._participants), query_vector, now)
            total = sum(parts.values())
            order = ranking.best_first(total, k)
            return [Hit(self._ids[r], float(total[r]), {n: float(p[r]) for n, p in parts.items() if p[r]}) for r in order]

    def _parts(self, question, vector, now):
        c = self._columns
        n = len(self._ids)
        dense = None if vector is None else self._dense.scores(vector)
        w = ranking.WORDS_ALONE if dense is None else ranking.WITH_VECTORS
        parts = {}
        if dense is not None: parts["dense"] = dense
        lex = self._lexical.scores(question.terms)
        best = lex.max()
        if best > 0: parts["lexical"] = w.lexical/best*lex
        if question.speaker is not None:
            parts["speaker"] = w.speaker*(c.speakers.rows == c.code(question.speaker)).astype(np.float32)
        if question.asks_when: parts["when"] = w.when*c.times_told.rows
        if question.dates:
            parts["date"] = w.date*closeness(c.days.rows, spans_of(question.dates, c.years))
        base = sum(parts.values()) if parts else np.zeros(n, np.float32)
        places = c.places()
        parts["window"] = w.window*ranking.best_around(base, places)
        parts["neighbours"] = w.neighbours*ranking.beside(base, places)
        parts["prior"] = w.fullness*c.fullness.rows - w.question*c.questions.rows
        return parts
