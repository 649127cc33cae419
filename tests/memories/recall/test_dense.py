from __future__ import annotations

import numpy as np
import pytest

from agent_brain.memories.embedders import EmbeddingError
from agent_brain.memories.recall.dense import SPREAD, DenseIndex


def index_of(*vectors):
    index = DenseIndex()
    index.extend(len(vectors))
    for row, vector in enumerate(vectors):
        if vector is not None:
            index.put([row], [vector])
    return index


def scores(index, vector):
    found = index.evidence(vector)
    return None if found is None else found[0]


def test_scores_rank_as_cosines_do():
    found = scores(index_of([2, 0], [0, 3], [-1, 0], [1, 1]), [5, 0])
    assert np.argsort(-found).tolist() == [0, 3, 1, 2]
    assert found.mean() == pytest.approx(0, abs=1e-6)


def test_embedders_that_keep_all_cosines_close_together_say_as_much():
    generator = np.random.default_rng(1)
    vectors, question = generator.normal(size=(500, 8)), generator.normal(size=8)
    shifted = np.hstack([vectors, np.full((500, 1), 5.0)])
    wide = scores(index_of(*vectors), question)
    narrow = scores(index_of(*shifted), [*question, 5.0])
    assert wide.std() == pytest.approx(SPREAD, rel=0.05)
    assert wide.max() < 1.5 * narrow.max() < 3 * wide.max()


def test_a_message_without_a_vector_ranks_in_the_middle():
    one, none, other, zeros = scores(index_of([1, 0], None, [0, 1], [0, 0]), [1, 0])
    assert one > none == zeros == 0 > other


@pytest.mark.parametrize("index", [DenseIndex(), index_of(None), index_of([0, 0])])
def test_without_vectors_there_is_nothing_to_compare(index):
    assert scores(index, [1, 0]) is None


def test_a_question_of_zeros_says_nothing():
    assert scores(index_of([1, 0]), [0, 0]) is None


@pytest.mark.parametrize("vector", [[1, 2, 3], [np.nan, 1], [np.inf, 1], [[1, 2]], 1])
def test_vectors_that_do_not_fit_are_refused_and_change_nothing(vector):
    index = index_of([1, 0], None)
    with pytest.raises(EmbeddingError):
        index.put([1], [vector])
    assert index.present.tolist() == [True, False]
    with pytest.raises(EmbeddingError):
        scores(index, vector)


def test_huge_and_tiny_numbers_are_scaled_without_overflow():
    index = index_of([3e30, 4e30], [3e-30, 4e-30], [1, 0])
    one, other, least = scores(index, [0.6, 0.8])
    assert one == pytest.approx(other)
    assert one > least


def test_after_the_last_vector_another_model_may_come():
    index = index_of([1, 0])
    index.clear(0)
    assert index.dimension is None
    index.put([0], [[1, 0, 0]])
    assert index.dimension == 3


def test_rows_are_renumbered_and_grow_on():
    index = index_of(*np.eye(40))
    index.keep(np.arange(40) % 2 == 1)
    index.extend(20)
    index.put([20], [np.eye(40)[0]])
    assert np.argmax(scores(index, np.eye(40)[3])) == 1
    assert np.argmax(scores(index, np.eye(40)[0])) == 20
