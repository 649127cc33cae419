from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.memories.recall.lexical import K1, B, LexicalIndex

LETTERS = [*"bcefgh"]  # "a" and "d" are no terms
TEXTS = st.lists(st.lists(st.sampled_from(LETTERS), max_size=6), min_size=1, max_size=12)


def textbook(texts, question):
    """BM25 as the formula has it, one text at a time."""
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        total = 0.0
        for term in question:
            n = sum(term in other for other in texts)
            idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5))
            tf = Counter(text)[term]
            norm = K1 * (1 - B + B * len(text) / mean) if mean else 1
            total += idf * tf * (K1 + 1) / (tf + norm)
        scores.append(total)
    return scores


def index_of(texts):
    index = LexicalIndex()
    index.add(map(" ".join, texts))
    return index


def scores(index, question):
    return index.scores(question)[0]


@given(TEXTS, st.lists(st.sampled_from([*"bcfxyz"]), max_size=5))
def test_scores_are_those_of_the_formula(texts, question):
    assert scores(index_of(texts), question) == pytest.approx(textbook(texts, question), rel=1e-5)


@given(TEXTS, st.data())
def test_cleared_rows_leave_nothing_behind(texts, data):
    index = index_of(texts)
    kept = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    index.clear([row for row, keep in enumerate(kept) if not keep])
    rest = index_of([text for text, keep in zip(texts, kept, strict=True) if keep])
    np.testing.assert_array_equal(scores(index, "bcf")[np.array(kept)], scores(rest, "bcf"))
    assert not scores(index, "bcf")[~np.array(kept)].any()
    index.keep(np.array(kept))
    np.testing.assert_array_equal(scores(index, "bcf"), scores(rest, "bcf"))
    index.add(["b c f"])
    rest.add(["b c f"])
    np.testing.assert_array_equal(scores(index, "bcf"), scores(rest, "bcf"))
