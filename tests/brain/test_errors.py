"""The documented tree of errors matches the classes."""

from __future__ import annotations

import re

from agent_brain import errors
from agent_brain.errors import AgentBrainError


def test_the_drawing_names_every_error_in_it() -> None:
    drawn = set(re.findall(r"[├└]── (\w+)", errors.__doc__ or "")) | {"AgentBrainError"}
    assert drawn == set(errors.__all__)


def test_all_of_them_have_one_base() -> None:
    assert all(issubclass(getattr(errors, name), AgentBrainError) for name in errors.__all__)
