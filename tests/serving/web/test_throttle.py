"""Limits on the requests of each client."""

from __future__ import annotations

import pytest

from agent_brain.serving.web import access as module
from agent_brain.serving.web.access import Throttle
from agent_brain.serving.web.requests import HttpError


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def refused(throttle: Throttle, client: str) -> str | None:
    """The type of the error, if a request is refused; it stays in progress if not."""
    try:
        throttle.enter(client)
    except HttpError as error:
        assert int(error.headers["retry-after"]) >= 1  # noqa: PT017
        return f"{error.status} {error.type}"
    return None


@pytest.mark.parametrize("most", [1, 2, 3])
def test_a_client_sends_so_many_requests_a_minute_and_others_are_not_affected(most):
    clock = Clock()
    throttle = Throttle(most, None, clock=clock)
    assert [refused(throttle, "ann") for _ in range(most + 2)] == [None] * most + [
        "429 rate_limited"
    ] * 2
    assert refused(throttle, "bob") is None
    clock.now += 60 / most
    assert refused(throttle, "ann") is None
    assert refused(throttle, "ann") == "429 rate_limited"
    clock.now += 10_000
    assert [refused(throttle, "ann") for _ in range(most + 1)] == [None] * most + [
        "429 rate_limited"
    ]


def test_the_time_that_is_named_is_enough():
    clock = Clock()
    throttle = Throttle(0.5, None, clock=clock)
    throttle.enter("ann")
    with pytest.raises(HttpError) as caught:
        throttle.enter("ann")
    clock.now += int(caught.value.headers["retry-after"])
    assert refused(throttle, "ann") is None


@pytest.mark.parametrize("most", [1, 2, 3])
def test_only_so_many_requests_are_in_progress(most):
    throttle = Throttle(None, most)
    assert [refused(throttle, str(n)) for n in range(most + 1)] == [None] * most + [
        "503 overloaded"
    ]
    throttle.leave("0")
    assert refused(throttle, "new") is None


@pytest.mark.parametrize("most", [1, 2, 3])
def test_one_client_does_not_keep_out_the_others(most):
    throttle = Throttle(None, 10, most)
    assert [refused(throttle, "ann") for _ in range(most + 1)] == [None] * most + [
        "429 rate_limited"
    ]
    assert refused(throttle, "bob") is None
    throttle.leave("ann")
    assert refused(throttle, "ann") is None


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "MAX_CLIENTS", 3)
    throttle = Throttle(5, None, 5)
    for n in range(100):
        throttle.enter(str(n))
        throttle.leave(str(n))
    assert len(throttle._buckets) == 3
    assert len(throttle._active) == 0
