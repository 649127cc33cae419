"""The index beneath recall: all that a question is compared with, kept up to date in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_brain.memories.recall import query_analysis
from agent_brain.memories.recall.dates import spans_of
from agent_brain.memories.recall.dense import DenseIndex
from agent_brain.memories.recall.features import Columns
from agent_brain.memories.recall.fit import best_fit
from agent_brain.memories.recall.interning import NOBODY, Labels
from agent_brain.memories.recall.items import Hit, Item
from agent_brain.memories.recall.lexical import LexicalIndex
from agent_brain.memories.recall.participants import Participants
from agent_brain.memories.recall.recency import newer_first
from agent_brain.memories.recall.scoring import Evidence, Parts, score
from agent_brain.memories.recall.tokenizer import runs, terms
from agent_brain.memories.recall.top_k import best_accepted, best_first
from agent_brain.memories.recall.weights import Scores

Where = Callable[[str], bool] | AbstractSet[str]
NOTHING = 1e-6  # a score that is one only by rounding
LEAST_FIT = 1e-3  # so that the order shows where nothing fits
SPARE = 64  # rows of removed messages that are kept before the index is made compact


class RecallIndex:
    """Messages of one scope, found by meaning, words, speaker, time and surroundings.

    Adding costs the same however many messages there are; searching is linear in them. All of it is
    computation without I/O, and one lock makes an index safe to use from several threads.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._rows: dict[str, int] = {}
        self._ids: list[str] = []
        self._participants = Participants()
        self._threads = Labels()
        self._roles = Labels()
        self._lexical = LexicalIndex()
        self._dense = DenseIndex()
        self._columns = Columns()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._rows

    @property
    def dimension(self) -> int | None:
        """Numbers in a vector; None while no message has one."""
        return self._dense.dimension

    def without_vector(self) -> list[str]:
        """Ids of messages that have no vector yet, oldest first."""
        with self._lock:
            rows = np.flatnonzero(self._columns.there & ~self._dense.present)
            return [self._ids[row] for row in rows]

    def add(self, items: Iterable[Item]) -> None:
        """Add ``items`` in the order in which they were said; ids that are here are passed over.

        Raises:
            EmbeddingError: A vector does not fit those that are here; nothing was added.
        """
        with self._lock:
            fresh = {item.id: item for item in items if item.id not in self._rows}
            embedded = [item for item in fresh.values() if item.vector is not None]
            vectors = _matrix([item.vector for item in embedded])
            if embedded:
                self._dense.units(vectors)
            for item in fresh.values():
                self._add(item)
            if embedded:
                self._dense.put([self._rows[item.id] for item in embedded], vectors)

    def _add(self, item: Item) -> None:
        speaker = self._participants.add(item.sender)
        if speaker == NOBODY and item.role is not None:
            speaker = NOBODY - 1 - self._roles.add(item.role)
        text_runs = runs(item.text)
        traits = query_analysis.traits(item.text, text_runs)
        self._lexical.add(terms(text_runs))
        self._dense.extend(1)
        self._columns.add(traits, item.time, speaker, self._threads.add(item.thread))
        self._rows[item.id] = len(self._ids)
        self._ids.append(item.id)

    def set_vectors(self, ids: Sequence[str], vectors: ArrayLike) -> None:
        """Give messages their vectors, one a row; ids that are not here are passed over.

        Raises:
            EmbeddingError: The vectors do not fit those that are here, or are not finite.
        """
        with self._lock:
            units = self._dense.units(vectors) if len(ids) else np.zeros((0, 0), np.float32)
            here = [i for i, item_id in enumerate(ids) if item_id in self._rows]
            if here:
                self._dense.put([self._rows[ids[i]] for i in here], units[here])

    def remove(self, ids: Iterable[str]) -> None:
        """Take messages out, with every trace of them; ids that are not here are passed over."""
        with self._lock:
            for item_id in ids:
                row = self._rows.pop(item_id, None)
                if row is not None:
                    self._remove(row)
            if len(self._ids) > 2 * len(self._rows) + SPARE:
                self._compact()

    def _remove(self, row: int) -> None:
        self._ids[row] = ""
        self._lexical.clear(row)
        self._dense.clear(row)
        speaker, thread = self._columns.clear(row)
        self._threads.remove(thread)
        if speaker > NOBODY:
            self._participants.remove(speaker)

    def _compact(self) -> None:
        there = self._columns.there.copy()
        self._lexical.keep(there)
        self._dense.keep(there)
        self._columns.keep(there)
        self._ids = [item_id for item_id, kept in zip(self._ids, there, strict=True) if kept]
        self._rows = {item_id: row for row, item_id in enumerate(self._ids)}

    def vectors(self) -> dict[str, NDArray[np.float32]]:
        """The unit vectors of all messages that have one, by id."""
        with self._lock:
            matrix = self._dense.matrix()
            rows = np.flatnonzero(self._columns.there & self._dense.present)
            return {self._ids[row]: matrix[row].copy() for row in rows}

    def dense_question(self, query: str) -> str:
        """What to embed to search for ``query``: the question as those it names would put it."""
        with self._lock:
            return query_analysis.read(query, self._participants).dense

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        query_vector: ArrayLike | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        where: Where | None = None,
        now: datetime | None = None,
        min_score: float | None = None,
        itself: str | None = None,
    ) -> list[Hit]:
        """The ``k`` messages that fit ``query`` best, best first; ties go to the newer.

        Filters choose among all messages, ranked; they do not change how a message is ranked. A
        message that nothing speaks for is not found, so there may be fewer than ``k``. The best
        message of all scores as well as it fits, from 0 to 1, and the others in proportion.

        Args:
            query: The question as it was asked.
            k: How many messages at most.
            query_vector: The embedding of :meth:`dense_question`; without it words decide.
            since: Only messages of that time or later.
            until: Only messages of before that time.
            where: Only messages whose id is in the set, or for whose id the function is true; it
                is asked about the best ones only, until there are ``k``.
            now: When the question is asked; with it "yesterday" and "two weeks ago" are known.
            min_score: Only messages with this score or a better one.
            itself: Id of the message that is the question; how well that fits says nothing.

        Raises:
            EmbeddingError: ``query_vector`` is of another dimension than the messages' vectors.
        """
        with self._lock:
            if k < 1 or not self._rows:
                return []
            total, parts = self._scores(self._evidence(query, query_vector, now), itself)
            total[~self._wanted(since, until, where)] = -np.inf
            if min_score is not None:
                total[total < min_score] = -np.inf
            if callable(where):
                rows = best_accepted(total, k, lambda row: where(self._ids[row]))
            else:
                rows = best_first(total, k)
            return [self._hit(row, float(total[row]), parts) for row in rows]

    def _scores(self, evidence: Evidence, itself: str | None) -> tuple[Scores, Parts]:
        """The score of each row, and what each cue added to it."""
        total, parts = score(evidence, self._columns)
        parts["newer"] = newer_first(total, self._columns, self._lexical.terms)
        total += parts["newer"]
        counted = self._columns.there.copy()
        if itself in self._rows:
            counted[self._rows[itself]] = False
        best = total[counted].max(initial=0)
        fit = max(best_fit(evidence, self._columns, counted), LEAST_FIT)
        scale = np.float32(fit / best if best > NOTHING else 1)
        return total * scale, {name: part * scale for name, part in parts.items()}

    def _evidence(self, query: str, vector: ArrayLike | None, now: datetime | None) -> Evidence:
        question = query_analysis.read(query, self._participants, now)
        speaker = question.speaker
        cosines = None if vector is None else self._dense.cosines(vector)
        words, most = self._lexical.scores(question.terms), self._lexical.most(question.terms)
        return Evidence(
            cosine=None if cosines is None else self._dense.standing_out(cosines),
            likeness=None if cosines is None else self._dense.likeness(cosines),
            words=words,
            share=np.clip(words / np.float32(most or 1), 0, 1),
            speaker=None if speaker is None else self._participants.number(speaker),
            asks_when=question.asks_when,
            spans=[*question.spans, *spans_of(question.dates, self._columns.years)],
        )

    def _wanted(
        self, since: datetime | None, until: datetime | None, where: Where | None
    ) -> NDArray[np.bool_]:
        """Which rows are looked for, as far as that can be told without asking a function."""
        wanted = np.ones(len(self._ids), np.bool_)
        if since is not None:
            wanted &= self._columns.times >= since.timestamp()
        if until is not None:
            wanted &= self._columns.times < until.timestamp()
        if isinstance(where, AbstractSet):
            chosen = np.zeros(len(self._ids), np.bool_)
            chosen[[self._rows[item_id] for item_id in where if item_id in self._rows]] = True
            wanted &= chosen
        return wanted

    def _hit(self, row: int, total: float, parts: Parts) -> Hit:
        why = {name: float(values[row]) for name, values in parts.items() if values[row]}
        return Hit(self._ids[row], total, why)


def _matrix(vectors: Sequence[ArrayLike | None]) -> NDArray[np.float64]:
    """Vectors as the rows of a matrix; of different lengths, no matrix that fits anything."""
    rows = [np.asarray(vector, np.float64) for vector in vectors]
    if len({row.shape for row in rows}) > 1:
        return np.zeros(0)
    return np.array(rows)
