"""The index that recall searches: words, speakers, times and surroundings of messages, in RAM."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict, Unpack

import numpy as np
from numpy.typing import NDArray

from agent_brain.memories.recall import questions
from agent_brain.memories.recall.features import NOBODY, ROW, Features, Labels
from agent_brain.memories.recall.lexical import RARITY, LexicalIndex
from agent_brain.memories.recall.passages import passages
from agent_brain.memories.recall.scoring import Evidence, Parts, Scores, best_fit, meaning, score
from agent_brain.memories.recall.tokenizer import HAS_DIGIT
from agent_brain.memories.recall.top_k import ALIKE, COMPARED, best_first, newer_first, spread

if TYPE_CHECKING:
    from agent_brain.memories.recall.indexing import Item

VectorsOf: TypeAlias = Callable[[Sequence[str]], Mapping[str, NDArray[np.float32]]]
NOTHING = 1e-6  # a smaller score is a rounding error
LEAST_FIT = 1e-3  # so that messages are ranked even if none fits


class Wanted(TypedDict, total=False):
    """What is searched for besides the words of a question.

    Attributes:
        where: Only messages for whose ID it returns True; it is called for the best ones only,
            until there are enough.
        since: Only messages of that time or later.
        until: Only messages of before that time.
        min_score: Only messages with this score or a better one.
        now: When the question is asked, to understand "yesterday" and "two weeks ago".
        goal: The ID of the goal, which asks and answers nothing.
        is_goal: Whether the question is the goal.
    """

    where: Callable[[str], bool] | None
    since: datetime | None
    until: datetime | None
    min_score: float | None
    now: datetime | None
    goal: str | None
    is_goal: bool


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
    """Messages, found by words, speaker, time and surroundings, and by cosines of vectors.

    Adding takes the same time however many messages there are; searching is linear in them. There
    is no I/O, and a lock makes an index safe to use from several threads.

    Attributes:
        passages: How many passages the messages have.
    """

    def __init__(self) -> None:
        self.passages = 0
        self._lock = threading.RLock()
        self._rows: dict[str, int] = {}
        self._ids: list[str] = []
        self._participants = questions.Participants()
        self._threads, self._roles = Labels(), Labels()
        self._lexical = LexicalIndex()
        self._features = Features()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, item_id: object) -> bool:
        return item_id in self._rows

    def add(self, items: Iterable[Item]) -> None:
        """Add ``items`` in the order in which they were said; known IDs are ignored."""
        with self._lock:
            added: dict[str, Item] = {}
            for item in items:
                if item.id not in self._rows:
                    added.setdefault(item.id, item)
            if not added:
                return
            ids, texts, senders, times, threads, roles = zip(*added.values(), strict=True)
            said_by = [*zip(senders, roles, strict=True)]
            speakers = {by: self._speaker(*by) for by in dict.fromkeys(said_by)}
            lengths = self._lexical.add(texts)
            counts = [len(passages(text)) for text in texts]
            columns: list[Sequence[Any]] = [
                [speakers[by] for by in said_by],
                [NOBODY if thread is None else self._threads[thread] for thread in threads],
                [np.nan if time is None else time.timestamp() for time in times],
                [role is None or role == "user" for role in roles],
                [*map(questions.asks, texts)],
                counts,
                np.log1p(lengths).tolist(),
            ]
            self.passages += sum(counts)
            self._features.extend(np.rec.fromarrays(columns, ROW))
            self._rows.update(zip(ids, count(len(self._ids))))
            self._ids += ids

    def _speaker(self, sender: str | None, role: str | None) -> int:
        if sender is not None:
            return self._participants.add(sender)
        return NOBODY if role is None else -self._roles[role]

    def remove(self, ids: Iterable[str]) -> None:
        """Remove messages with every trace of them; unknown IDs are ignored."""
        with self._lock:
            gone = {*ids} & self._rows.keys()
            if not gone:
                return
            kept = np.ones(len(self._ids), np.bool_)
            kept[[self._rows[item_id] for item_id in gone]] = False
            self._lexical.keep(kept)
            self._features.keep(kept)
            self.passages = int(self._features["passages"].sum())
            self._threads.keep(self._features["thread"])
            self._participants.keep(self._features["speaker"])
            self._ids = [item_id for item_id in self._ids if item_id not in gone]
            self._rows = {item_id: row for row, item_id in enumerate(self._ids)}

    def dense_question(self, query: str) -> str:
        """Return what to embed for ``query``: the question as those it names would put it."""
        with self._lock:
            return questions.in_first_person(query, self._participants.mentions(query))

    def search(
        self,
        query: str,
        k: int = 10,
        *,
        cosines: Mapping[str, float] | None = None,
        vectors: VectorsOf = lambda _: {},
        **wanted: Unpack[Wanted],
    ) -> list[Hit]:
        """Return the ``k`` messages that fit ``query`` best, best first; ties go to the newer.

        The goal is not one of them if it is the question, and what is next to it fits no better for
        that. Filters do not change how messages are ranked. Messages without any evidence are not
        returned, so there may be fewer than ``k``. The score of the best message of all is its
        fit, from 0 to 1; the other scores are in proportion.

        Args:
            query: The question as it was asked.
            k: How many messages at most.
            cosines: By ID, of the vectors nearest to that of :meth:`dense_question` (at least
                :data:`~agent_brain.memories.recall.scoring.NEAREST` of them, or all that there
                are); without them words decide.
            vectors: Returns the unit vectors of messages, as far as they are known, by ID.
            **wanted: What is asked when and where, and which messages may be returned.
        """
        with self._lock:
            if k < 1 or not self._rows:
                return []
            evidence = self._evidence(query, cosines or {}, wanted)
            total, parts, scale = self._scores(evidence, vectors)
            times = self._features["time"]
            if (since := wanted.get("since")) is not None:
                total[~(times >= since.timestamp())] = -np.inf  # also if the time is unknown
            if (until := wanted.get("until")) is not None:
                total[~(times < until.timestamp())] = -np.inf
            if (least := wanted.get("min_score")) is not None:
                total[total < least] = -np.inf
            where = wanted.get("where")
            accept = None if where is None else lambda row: where(self._ids[row])
            return [
                Hit(self._ids[row], float(total[row]), _added(row, parts, scale))
                for row in best_first(total, k, accept)
            ]

    def _scores(self, evidence: Evidence, vectors: VectorsOf) -> tuple[Scores, Parts, np.float32]:
        """Return the score of each row, what each cue added before scaling, and the scale."""
        total, parts = score(evidence, self._features)
        others = np.ones(len(total), np.bool_)
        if evidence.is_goal:
            total[evidence.goal], others[evidence.goal] = -np.inf, False
        if not self._features.order().among_people:
            by_role = 2 * self._features.order().sitting + self._features["user"]
            parts["spread"] = spread(total, by_role)
            total += parts["spread"]
        own = np.zeros(len(total), np.float32)
        for name in ("meaning", "words"):
            own += parts.get(name, 0)
        precedence = self._precedence(evidence, best_first(total, COMPARED), vectors)
        parts["newer"] = newer_first(total, own, precedence)
        total += parts["newer"]
        best = total.max(initial=0)
        fit = max(best_fit(evidence, self._features, others), LEAST_FIT)
        scale = np.float32(fit / best if best > NOTHING else 1)
        return total * scale, parts, scale

    def _precedence(
        self, evidence: Evidence, rows: Sequence[int], vectors: VectorsOf
    ) -> Callable[[int, int], float]:
        """Return a function that says how much one of ``rows`` belongs before another one.

        It does if both are alike and it is newer and states something, which neither a mere
        question nor an assistant's answer does, or if both are alike but only it has just the words
        of the question. It returns 0 if it does not, also if they are about different things or by
        different speakers.
        """
        ids = [self._ids[row] for row in rows]
        meant = vectors(ids) if evidence.meaning is not None else {}
        units = {row: meant[i] for row, i in zip(rows, ids, strict=True) if i in meant}
        terms = {row: self._lexical.terms(row) for row in rows}
        order, speakers = self._features.order(), self._features["speaker"]
        states = self._features["user"] & (self._features["asks"] < 1)
        times = np.nan_to_num(self._features["time"][rows], nan=-np.inf).tolist()
        ages = {row: (time, row) for row, time in zip(rows, times, strict=True)}
        exact = {row for row in rows if terms[row] == evidence.terms}

        def precedence(one: int, other: int) -> float:
            if speakers[one] != speakers[other]:
                return 0
            shared = terms[one] & terms[other]
            if evidence.numerals & (terms[one] ^ terms[other]):
                return 0  # "INV-1" and "INV-2"
            part = len(shared) / max(len(terms[one] | terms[other]), 1)
            if part >= ALIKE and (one in exact) != (other in exact):
                return float(one in exact)  # "one 77" is asked for, and not "two 77"
            if ages[one] < ages[other] or not states[one]:
                return 0
            if part >= ALIKE:
                return part
            if order.among_people or order.sitting[one] == order.sitting[other]:
                return 0  # most of what is said in one go is alike
            if evidence.meaning is not None and one in units and other in units:
                cosine = float(np.einsum("ik,jk->ij", units[one], units[other]).max())
                if cosine >= evidence.meaning.alike:
                    return cosine
            return part if shared & evidence.terms else 0

        return precedence

    def _evidence(self, query: str, cosines: Mapping[str, float], wanted: Wanted) -> Evidence:
        goal = self._rows.get(wanted.get("goal") or "")
        is_goal = goal is not None and wanted.get("is_goal", False)
        question = questions.read(query, self._participants, self._features, wanted.get("now"))
        lexical, senders = self._lexical, self._participants.numbers
        known = {self._rows[i]: cosine for i, cosine in cosines.items() if i in self._rows}
        order = self._features.order()
        words = lexical.scores(
            question.terms,
            order.sitting,
            compare=not order.among_people,
            rarity=1 if order.among_people and not known else RARITY,
            without=goal,
        )
        if goal is not None:
            own, words.rows[goal] = words.rows[goal], 0
            if is_goal:
                known.pop(goal, None)
            else:  # beside it, others would seem not to fit
                words.rows[goal] = min(own, words.rows.max() or own)
        return Evidence(
            question=question,
            meaning=meaning(known, len(self._ids)),
            words=words.rows,
            sittings=words.groups,
            share=np.clip(words.rows / np.float32(words.most or 1), 0, 1),
            speaker=None if question.speaker is None else senders[question.speaker],
            tells_time=lexical.having(questions.tells_time) if question.asks_when else None,
            terms=lexical.numbers(question.terms),
            numerals=lexical.numbers(filter(HAS_DIGIT, question.terms)),
            goal=goal,
            is_goal=is_goal,
        )


def _added(row: int, parts: Parts, scale: np.float32) -> dict[str, float]:
    """Return what each cue added to the score of a row."""
    return {name: float(values[row] * scale) for name, values in parts.items() if values[row]}
