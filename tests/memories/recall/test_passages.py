from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent_brain.memories.recall.passages import LONGEST, passages


@given(st.text("ab .\n。", max_size=3_000))
def test_the_passages_of_a_text_are_the_text_and_none_is_long(text):
    found = passages(text)
    assert "".join(found).split() == text.split()
    assert all(len(passage.rstrip()) <= LONGEST for passage in found)


def test_a_passage_ends_with_a_sentence_or_a_line_where_that_is_possible():
    text = "A sentence of some words, no more. " * 40 + "\n- a line\n- another" * 60
    assert all(passage.rstrip()[-1] in ".er" for passage in passages(text))
    assert passages("short") == ["short"]
