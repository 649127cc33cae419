"""Budgets of what models may use, for a run, a session, a user or the whole process."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Literal, TypeAlias, get_args

from agent_brain.common.values import is_amount
from agent_brain.errors import BrainDefinitionError
from agent_brain.states.usage import Usage

Scope: TypeAlias = Literal["run", "session", "user", "process"]


@dataclass(frozen=True, slots=True)
class UsageBudget:
    """What all model calls of a run, a session, a user or the process may use together.

    ::

        UsageBudget("user", cost=5.0, per=timedelta(days=1))

    Attributes:
        scope: Whose calls are added up: those of each run, of each session, of each user, or all.
        tokens: Tokens read and written.
        cost: US dollars, for the calls whose price is known.
        requests: Model calls, retries included.
        per: The time after which a call counts no more: at the latest a twelfth of ``per`` later.
            None for never.

    Raises:
        BrainDefinitionError: An unknown scope, no limit, or a limit that is not a number above 0.
    """

    scope: Scope
    _: KW_ONLY
    tokens: float | None = None
    cost: float | None = None
    requests: float | None = None
    per: timedelta | None = None

    def __post_init__(self) -> None:
        if self.scope not in get_args(Scope):
            scopes = ", ".join(map(repr, get_args(Scope)))
            raise BrainDefinitionError(f"UsageBudget({self.scope!r}): the scope is one of {scopes}")
        limits = {"tokens": self.tokens, "cost": self.cost, "requests": self.requests}
        for name, limit in limits.items():
            if limit is not None and not is_amount(limit):
                raise BrainDefinitionError(
                    f"UsageBudget({name}={limit!r}): a limit is a number above 0, or None"
                )
        if all(limit is None for limit in limits.values()):
            raise BrainDefinitionError(
                f"UsageBudget({self.scope!r}) limits nothing: give tokens=, cost= or requests="
            )
        per: object = self.per
        if per is not None and not (isinstance(per, timedelta) and per > timedelta()):
            raise BrainDefinitionError(
                f"UsageBudget(per={per!r}): give a timedelta above 0, such as timedelta(days=1), "
                "or None"
            )

    @property
    def seconds(self) -> float | None:
        """``per`` in seconds."""
        return None if self.per is None else self.per.total_seconds()

    def is_used_up(self, used: Usage) -> bool:
        """Return whether what was used reaches a limit."""
        pairs = (
            (self.tokens, used.total_tokens),
            (self.cost, used.known_cost),
            (self.requests, used.requests),
        )
        return any(limit is not None and amount >= limit for limit, amount in pairs)
