from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.memories.recall.lexical import K1, RARITY, B, LexicalIndex

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
            idf = math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) ** RARITY
            tf = Counter(text)[term]
            norm = K1 * (1 - B + B * len(text) / mean) if mean else 1
            total += idf * tf * (K1 + 1) / (tf + norm)
        scores.append(total)
    return scores


def index_of(texts):
    index = LexicalIndex()
    index.add(map(" ".join, texts))
    return index


def scores(index, question, groups):
    return index.scores(question, np.array(groups, np.int32)).rows


@given(TEXTS, st.lists(st.sampled_from([*"bcfxyz"]), max_size=5))
def test_scores_are_those_of_the_formula(texts, question):
    found = scores(index_of(texts), question, range(len(texts)))
    assert found == pytest.approx(textbook(texts, question), rel=1e-5)


@given(TEXTS, st.lists(st.sampled_from([*"bcfxyz"]), max_size=5), st.data())
def test_half_of_the_score_of_a_group_is_that_of_one_long_text(texts, question, data):
    groups = data.draw(st.permutations([place // 2 for place in range(len(texts))]))
    whole = [
        [
            term
            for text, group in zip(texts, groups, strict=True)
            if group == number
            for term in text
        ]
        for number in range(max(groups) + 1)
    ]
    found = index_of(texts).scores(question, np.array(groups, np.int32)).groups
    expected = textbook(whole, question)
    best = max(expected) or 1
    assert all(
        -1e-5 <= f - e / best / 2 <= 0.5 + 1e-5 for f, e in zip(found, expected, strict=True)
    )
    assert max(found) <= 1


@given(TEXTS, st.data())
def test_dropped_rows_leave_nothing_behind(texts, data):
    index = index_of(texts)
    kept = data.draw(st.lists(st.booleans(), min_size=len(texts), max_size=len(texts)))
    index.keep(np.array(kept))
    rest = index_of([text for text, keep in zip(texts, kept, strict=True) if keep])
    assert index._numbers.keys() == rest._numbers.keys()
    for _ in range(2):
        groups = range(len(index._lengths.rows))
        np.testing.assert_array_equal(scores(index, "bcf", groups), scores(rest, "bcf", groups))
        index.add(["b c f"])
        rest.add(["b c f"])
