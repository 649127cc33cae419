"""The usage of a run and its limits, shared by all its branches."""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy

import anyio

from agent_brain.errors import BrainUseError
from agent_brain.limits import Limits, StopReason
from agent_brain.memories.control import Control
from agent_brain.memories.runs.counts import Spent
from agent_brain.states.hook_requests import HookRequest
from agent_brain.states.hooks import Hook
from agent_brain.states.usage import Usage
from agent_brain.tools.secrets import get_logger
from agent_brain.usage_ledger import Payer, UsageLedger

logger = get_logger(__name__)


class Budget:
    """Counts usage in the registers of the run's own memory, for branches too."""

    __slots__ = (
        "_inside",
        "_only_steps",
        "_payers",
        "_run",
        "_started",
        "_warned",
        "control",
        "limits",
    )

    control: Control  # of the run's own memory; set when the run starts

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._started = 0.0
        self._warned: tuple[str, ...] = ()
        self._payers: tuple[Payer, ...] = ()
        self._inside: tuple[tuple[Control, str, Control], ...] = ()
        self._only_steps = (
            limits.timeout is limits.max_tokens is limits.max_cost is limits.max_tool_calls is None
        )

    def start_clock(self) -> None:
        """Start to measure the time."""
        self._started = anyio.current_time()

    def start(self, control: Control, run: HookRequest) -> None:
        """Continue from what ``control`` has spent; time counts from :meth:`start_clock`.

        Args:
            control: The registers of the run's own memory.
            run: The run, for the ledgers that count it.
        """
        self.control = control
        self._run = run
        self._started = (self._started or anyio.current_time()) - control.spent.seconds

    def counted_by(self, hooks: Iterable[Hook]) -> Budget:
        """Return this budget, counted by the ledgers among ``hooks`` as well.

        Args:
            hooks: The hooks of the run, or of a net inside.
        """
        known = [payer.ledger for payer in self._payers]
        found = [h for h in hooks if isinstance(h, UsageLedger) and h not in known]
        if not found:
            return self
        counted = copy(self)
        counted._payers += tuple(ledger.payer(self._run) for ledger in dict.fromkeys(found))
        return counted

    def inside(self, outer: Control, name: str, inner: Control) -> Budget:
        """Return this budget for a branch on a memory of its own, which counts there too.

        Args:
            outer: The registers that it is a branch of.
            name: The name of the branch.
            inner: Its registers.
        """
        counted = copy(self)
        counted._inside += ((outer, name, inner),)
        return counted

    @property
    def is_used_up(self) -> bool:
        """Whether a ledger does not let another model call begin."""
        return bool(self._payers) and not all(payer.may_spend() for payer in self._payers)

    def spend(self, usage: Usage) -> None:
        """Add what a model call used.

        Raises:
            BrainUseError: A strict limit cannot count the call.
        """
        self.control.spent.add(usage)
        for outer, name, inner in self._inside:
            inner.spent.add(usage)
            outer.inside(name).add(usage)
        for payer in self._payers:
            payer.spend(usage)
        if not self._only_steps and usage.cost is None and self.limits.watches_use:
            self._check_counted(usage)

    def count_tool_call(self) -> None:
        """Count a tool call that was answered."""
        self.control.spent.add_tool_call()
        for outer, name, inner in self._inside:
            inner.spent.add_tool_call()
            outer.inside(name).add_tool_call()

    def count_step(self) -> None:
        """Count a step of a net inside the run's own."""
        self.control.step += 1
        for outer, name, inner in self._inside:
            inner.step += 1
            outer.inside(name).step += 1

    def _check_counted(self, usage: Usage) -> None:
        for limit, problem in self.limits.not_counted(usage).items():
            if self.limits.strict:
                raise BrainUseError(problem)
            if limit not in self._warned:
                self._warned += (limit,)
                logger.warning(problem)

    def usage(self) -> Usage:
        """Return what all model calls used together."""
        return usage_of(self.control.spent)

    def seconds(self) -> float:
        """Return the wall-clock seconds of the run, including those before a resume."""
        return anyio.current_time() - self._started if self._started else 0.0

    def reached(self, control: Control) -> StopReason | None:
        """Return the limit that is reached, if any.

        Args:
            control: The registers with the tool calls that are requested next.
        """
        if self._only_steps:
            most = self.limits.max_steps
            over = most is not None and self.control.step >= most
            return StopReason.MAX_STEPS if over else None
        timeout = self.limits.timeout
        if timeout is not None and self.seconds() >= timeout:
            return StopReason.TIMEOUT
        return self.limits.reached(self.control, len(control.next_actions))


def usage_of(spent: Spent) -> Usage:
    """Return what a run has spent as the usage of all its model calls."""
    return Usage(
        spent.input_tokens,
        spent.output_tokens,
        None if spent.unpriced else spent.cost,
        spent.requests,
        cached_tokens=spent.cached_tokens,
        reasoning_tokens=spent.reasoning_tokens,
        estimated=spent.estimated > 0,
    )
