from __future__ import annotations

from datetime import UTC, date, datetime

import numpy as np
import pytest

from agent_brain.memories.recall.dates import (
    MONTH_WEIGHT,
    closeness,
    named_dates,
    relative_spans,
    spans_of,
)


@pytest.mark.parametrize(
    "question, dates",
    [
        ("What happened on 5 May 2023?", [(5, 5, 2023)]),
        ("on the 21st of June", [(21, 6, None)]),
        ("on October 13, 2023", [(13, 10, 2023)]),
        ("on Sept. 3rd", [(3, 9, None)]),
        ("on 2024-02-29", [(29, 2, 2024)]),
        ("in July", [(None, 7, None)]),
        ("in august 2022", [(None, 8, 2022)]),
        ("in may", [(None, 5, None)]),
        ("What may happen? I marched.", []),
        ("on 99 June 0000", [(99, 6, None)]),
        ("on 2024-99-99", []),
    ],
)
def test_days_are_read_or_else_months(question, dates):
    assert named_dates(question) == dates


def fit(day, question, years=(2023, 2024)):
    days = np.array([date.fromisoformat(day).toordinal()], np.float64)
    return float(closeness(days, spans_of(question, years))[0])


def test_a_day_fits_less_the_farther_it_is_and_not_at_all_after_three():
    question = "What happened on 31 May 2023?"
    fits = [fit(day, question) for day in ("2023-05-31", "2023-06-01", "2023-06-03", "2023-06-04")]
    assert fits == [1.0, 0.75, 0.25, 0.0]


def test_a_date_without_a_year_means_any_year():
    assert fit("2024-05-31", "on 31 May") == fit("2023-05-31", "on 31 May") == 1
    assert fit("2024-05-31", "on 31 May 2023") == 0


def test_a_month_has_less_weight_than_a_day():
    assert fit("2023-12-31", "in December") == MONTH_WEIGHT
    assert fit("2023-11-10", "in December") == 0


def test_days_that_do_not_exist_fit_nothing():
    assert fit("2023-02-28", "on 30 February 2023") == 0
    assert fit("2023-03-01", "on 29 February", years=[2023]) == 0


@pytest.mark.parametrize(
    "question, day",
    [
        ("What did we say yesterday?", "2024-03-12"),
        ("What did I ask today?", "2024-03-13"),
        ("What was it two weeks ago?", "2024-02-28"),
        ("And 3 days ago?", "2024-03-10"),
        ("What about last week?", "2024-03-06"),
        ("What about last month?", "2024-02-11"),
    ],
)
def test_days_are_counted_from_the_day_of_asking(question, day):
    spans = list(relative_spans(question, datetime(2024, 3, 13, tzinfo=UTC)))
    assert closeness(np.array([date.fromisoformat(day).toordinal()], np.float64), spans)[0] > 0


def test_the_first_of_a_month_has_a_month_before_it():
    (span,) = relative_spans("last month", datetime(2024, 1, 31, tzinfo=UTC))
    assert date.fromordinal(span.first) == date(2023, 12, 1)
