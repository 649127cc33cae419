"""No test calls a real model by accident."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agent_brain.states.models import interception
from agent_brain.tools.errors import AgentBrainError


class RealModelError(AgentBrainError, AssertionError):
    """Code under test was about to call a real model."""


@contextmanager
def no_real_models() -> Iterator[None]:
    """Inside, a call of a real model raises :class:`RealModelError` before anything is sent.

    It holds for the whole process, whichever task or thread makes the call, so it may be entered
    in a fixture.
    """

    def refuse(model: str) -> None:
        raise RealModelError(
            f"A real model, {model!r}, was about to be called inside no_real_models(): give the "
            "code under test a ScriptedLLM"
        )

    with interception.before_real_calls(refuse):
        yield
