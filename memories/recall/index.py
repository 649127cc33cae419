"""The index that recall searches: words, vectors, speakers, times and surroundings, in RAM."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agent_brain.memories.recall import query_analysis
from agent_brain.memories.recall.dates import spans_of
from agent_brain.memories.recall.dense import DenseIndex
from agent_brain.memories.recall.features import Features
from agent_brain.memories.recall.lexical import LexicalIndex
from agent_brain.memories.recall.participants import NOBODY, Labels, Participants
from agent_brain.memories.recall.scoring import Evidence, Parts, Scores, best_fit, score
from agent_brain.memories.recall.tokenizer import runs, terms
from agent_brain.memories.recall.top_k import best_accepted, best_first, newer_first

Where = Callable[[str], bool] | AbstractSet[str]
NOTHING = 1e-6  # a smaller score is a rounding error
LEAST_FIT = 1e-3  # so that messages are ranked even if none fits
SPARE = 64  # rows of removed messages that are kept before the index is made compact


@dataclass(frozen=True)
class Item:
    """A message as the index takes it.

    Attributes:
        id: Unique in the index.
        text: What was said.
        sender: The name of the speaker; None if nobody is named.
        time: When it was said, aware; None if that is not known.
        thread: The conversation that it belongs to; None is one conversation too.
        role: Tells speakers without a name apart.
    """

    id: str
    text: str
    sender: str | None = None
    time: datetime | None = None
    thread: str | None = None
    role: str | None = None


@dataclass(frozen=True)
class Hit:
    """A message that was found.

    Attributes:
        id: The ID of the message.
        score: How well it fits; comparable between questions to one index.
        why: What each cue added to the score; cues that added nothing are left out.
    """

    id: str
    score: float
    why: dict[str, float]


class RecallIndex:
    """Messages, found by meaning, words, speaker, time and surroundings.

    Adding takes the same time however many messages there are; searching is linear in them. There
    is no I/O, and a lock makes an index safe to use from several threads.
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
        self._features = Features()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._rows

    @property
    def dimension(self) -> int | None:
        """The number of numbers in a vector; None if no vector is in RAM."""
        return self._dense.dimension

    @property
    def in_ram(self) -> int:
        """The number of vectors in RAM."""
        return self._dense.held

    @property
    def partial(self) -> bool:
        """Whether there are vectors that are not in RAM."""
        with self._lock:
            return bool(self._dense.elsewhere.any())

    def vectors_elsewhere(self, count: int | None = None) -> list[str]:
        """Return the IDs of messages whose vectors are not in RAM, oldest first.

        Args:
            count: Return about this many, evenly spread; None for all.
        """
        with self._lock:
            rows = np.flatnonzero(self._dense.elsewhere)
            step = 1 if count is None else max(1, -(-len(rows) // count))
            return [self._ids[row] for row in rows[::step]]

    def add(self, items: Iterable[Item]) -> None:
        """Add ``items`` in the order in which they were said; known IDs are ignored."""
        with self._lock:
            for item in items:
                if item.id not in self._rows:
                    self._add(item)

    def _add(self, item: Item) -> None:
        speaker = self._participants.add(item.sender)
        if speaker == NOBODY and item.role is not None:
            speaker = NOBODY - 1 - self._roles.add(item.role)
        text_runs = runs(item.text)
        traits = query_analysis.traits(item.text, text_runs)
        self._lexical.add(terms(text_runs))
        self._dense.extend(1)
        self._features.add(traits, item.time, speaker, self._threads.add(item.thread))
        self._rows[item.id] = len(self._ids)
        self._ids.append(item.id)

    def set_vectors(self, ids: Sequence[str], vectors: ArrayLike) -> None:
        """Set the vectors of messages, one a row; unknown IDs are ignored.

        Raises:
            EmbeddingError: The vectors do not fit those that are here, or are not finite.
        """
        with self._lock:
            units = self._dense.units(vectors) if len(ids) else np.zeros((0, 0), np.float32)
            here = [i for i, item_id in enumerate(ids) if item_id in self._rows]
            if here:
                self._dense.put([self._rows[ids[i]] for i in here], units[here])

    def set_vectors_elsewhere(self, ids: Iterable[str]) -> None:
        """Note that messages have vectors that are not in RAM; see ``nearest`` of search()."""
        with self._lock:
            self._dense.put_elsewhere([self._rows[i] for i in ids if i in self._rows])

    def remove(self, ids: Iterable[str]) -> None:
        """Remove messages with every trace of them; unknown IDs are ignored."""
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
        speaker, thread = self._features.clear(row)
        self._threads.remove(thread)
        if speaker > NOBODY:
            self._participants.remove(speaker)

    def _compact(self) -> None:
        there = self._features.there.rows.copy()
        self._lexical.keep(there)
        self._dense.keep(there)
        self._features.keep(there)
        self._ids = [item_id for item_id, kept in zip(self._ids, there, strict=True) if kept]
        self._rows = {item_id: row for row, item_id in enumerate(self._ids)}

    def vectors(self) -> dict[str, NDArray[np.float32]]:
        """Return the unit vectors that are in RAM, by message ID."""
        with self._lock:
            rows, vectors = self._dense.vectors()
            return {self._ids[row]: vector for row, vector in zip(rows, vectors, strict=True)}

    def dense_question(self, query: str) -> str:
        """Return what to embed for ``query``: the question as those it names would put it."""
        with self._lock:
            return query_analysis.read(query, self._participants).dense

    def best_by_words(self, query: str, count: int) -> list[str]:
        """Return the IDs of the best matches by words whose vectors are not in RAM."""
        with self._lock:
            found = self._lexical.scores(query_analysis.read(query, self._participants).terms)
            rows = best_first(np.where(found > 0, found, np.float32(-np.inf)), count)
            elsewhere = self._dense.elsewhere
            return [self._ids[row] for row in rows if elsewhere[row]]

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        query_vector: ArrayLike | None = None,
        nearest: Mapping[str, float] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        where: Where | None = None,
        now: datetime | None = None,
        min_score: float | None = None,
        itself: str | None = None,
    ) -> list[Hit]:
        """Return the ``k`` messages that fit ``query`` best, best first; ties go to the newer.

        Filters do not change how messages are ranked. Messages without any evidence are not
        returned, so there may be fewer than ``k``. The score of the best message of all is its
        fit, from 0 to 1; the other scores are in proportion.

        Args:
            query: The question as it was asked.
            k: How many messages at most.
            query_vector: The embedding of :meth:`dense_question`; without it words decide.
            nearest: Cosines by ID of the messages that the index of a store finds nearest; needed
                for vectors that are not in RAM.
            since: Only messages of that time or later.
            until: Only messages of before that time.
            where: Only messages whose ID is in the set, or for whose ID the function returns True;
                it is called for the best ones only, until there are ``k``.
            now: When the question is asked, to understand "yesterday" and "two weeks ago".
            min_score: Only messages with this score or a better one.
            itself: The ID of the message that is the question, whose fit does not count.

        Raises:
            EmbeddingError: ``query_vector`` is of another dimension than the messages' vectors.
        """
        with self._lock:
            if k < 1 or not self._rows:
                return []
            evidence = self._evidence(query, query_vector, nearest, now)
            total, parts, scale = self._scores(evidence, itself)
            if since is not None or until is not None or isinstance(where, AbstractSet):
                total[~self._wanted(since, until, where)] = -np.inf
            if min_score is not None:
                total[total < min_score] = -np.inf
            if callable(where):
                rows = best_accepted(total, k, lambda row: where(self._ids[row]))
            else:
                rows = best_first(total, k)
            return [self._hit(row, float(total[row]), parts, scale) for row in rows]

    def _scores(self, evidence: Evidence, itself: str | None) -> tuple[Scores, Parts, np.float32]:
        """Return the score of each row, what each cue added before scaling, and the scale."""
        total, parts = score(evidence, self._features)
        parts["newer"] = newer_first(total, self._features, self._lexical.terms)
        total += parts["newer"]
        counted = self._features.there.rows.copy()
        if itself in self._rows:
            counted[self._rows[itself]] = False
        best = total[counted].max(initial=0)
        fit = max(best_fit(evidence, self._features, counted), LEAST_FIT)
        scale = np.float32(fit / best if best > NOTHING else 1)
        return total * scale, parts, scale

    def _evidence(
        self,
        query: str,
        vector: ArrayLike | None,
        nearest: Mapping[str, float] | None,
        now: datetime | None,
    ) -> Evidence:
        question = query_analysis.read(query, self._participants, now)
        speaker = question.speaker
        rows = ((self._rows.get(i), cosine) for i, cosine in (nearest or {}).items())
        near = {row: cosine for row, cosine in rows if row is not None}
        meaning = None if vector is None else self._dense.evidence(vector, near)
        words, most = self._lexical.scores(question.terms), self._lexical.most(question.terms)
        return Evidence(
            cosine=None if meaning is None else meaning[0],
            likeness=None if meaning is None else meaning[1],
            words=words,
            share=np.clip(words / np.float32(most or 1), 0, 1),
            speaker=None if speaker is None else self._participants.number(speaker),
            asks_when=question.asks_when,
            spans=[*question.spans, *spans_of(question.dates, self._features.years)],
        )

    def _wanted(
        self, since: datetime | None, until: datetime | None, where: Where | None
    ) -> NDArray[np.bool_]:
        """Return which rows pass the filters that are not functions."""
        wanted = np.ones(len(self._ids), np.bool_)
        if since is not None:
            wanted &= self._features.times.rows >= since.timestamp()
        if until is not None:
            wanted &= self._features.times.rows < until.timestamp()
        if isinstance(where, AbstractSet):
            chosen = np.zeros(len(self._ids), np.bool_)
            chosen[[self._rows[item_id] for item_id in where if item_id in self._rows]] = True
            wanted &= chosen
        return wanted

    def _hit(self, row: int, total: float, parts: Parts, scale: np.float32) -> Hit:
        why = {name: float(values[row] * scale) for name, values in parts.items() if values[row]}
        return Hit(self._ids[row], total, why)
