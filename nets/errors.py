"""Errors of nets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_brain.common.errors import AgentBrainError


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of a net.

    Attributes:
        code: The kind of problem, such as ``"unreachable"``.
        message: What is wrong, and where.
        hint: How to solve it.
        states: Names of the states concerned.
    """

    code: str
    message: str
    hint: str
    states: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}. {self.hint}"


class NetDefinitionError(AgentBrainError, ValueError):
    """Raised when a net cannot be built.

    Attributes:
        problems: All problems of the net.
    """

    def __init__(self, problems: Sequence[Problem], *, name: str | None = None) -> None:
        self.problems = list(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        title = f"The net {name!r} has {count}" if name else f"The net has {count}"
        super().__init__("\n".join([f"{title}:", *(f"  - {problem}" for problem in self.problems)]))


class TransitionError(AgentBrainError):
    """Raised when a state proposes a transition that is not an edge of the net.

    Attributes:
        state: Name of the state.
        proposal: What it proposed.
        allowed: Names of the states that it may propose.
    """

    def __init__(self, state: str, proposal: object, allowed: Sequence[str]) -> None:
        self.state = state
        self.proposal = proposal
        self.allowed = list(allowed)
        super().__init__(
            f"State {state!r} proposed {proposal!r}, but may only go to: {', '.join(allowed)}. If "
            "it is intended, add it to transitions= or to the return annotation of next_state"
        )


class UnknownNetError(AgentBrainError, ValueError):
    """Raised when no net has that name, or it does not take those options."""


class NetFileError(AgentBrainError, ValueError):
    """Raised when a file does not describe a net, or cannot be read."""
