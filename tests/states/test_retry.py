from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_brain.states.retry import RetryPolicy, retry_after

NOW = datetime(2026, 11, 21, 12, 0, 0, tzinfo=UTC)


def most() -> float:
    return 1.0


def least() -> float:
    return 0.0


def test_the_bound_of_the_wait_doubles_with_each_retry() -> None:
    policy = RetryPolicy(retries=4, backoff=0.5)
    assert [policy.wait(done, draw=most) for done in range(4)] == [0.5, 1.0, 2.0, 4.0]


def test_the_wait_is_drawn_from_the_whole_range_down_to_zero() -> None:
    assert RetryPolicy(backoff=8).wait(0, draw=least) == 0.0
    draws = random.Random(7)
    waits = [RetryPolicy(backoff=8).wait(0, draw=draws.random) for _ in range(200)]
    known = [wait for wait in waits if wait is not None]
    assert len(known) == 200
    assert min(known) < 0.5 < 7.5 < max(known) <= 8


def test_the_wait_never_passes_the_longest() -> None:
    assert RetryPolicy(retries=2000, backoff=1, max_wait=20).wait(1999, draw=most) == 20


def test_there_is_no_wait_when_the_retries_are_used_up() -> None:
    assert RetryPolicy(retries=2).wait(2, draw=most) is None
    assert RetryPolicy(retries=0).wait(0, draw=most) is None


def test_the_wait_is_not_shorter_than_the_provider_asks() -> None:
    policy = RetryPolicy(backoff=0.5)
    assert policy.wait(0, 7.0, draw=least) == 7.0
    assert policy.wait(0, 7.0, draw=most) == 7.5


def test_there_is_no_retry_if_the_provider_asks_for_more_than_the_longest_wait() -> None:
    policy = RetryPolicy(max_wait=60)
    assert policy.wait(0, 60.0, draw=most) == 60
    assert policy.wait(0, 60.1, draw=most) is None


@given(
    done=st.integers(0, 10_000),
    asked=st.none() | st.floats(0, 1e6),
    backoff=st.floats(0, 1e3),
    longest=st.floats(0, 1e3),
    drawn=st.floats(0, 1),
)
def test_a_wait_is_between_what_is_asked_and_the_longest(
    done: int, asked: float | None, backoff: float, longest: float, drawn: float
) -> None:
    policy = RetryPolicy(retries=10_001, backoff=backoff, max_wait=longest)
    wait = policy.wait(done, asked, draw=lambda: drawn)
    if wait is None:
        assert asked is not None
        assert asked > longest
    else:
        assert (asked or 0) <= wait <= longest


@pytest.mark.parametrize(
    ("value", "seconds"),
    [("17", 17.0), (" 0.25 ", 0.25), ("0", 0.0), ("-3", 0.0)],
)
def test_retry_after_in_seconds_is_read(value: str, seconds: float) -> None:
    assert retry_after({"Retry-After": value}) == seconds


@pytest.mark.parametrize("moment", ["Sat, 21 Nov 2026 12:00:30 GMT", "21 Nov 2026 12:00:30 -0000"])
def test_retry_after_as_a_date_is_the_time_until_then(moment: str) -> None:
    assert retry_after({"retry-after": moment}, now=NOW) == 30


def test_a_date_is_compared_with_a_clock_of_any_zone() -> None:
    there = NOW.astimezone(timezone(timedelta(hours=9)))
    assert retry_after({"Retry-After": "Sat, 21 Nov 2026 12:00:30 GMT"}, now=there) == 30


def test_a_date_in_the_past_means_no_wait() -> None:
    assert retry_after({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0


def test_milliseconds_are_preferred_as_they_are_more_exact() -> None:
    assert retry_after({"Retry-After": "1", "Retry-After-Ms": "250"}) == 0.25


@pytest.mark.parametrize("value", ["", "soon", "nan", "inf", "1e999", "Sat, 99 Nov 2026"])
def test_a_header_that_says_nothing_is_passed_over(value: str) -> None:
    assert retry_after({"Retry-After": value}) is None


def test_without_a_header_no_wait_is_requested() -> None:
    assert retry_after({}) is None
