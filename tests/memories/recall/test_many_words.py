"""Words of many texts at once have the terms that each text has by itself."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.memories.recall import words
from agent_brain.memories.recall.features import Labels
from agent_brain.memories.recall.tokenizer import count_words, runs, terms
from agent_brain.memories.recall.words import USUAL, Words

SPACED = "Memory, memory run-time x/y//z a.b. -lead trail- INV-2041 _ 's naïve—and café “quoted”"
PIECES = [
    *SPACED.split(),
    *"don’t ½ ﬁne =\u0338 \u0301e и\u0306 İı 東京都庁に、行く。 한국어 ไทย 🎉 ΣΑΣ \ud800 \x00".split(),
    *("a\u00a0b", "c\u2028d", "e\x85f", "\t", "\n", "\x1c", "  ", "", "x" * 70, "東京-1" * 30),
]
TEXTS = st.lists(
    st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).flatmap(
        lambda pieces: st.sampled_from(["", " ", "  ", "\n"]).map(lambda by: by.join(pieces))
    ),
    max_size=8,
)


def are_cut_right(known: Words, numbers: Labels, texts: list[str]) -> bool:
    cut = known.cut(texts)
    alone = [terms(runs(text)) for text in texts]
    return (
        cut.terms.tolist() == [numbers.get(term) for found in alone for term in found]
        and cut.lengths.tolist() == [*map(len, alone)]
        and cut.counts.tolist() == [count_words(text, len(text.split())) for text in texts]
    )


@given(st.lists(TEXTS, max_size=4))
def test_texts_are_cut_together_as_alone(parts):
    numbers = Labels()
    known = Words(numbers)
    assert all(are_cut_right(known, numbers, texts) for texts in parts)
    alone = [term for texts in parts for text in texts for term in terms(runs(text))]
    assert [*numbers] == [*dict.fromkeys(alone)], "terms are numbered as they come"


def test_a_word_is_known_by_all_of_its_letters():
    numbers = Labels()
    texts = [f"{a}{b} {b}{a}{'z' * n}" for n, a in enumerate("bcdfgh") for b in "bcdfghjklmnp0123"]
    assert all(are_cut_right(Words(numbers), numbers, texts) for _ in range(2))


def test_texts_of_any_length_are_cut_alike():
    numbers = Labels()
    known = Words(numbers)
    many = [f"word{number}" for number in range(USUAL // 8)]
    long = " ".join(many)
    assert len(long) > USUAL
    assert are_cut_right(known, numbers, [" ".join(many[:1000])])
    assert are_cut_right(known, numbers, ["kitten", long, "truck"])
    assert len(known._known.rows) == 1 + len(many) + 2, "each word is known once"


def test_known_words_do_not_grow_without_end(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(words, "MOST", 10)
    numbers = Labels()
    known = Words(numbers)
    for start in range(0, 200, 5):
        texts = [f"same word{number} same" for number in range(start, start + 5)]
        assert are_cut_right(known, numbers, texts)
        assert len(known._terms.rows) <= 10 + 6
