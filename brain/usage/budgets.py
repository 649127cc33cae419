"""Budgets of what models may use, and accounts of what runs, sessions and users have used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from datetime import timedelta
from typing import Literal, TypeAlias, get_args

from pydantic import BaseModel

from agent_brain.common.values import is_amount
from agent_brain.errors import BrainDefinitionError
from agent_brain.states.usage import NOTHING, Usage

PARTS = 12  # of a budget's time

Part: TypeAlias = tuple[int, Usage]  # its number, and what was used in it
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


@dataclass(slots=True)
class Account:
    """What one run, session or user has used, or the process.

    Attributes:
        total: Everything.
        windows: For each time of a budget, in seconds: what was used in each part of it, the
            oldest first.
    """

    total: Usage = NOTHING
    windows: dict[float, list[Part]] = field(default_factory=dict)

    def spend(self, usage: Usage, now: float, budgets: Iterable[UsageBudget]) -> None:
        """Add what a model call used.

        Args:
            usage: What it used.
            now: The time in seconds.
            budgets: Those for which the time of the call matters.
        """
        self.total += usage
        for seconds in {budget.seconds for budget in budgets}:
            if seconds is not None:
                self._spend_part(self.windows.setdefault(seconds, []), usage, now, seconds)

    def _spend_part(self, parts: list[Part], usage: Usage, now: float, seconds: float) -> None:
        number, used = _number(now, seconds), NOTHING
        if parts and parts[-1][0] >= number:  # greater if the clock was set back
            number, used = parts.pop()
        parts.append((number, used + usage))
        while parts[0][0] < number - PARTS:
            del parts[0]

    def used_up(self, budgets: Iterable[UsageBudget], now: float) -> UsageBudget | None:
        """Return the first of ``budgets`` of which nothing is left, if any."""
        return next((b for b in budgets if b.is_used_up(self._used(b.seconds, now))), None)

    def _used(self, seconds: float | None, now: float) -> Usage:
        """Return what was used in a time; in all times for None."""
        if seconds is None:
            return self.total
        first = _number(now, seconds) - PARTS
        parts = self.windows.get(seconds, ())
        return sum((used for number, used in parts if number >= first), NOTHING)


def _number(now: float, seconds: float) -> int:
    """Return the number of the part of ``seconds`` in which ``now`` is."""
    return int(now * PARTS / seconds)


class Accounts:
    """A bounded number of accounts; those that were not used for longest are dropped first.

    Those that have used up a budget are set aside instead, so that others cannot displace them;
    as many of them are kept again.

    Args:
        budgets: The budgets for each of them.
        max_accounts: How many are kept.
    """

    def __init__(self, budgets: Iterable[UsageBudget], max_accounts: int) -> None:
        self.budgets = tuple(budgets)
        self._max = max_accounts
        self._recent: OrderedDict[Hashable, Account] = OrderedDict()
        self._aside: OrderedDict[Hashable, Account] = OrderedDict()

    def __iter__(self) -> Iterator[tuple[Hashable, Account]]:
        yield from self._aside.items()
        yield from self._recent.items()

    def get(self, key: Hashable) -> Account | None:
        """Return the account of ``key``; None if it has used nothing."""
        return self._recent.get(key) or self._aside.get(key)

    def spend(self, key: Hashable, usage: Usage, now: float) -> None:
        """Add what a model call used; see :meth:`Account.spend`."""
        account = self._recent.pop(key, None) or self._aside.pop(key, None) or Account()
        self._add(key, account, now)
        account.spend(usage, now, self.budgets)

    def used_up(self, key: Hashable, now: float) -> UsageBudget | None:
        """Return the first budget of which ``key`` has nothing left, if any."""
        account = self.get(key)
        return None if account is None else account.used_up(self.budgets, now)

    def _add(self, key: Hashable, account: Account, now: float) -> None:
        """Add an account as the newest; if there are too many, drop the oldest or set it aside."""
        self._recent[key] = account
        if len(self._recent) <= self._max:
            return
        key, oldest = self._recent.popitem(last=False)
        if oldest.used_up(self.budgets, now) is not None:
            self._aside[key] = oldest
            if len(self._aside) > self._max:
                self._aside.popitem(last=False)

    def replace(self, accounts: Iterable[tuple[Hashable, Account]], now: float) -> None:
        """Replace all accounts by ``accounts``, the oldest first."""
        self._recent.clear()
        self._aside.clear()
        for key, account in accounts:
            self._add(key, account, now)


class SavedLedger(BaseModel, defer_build=True):
    """All accounts of a ledger, by their keys, as plain data."""

    process: list[tuple[None, Account]]
    purpose: list[tuple[str, Account]] = []
    run: list[tuple[str, Account]]
    session: list[tuple[tuple[str | None, str], Account]]
    user: list[tuple[str | None, Account]]
