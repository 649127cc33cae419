"""Usage: what it may hold."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain.states import Usage


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"input_tokens": None}, "input_tokens=None"),
        ({"output_tokens": "9"}, "output_tokens='9'"),
        ({"cached_tokens": 0.5}, "cached_tokens=0.5"),
        ({"requests": None}, "requests=None"),
        ({"cost": "0.1"}, "cost='0.1'"),
        ({"input_tokens": -1}, "input_tokens=-1"),
        ({"requests": -1}, "requests=-1"),
        ({"cost": -0.1}, "cost=-0.1"),
        ({"cost": float("nan")}, "cost=nan"),
    ],
)
def test_what_cannot_be_counted_is_refused_by_name(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=f"Usage\\({named}\\)"):
        Usage(**options)
