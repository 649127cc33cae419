from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.memories.recall.scoring import asked_before, beside, best_around
from agent_brain.memories.recall.top_k import best_first

SCORES = st.lists(st.integers(-3, 3).map(float), min_size=1, max_size=40)


def grouped(data, count):
    cuts = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return np.cumsum(cuts).astype(np.int32)


@given(SCORES, st.integers(1, 12), st.data())
def test_the_best_around_is_the_largest_within_reach_in_the_group(scores, reach, data):
    groups = grouped(data, len(scores))
    expected = [
        max(s for j, s in enumerate(scores) if abs(i - j) <= reach and groups[i] == groups[j])
        for i in range(len(scores))
    ]
    values = np.array(scores, np.float32)
    assert best_around(values, groups, reach).tolist() == expected
    assert values.tolist() == scores


@given(SCORES, st.data())
def test_those_beside_are_added_within_the_group(scores, data):
    groups = grouped(data, len(scores))
    expected = [
        sum(s for j, s in enumerate(scores) if abs(i - j) == 1 and groups[i] == groups[j])
        for i in range(len(scores))
    ]
    assert beside(np.array(scores, np.float32), groups).tolist() == expected


def test_a_question_supports_the_answer_of_someone_else_only():
    scores, one = np.array([5, 1, 1], np.float32), np.ones(3, np.float32)
    groups = np.zeros(3, np.int32)
    speakers = np.array([0, 1, 1], np.int32)
    assert asked_before(scores, groups, one, speakers).tolist() == [0, 5, 0]
    assert asked_before(scores, np.arange(3, dtype=np.int32), one, speakers).tolist() == [0, 0, 0]


@given(SCORES, st.integers(1, 50))
def test_the_best_come_first_and_of_equal_ones_the_later(scores, count):
    expected = sorted(range(len(scores)), key=lambda i: (-scores[i], -i))[:count]
    assert best_first(np.array(scores, np.float32), count) == expected


@given(SCORES, st.integers(1, 5))
def test_the_best_accepted_are_those_of_the_whole_ranking(scores, count):
    values = np.array(scores, np.float32)
    whole = [place for place in best_first(values, len(scores)) if place % 3]
    assert best_first(values, count, lambda place: place % 3 > 0) == whole[:count]


def test_what_is_out_is_never_found():
    assert best_first(np.array([-np.inf, 1, -np.inf], np.float32), 2) == [1]
    assert best_first(np.array([], np.float32), 2) == []


@given(
    st.integers(1, 40),
    st.lists(st.sampled_from([-np.inf, 0.0, 0.25, 0.5, 1.0]), min_size=1, max_size=10),
    st.integers(1, 600),
    st.randoms(use_true_random=False),
)
def test_the_best_of_many_scores_are_the_first_of_all_in_order(count, levels, size, dice):
    scores = [dice.choice(levels) if dice.random() < 0.8 else dice.random() for _ in range(size)]
    values = np.array(scores, np.float32)
    places = sorted(range(size), key=lambda place: (-values[place], -place))
    expected = [place for place in places if scores[place] > -np.inf][:count]
    assert best_first(values, count) == expected
