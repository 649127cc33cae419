from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.memories.recall.tokenizer import LONGEST_TERM, count_words, runs, terms


def found(text):
    return terms(runs(text))


def test_words_are_stemmed_and_function_words_left_out():
    assert found("They were sailing the boats") == found("a boat sails")[::-1]


def test_what_remains_of_a_contraction_is_no_term():
    assert found("I don't, she'll, we've and it's") == []


@pytest.mark.parametrize(
    "one, other",
    [
        ("café", "CAFE"),
        ("naïve", "naive"),
        ("ＩＮＶ", "inv"),
        ("Straße", "strasse"),
        ("ёлка", "елка"),
        ("книга", "книги"),
        ("שָׁלוֹם", "שלום"),
    ],
)
def test_spellings_of_one_word_are_one_term(one, other):
    assert found(one) == found(other)


def test_the_short_i_of_cyrillic_is_a_letter_of_its_own():
    assert found("йод") != found("иод")


def test_an_id_is_found_whole_and_by_its_parts():
    assert found("INV-2041") == ["inv-2041", "inv", "2041"]
    assert found("well-known") == [*found("well"), "known"]


@pytest.mark.parametrize("text", ["東京都", "สวัสดี", "ສະບາຍ", "ភាសាខ្មែរ", "မြန်မာ", "안녕하세요"])
def test_unspaced_scripts_are_found_by_pairs_of_characters(text):
    pairs = {text[i : i + 2] for i in range(len(text) - 1)}
    assert pairs <= set(found(text))
    assert set(found(text[1:])) <= set(found(text))


def test_a_han_character_is_found_alone():
    assert "猫" in found("我的猫很可爱")


def test_a_word_with_vowel_signs_is_one_term():
    assert len(found("हिन्दी")) == 1


def test_an_emoji_is_a_term_but_no_word():
    assert found("party 🎉") == [*found("party"), "🎉"]
    assert count_words("🎉🎉", 1) == 0


@pytest.mark.parametrize("text", ["", " \n\t", "?!…", "\x00", "\ud800", "_", "\u0301", "\u200d"])
def test_texts_without_words_have_no_terms(text):
    assert found(text) == []
    assert count_words(text, len(text.split())) == 0


def test_words_are_counted_with_function_words_and_two_unspaced_characters_as_one():
    assert count_words("What is it about?", 4) == 4
    assert count_words("東京都庁", 1) == 2


def test_a_megabyte_without_a_space_is_one_short_term():
    assert found("x" * 1_000_000) == ["x" * LONGEST_TERM]


@given(st.text())
def test_any_text_has_bounded_terms_that_do_not_depend_on_case(text):
    assert all(0 < len(term) <= LONGEST_TERM for term in found(text))
    assert found(text) == found(text)


@given(st.text(alphabet="abcxyz INV-204.1äÉß"))
def test_latin_terms_do_not_depend_on_case(text):
    assert found(text) == found(text.upper().lower())
