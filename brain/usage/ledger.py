"""What models used, by run, session, user and process, and budgets over each of these."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from weakref import finalize

from pydantic import ValidationError

from agent_brain.common.ids import new_id
from agent_brain.common.secrets import get_logger
from agent_brain.common.values import check_count, check_function, error_lines
from agent_brain.errors import BrainDefinitionError, BrainUseError
from agent_brain.memories.base import Memory
from agent_brain.memories.store.expiry import utc_now
from agent_brain.states.hooks import Hook, HookRequest
from agent_brain.states.usage import Usage
from agent_brain.usage.budgets import Account, Accounts, SavedLedger, UsageBudget

logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Payer:
    """Who pays for the model calls of a run.

    Attributes:
        ledger: The ledger.
        run: ID of the run.
        session: Its session.
        user: Its user; None for nobody in particular.
    """

    ledger: UsageLedger
    run: str
    session: str
    user: str | None

    def may_spend(self) -> bool:
        """Return whether something is left of every budget."""
        used_up = self.ledger.used_up(run=self.run, session=self.session, user=self.user)
        return used_up is None

    def spend(self, usage: Usage, purpose: str | None = None) -> None:
        """Count what a model call used, and what a memory made it for, if one did."""
        self.ledger.charge(self, usage, purpose)


class UsageLedger(Hook):
    """Counts what models use, for each run, session and user and for the process.

    ::

        ledger = UsageLedger([UsageBudget("user", cost=5.0, per=timedelta(days=1))])
        brain = Brain("react", hooks=[ledger])
        ledger.usage(user="ann").known_cost

    Every model call of a run is counted as its ``Result.usage`` counts it: those of subnets,
    branches and brains used as tools, summaries and embeddings of the memory, attempts that
    failed, and calls that were cut off. What a memory does after a run, such as handing a
    conversation over when it is closed, is counted here too. If a
    budget is used up, the next model call is not begun: the run ends with ``stop_reason="budget"``,
    keeps what was done, and can be resumed. Calls that have begun are completed, so runs at the
    same time may together exceed a budget by the calls in progress.

    Several brains, also in several threads, may share a ledger.

    Args:
        budgets: The budgets; none of them for counting only.
        who: Returns the user who pays for a run, from its ``deps`` or its memory; called when the
            run starts or is resumed. By default it is the tenant of the memory. None stands for
            nobody in particular: all such runs have one account together.
        max_accounts: How many runs, sessions and users, of each, are kept. Beyond that those that
            were not used for longest are dropped, and start from 0 if they return. As many again
            are kept that have used up a budget. The process is always counted.
        clock: Returns the time.

    Raises:
        BrainDefinitionError: An argument of a wrong kind.
    """

    def __init__(
        self,
        budgets: Iterable[UsageBudget] = (),
        *,
        who: Callable[[HookRequest], str | None] | None = None,
        max_accounts: int = 20_000,
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        wrong: object = budgets
        if not isinstance(wrong, Iterable):
            raise BrainDefinitionError(f"UsageLedger({wrong!r}): give a list of budgets")
        given = tuple(budgets)
        for budget in given:
            if not isinstance(budget, UsageBudget):
                raise BrainDefinitionError(
                    f"UsageLedger([{budget!r}]): give budgets, such as UsageBudget('user', cost=5)"
                )
        check_function(BrainDefinitionError, "who", who, "request", optional=True)
        check_function(BrainDefinitionError, "clock", clock)
        check_count(BrainDefinitionError, "max_accounts", max_accounts)
        self.budgets = given
        self._who = who or (lambda request: request.tenant)
        self._clock = clock
        self._lock = threading.Lock()
        self._accounts = {
            scope: Accounts([b for b in given if b.scope == scope], max_accounts)
            for scope in SavedLedger.__annotations__
        }
        self._unnamed: dict[int, str] = {}  # by the id() of a memory, while it exists
        self._warns = any(b.cost is not None for b in given)

    def usage(
        self, *, run: str | None = None, session: str | None = None, user: str | None = None
    ) -> Usage:
        """Return what was used by a run, by a session of a user, by a user, or by all.

        Args:
            run: ID of a run.
            session: A session.
            user: The user; with ``session``, whose session it is.

        Raises:
            BrainUseError: A run together with a session or a user.
        """
        if run is not None and (session is not None or user is not None):
            raise BrainUseError("usage(run=…) takes neither session= nor user=: leave them out")
        nobody = run is session is user is None
        scope, key = ("process", None) if nobody else [*_keys(run, session, user).items()][-1]
        with self._lock:
            return (self._accounts[scope].get(key) or Account()).total

    def by_user(self) -> dict[str | None, Usage]:
        """Return what each user has used; None is for runs of nobody in particular."""
        return self._totals("user")

    def by_purpose(self) -> dict[str, Usage]:
        """Return what the memories of all runs have used, by purpose, such as ``"summary"``."""
        return self._totals("purpose")

    def _totals(self, scope: str) -> dict[Any, Usage]:
        with self._lock:
            return {key: account.total for key, account in self._accounts[scope]}

    def used_up(
        self, *, run: str | None = None, session: str | None = None, user: str | None = None
    ) -> UsageBudget | None:
        """Return a budget of which nothing is left for such a run; None if it may call models.

        Args:
            run: ID of the run.
            session: Its session.
            user: Its user.
        """
        with self._lock:
            now = self._clock().timestamp()
            keys = _keys(run, session, user).items()
            found = (self._accounts[scope].used_up(key, now) for scope, key in keys)
            return next(filter(None, found), None)

    def payer(self, request: HookRequest) -> Payer:
        """Return who pays for the model calls of a run.

        Args:
            request: Where the run stands, and its memory.

        Raises:
            BrainDefinitionError: ``who`` returned something else than a text or None.
        """
        user: object = self._who(request)
        if user is not None and not isinstance(user, str):
            raise BrainDefinitionError(
                f"UsageLedger(who=…) returned {user!r}: return the user as a text, or None"
            )
        return Payer(self, request.run_id, self._session(request.memory), user)

    def _session(self, memory: Memory | None) -> str:
        """Return the session of a run; a memory without one is a session of its own."""
        if memory is None or memory.session is not None:
            return "" if memory is None else memory.session or ""
        name = self._unnamed.get(id(memory))
        if name is None:
            name = self._unnamed[id(memory)] = new_id("memory")
            finalize(memory, self._unnamed.pop, id(memory)).atexit = False
        return name

    def charge(self, payer: Payer, usage: Usage, purpose: str | None = None) -> None:
        """Count what a model call used.

        Args:
            payer: Who pays.
            usage: What it used.
            purpose: What a memory made it for; None for a call of a state.
        """
        with self._lock:
            now = self._clock().timestamp()
            keys = _keys(payer.run, payer.session, payer.user, purpose)
            for scope, key in keys.items():
                self._accounts[scope].spend(key, usage, now)
            warns = self._warns and usage.cost is None and usage.requests > 0
            self._warns = self._warns and not warns
        if warns:
            logger.warning(
                "UsageBudget(cost=…) cannot count a call of %s, whose price is unknown: add a "
                "budget of tokens or requests, or give LiteLLM input_cost_per_token and "
                "output_cost_per_token",
                repr(usage.model) if usage.model else "a model",
            )

    def to_dict(self) -> dict[str, Any]:
        """Return all that was counted, as JSON values for :meth:`load`."""
        with self._lock:
            saved: dict[str, Any] = {scope: [*each] for scope, each in self._accounts.items()}
            return SavedLedger(**saved).model_dump(mode="json")

    def load(self, data: dict[str, Any]) -> None:
        """Replace all that was counted.

        Args:
            data: What :meth:`to_dict` returned.

        Raises:
            BrainUseError: It is something else; nothing was changed.
        """
        try:
            saved = SavedLedger.model_validate(data)
        except ValidationError as error:
            problems = "\n- ".join(error_lines(error))
            raise BrainUseError(
                f"load() takes what UsageLedger.to_dict() returned:\n- {problems}"
            ) from None
        with self._lock:
            now = self._clock().timestamp()
            for scope, accounts in self._accounts.items():
                accounts.replace(getattr(saved, scope), now)


def _keys(
    run: str | None, session: str | None, user: str | None, purpose: str | None = None
) -> dict[str, Hashable]:
    """Return the keys of the accounts that a run has, by what they are of."""
    keys: dict[str, Hashable] = {"process": None, "user": user}
    if session is not None:
        keys["session"] = user, session
    if run is not None:
        keys["run"] = run
    if purpose is not None:
        keys["purpose"] = purpose
    return keys
