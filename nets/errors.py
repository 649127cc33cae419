"""Errors of nets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_brain.tools.errors import AgentBrainError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a net.

    Attributes:
        code: Which check found it, such as ``"unreachable"``.
        message: What is wrong, and where.
        hint: What to do about it.
        states: Names of the states concerned.
    """

    code: str
    message: str
    hint: str
    states: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"[{self.code}] {self.message}. {self.hint}"


class NetDefinitionError(AgentBrainError, ValueError):
    """A net cannot be built as it was described.

    Attributes:
        problems: All that is wrong with it.
    """

    def __init__(self, problems: Sequence[Problem], *, name: str | None = None) -> None:
        self.problems = list(problems)
        count = "1 problem" if len(self.problems) == 1 else f"{len(self.problems)} problems"
        title = f"The net {name!r} has {count}" if name else f"The net has {count}"
        super().__init__("\n".join([f"{title}:", *(f"  - {problem}" for problem in self.problems)]))


class TransitionError(AgentBrainError):
    """A state proposed to go where no edge of the net goes.

    Attributes:
        state: Name of the state that proposed.
        proposal: What it proposed.
        allowed: Where it may go.
    """

    def __init__(self, state: str, proposal: object, allowed: Sequence[str]) -> None:
        self.state = state
        self.proposal = proposal
        self.allowed = list(allowed)
        super().__init__(
            f"State {state!r} proposed {proposal!r}, but may only go to: {', '.join(allowed)}. Add "
            "the edge to transitions=, or to the return annotation of next_state, if it is meant"
        )


class UnknownNetError(AgentBrainError, ValueError):
    """No net is registered under that name, or it does not take those options."""


class NetFileError(AgentBrainError, ValueError):
    """A file does not describe a net, or cannot be read."""
