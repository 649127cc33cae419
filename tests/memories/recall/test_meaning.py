from __future__ import annotations

import numpy as np
import pytest

from agent_brain.memories.embedders import EmbeddingError
from agent_brain.memories.recall.scoring import NEAREST, SPREAD, meaning
from agent_brain.memories.vectors.ram import RamVectors, unit_vectors


def held_of(*vectors):
    held = RamVectors()
    held.put([str(number) for number in range(len(vectors))], vectors)
    return held


def scores(vectors, question, rows=None, nearest=None):
    held, rows = held_of(*vectors), len(vectors) if rows is None else rows
    found = held.nearest(unit_vectors([question])[0], nearest or len(vectors))
    cosines = {int(key): cosine for key, cosine in found.items()}
    evidence = meaning(cosines, rows)
    assert evidence is not None
    return evidence.cosine


def test_scores_rank_as_cosines_do():
    found = scores([[2, 0], [0, 3], [-1, 0], [1, 1]], [5, 0])
    assert np.argsort(-found).tolist() == [0, 3, 1, 2]
    assert found.mean() == pytest.approx(0, abs=1e-6)


def test_embedders_that_keep_all_cosines_close_together_say_as_much():
    generator = np.random.default_rng(1)
    vectors, question = generator.normal(size=(300, 8)), generator.normal(size=8)
    shifted = np.hstack([vectors, np.full((300, 1), 5.0)])
    wide = scores(vectors, question)
    narrow = scores(shifted, [*question, 5.0])
    assert wide.std() == pytest.approx(SPREAD, rel=0.05)
    assert wide.max() < 1.5 * narrow.max() < 3 * wide.max()


@pytest.mark.parametrize("count", [NEAREST + 1, 1_000, 20_000])
def test_the_nearest_show_about_what_all_would(count):
    generator = np.random.default_rng(1)
    vectors, question = generator.normal(size=(count, 32)), generator.normal(size=32)
    every = unit_vectors(vectors) @ unit_vectors([question])[0]
    found = scores(vectors, question, nearest=NEAREST)
    best = np.argsort(-every)[:NEAREST]
    standard = (every - every.mean()) * SPREAD / every.std()
    assert found[best] == pytest.approx(standard[best], rel=0.15)
    assert (found <= found[best[-1]]).sum() > count - NEAREST


def test_a_message_without_a_vector_ranks_in_the_middle():
    one, other, none = scores([[1, 0], [0, 1]], [1, 0], rows=3)
    assert one > none == 0 > other


def test_without_vectors_there_is_nothing_to_compare():
    assert meaning({}, 3) is None
    assert RamVectors().nearest(unit_vectors([[1, 0]])[0], 3) == {}


@pytest.mark.parametrize("vector", [[np.nan, 1], [np.inf, 1], [[1, 2]], 1])
def test_vectors_that_are_none_are_refused_and_change_nothing(vector):
    held = held_of([1, 0])
    with pytest.raises(EmbeddingError):
        held.put(["x"], [vector])
    assert held.keys() == ["0"]


def test_huge_and_tiny_numbers_are_scaled_without_overflow():
    one, other, least = scores([[3e30, 4e30], [3e-30, 4e-30], [1, 0]], [0.6, 0.8])
    assert one == pytest.approx(other)
    assert one > least


def test_after_the_last_vector_another_model_may_come():
    held = held_of([1, 0])
    assert held.remove("0")
    assert held.dimension is None
    held.put(["1"], [[1, 0, 0]])
    assert held.dimension == 3


def test_what_is_removed_leaves_nothing_and_the_others_are_found():
    held = held_of(*np.eye(40))
    for number in range(0, 40, 2):
        assert held.remove(str(number))
    assert not held.remove("0")
    held.put(["x"], [np.eye(40)[0]])
    for number in range(1, 40, 2):
        assert [*held.nearest(np.eye(40, dtype=np.float32)[number], 1)] == [str(number)]
    assert [*held.nearest(np.eye(40, dtype=np.float32)[0], 1)] == ["x"]
    assert not held._room[len(held) :].any()
