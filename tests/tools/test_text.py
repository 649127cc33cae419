"""Estimating tokens, shortening text, and converting values to text."""

from __future__ import annotations

import dataclasses
import datetime as dt
import enum
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agent_brain.common.text import clean, clean_json, to_compact_json, to_text
from agent_brain.tools import count_tokens, shorten

MIXED = st.text(st.one_of(st.characters(), st.sampled_from("aé漢字🙂\ud800 \n")), max_size=400)


@given(MIXED, st.integers(1, 120))
def test_shortened_text_never_exceeds_the_budget(text, budget):
    assert count_tokens(shorten(text, budget)) <= budget


@given(MIXED, st.integers(0, 50))
def test_text_within_the_budget_is_left_alone(text, spare):
    assert shorten(text, count_tokens(text) + spare) == text


@given(st.text("漢字かな", min_size=200, max_size=400), st.integers(30, 100))
def test_head_and_tail_are_kept(text, budget):
    shortened = shorten(text, budget)
    head, _, rest = shortened.partition("\n… [")
    tail = rest.partition("] …\n")[2]

    assert head
    assert tail
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) >= len(tail)


@given(MIXED.filter(lambda text: len(text) > 40))
def test_a_budget_smaller_than_the_marker_keeps_a_head(text):
    assert text.startswith(shorten(text, 4))


def test_the_marker_says_how_much_is_missing():
    shortened = shorten("a" * 4000, 100)
    missing = int(shortened.partition("[")[2].partition(" ")[0])

    assert missing == pytest.approx(1000 - 100, abs=15)


@given(MIXED, MIXED)
def test_the_estimate_of_a_whole_is_that_of_its_parts_give_or_take_rounding(first, second):
    whole = count_tokens(first + second)

    assert whole <= count_tokens(first) + count_tokens(second) <= whole + 2


@given(MIXED, MIXED)
def test_more_text_never_has_fewer_tokens(text, more):
    assert count_tokens(text + more) >= count_tokens(text)


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("漢字", 2), ("ab漢", 2)]
)
def test_the_estimate_for_known_texts(text, tokens):
    assert count_tokens(text) == tokens


@given(MIXED)
def test_clean_text_can_be_encoded_and_valid_text_is_unchanged(text):
    cleaned = clean(text)

    assert cleaned.encode().decode() == cleaned
    if not any("\ud800" <= character <= "\udfff" for character in text):
        assert cleaned == text


def test_two_halves_of_a_pair_are_one_character_again():
    assert clean("\ud83d\ude42") == "🙂"


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | MIXED,
        lambda inner: st.lists(inner) | st.dictionaries(MIXED, inner),
        max_leaves=10,
    )
)
def test_clean_json_can_be_written_strictly_and_read_back(value):
    cleaned = clean_json(value)

    written = json.dumps(cleaned, allow_nan=False, ensure_ascii=False)
    assert json.loads(written.encode()) == cleaned


class Color(enum.Enum):
    RED = "red"


class Point(BaseModel):
    x: int


@dataclasses.dataclass
class Pair:
    a: int
    when: dt.date


class Opaque:
    def __repr__(self) -> str:
        return "<opaque>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (1.5, "1.5"),
        ("text", "text"),
        ([1, "é"], '[1,"é"]'),
        (Color.RED, '"red"'),
        (Point(x=1), '{"x":1}'),
        (Pair(1, dt.date(2026, 1, 2)), '{"a":1,"when":"2026-01-02"}'),
        ({"a": Opaque()}, '{"a":"<opaque>"}'),
        (Opaque(), '"<opaque>"'),
        (b"abc", '"abc"'),
        (b"\xff", "b'\\xff'"),
    ],
)
def test_any_value_becomes_text(value, text):
    assert to_text(value) == text


def test_a_model_with_a_lone_surrogate_is_json_too():
    class Said(BaseModel):
        text: str

    assert to_text(Said.model_construct(text="\ud800")) == '{"text": "\ufffd"}'


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_result_is_json_whatever_numbers_are_in_it(number):
    class Measured(BaseModel):
        value: float

    for value in ({"a": number}, [number], {"a": [{"b": number}]}, Measured(value=number)):
        assert "null" in to_text(value)
        json.loads(to_text(value), parse_constant=lambda constant: pytest.fail(constant))


@pytest.mark.parametrize("value", [{"a": "\ud800"}, ["\udfff"], {"\ud800": {1, 2}}])
def test_a_result_with_a_lone_surrogate_is_json_too(value):
    assert "\ufffd" in str(json.loads(to_text(value).encode()))


@pytest.mark.parametrize("end", ["\n", "\x0b", "\x0c", "\x1c", "\x1e", "\x85", "\u2028", "\u2029"])
def test_compact_json_is_one_line_for_every_line_splitter(end):
    written = to_compact_json({"a": f"é{end}b"})
    assert written.splitlines() == [written]
    assert json.loads(written) == {"a": f"é{end}b"}
