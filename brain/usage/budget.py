"""The usage of a run and its limits, shared by all its branches."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, field

import anyio

from agent_brain.common.secrets import get_logger
from agent_brain.errors import LimitCheckError
from agent_brain.limits import SPENDING, Limits, StopReason
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.states.events import Position
from agent_brain.states.hooks import Hook, HookRequest
from agent_brain.states.usage import Usage
from agent_brain.usage.ledger import Payer, UsageLedger

logger = get_logger(__name__)


@dataclass(slots=True, eq=False, repr=False)
class _Limited:
    """What limits hold for: a run, or the call of a brain inside it.

    Attributes:
        limits: The limits.
        control: The registers that count for them.
        calls: The tool calls that run, by the ID of the registers of their net.
        stopped: The limit that was reached.
    """

    limits: Limits
    control: Control
    calls: dict[int, int] = field(default_factory=dict)
    stopped: StopReason | None = None

    def reached(self, calls: int, control: Control | None) -> StopReason | None:
        """Return the limit that is reached, if any.

        Args:
            calls: How many tool calls are to begin.
            control: The registers of their net.
        """
        others = sum(self.calls.values()) - self.calls.get(id(control), 0)
        found = self.limits.reached(self.control, calls + others if calls else 0)
        self.stopped = found or self.stopped
        return found


class Budget:
    """Counts usage in the registers of the run's own memory, for branches too.

    Attributes:
        control: The registers of the run's own memory; set when the run starts.
        free_steps: Steps before which no limit can be reached.
        limits: The limits of the run.
        only_steps: Whether nothing but steps is limited.
        payers: The accounts of ledgers that pay for it.
        started: When the run began.

    Args:
        limits: The limits of the run.
    """

    control: Control
    _at: Position
    _memory: Memory

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.started = 0.0
        others = limits.timeout, limits.max_tokens, limits.max_cost
        self.only_steps = others == (None, None, None) and (
            limits.max_tool_calls is limits.max_requests is None
        )
        most = math.inf if limits.max_steps is None else limits.max_steps
        self.free_steps = most if self.only_steps else 0
        self.payers: tuple[Payer, ...] = ()
        self._warned: tuple[str, ...] = ()
        self._inside: tuple[tuple[Control, str, Control], ...] = ()
        self._limited: tuple[_Limited, ...] = ()  # the run, then each brain inside

    def start(self, at: Position, memory: Memory, hooks: Iterable[Hook] = ()) -> None:
        """Continue from what the registers of the run have spent; time counts from ``started``.

        Args:
            at: Where the run begins, for the ledgers that count it.
            memory: The run's own memory.
            hooks: The hooks of the run, which may be ledgers.
        """
        self.control = control = memory.control
        if not self.only_steps:
            self._limited = (_Limited(self.limits, control),)
        self._at, self._memory, self.payers = at, memory, ()
        if hooks:
            self.add_payers(hooks, at, memory)
        self.started = (self.started or anyio.current_time()) - control.spent.seconds

    def add_payers(self, hooks: Iterable[Hook], at: Position, memory: Memory) -> None:
        """Have the ledgers among ``hooks`` count as well.

        Args:
            hooks: The hooks of the run, or of a net inside.
            at: Where the run begins.
            memory: Its memory.
        """
        known = [payer.ledger for payer in self.payers]
        found = [h for h in hooks if isinstance(h, UsageLedger) and h not in known]
        if found:
            run = HookRequest(at=at, memory=memory)
            self.payers += tuple(ledger.payer(run) for ledger in dict.fromkeys(found))

    def counted_by(self, hooks: Iterable[Hook]) -> Budget:
        """Return this budget for a net inside, whose hooks may be ledgers."""
        counted = copy(self)
        counted.add_payers(hooks, self._at, self._memory)
        return counted

    def inside(
        self, outer: Control, name: str, inner: Control, limits: Limits | None = None
    ) -> Budget:
        """Return this budget for a branch on a memory of its own, which counts there too.

        Args:
            outer: The registers that it is a branch of.
            name: The name of the branch.
            inner: Its registers.
            limits: Limits of the branch itself.
        """
        counted = copy(self)
        counted._inside += ((outer, name, inner),)
        if limits is not None:
            around = self._limited or (_Limited(self.limits, self.control),)
            counted._limited = (*around, _Limited(limits, inner))
            counted.only_steps, counted.free_steps = False, 0
        return counted

    def stopped_by_own(self) -> bool:
        """Return whether a limit of this branch was reached, and none around it."""
        *around, own = self._limited
        return own.stopped is not None and all(limited.stopped is None for limited in around)

    def stop_own(self, reason: StopReason) -> None:
        """Record that a limit of this branch was reached."""
        self._limited[-1].stopped = reason

    @property
    def is_used_up(self) -> bool:
        """Whether a ledger does not let another model call begin."""
        return not all(payer.may_spend() for payer in self.payers)

    def refusal(self) -> StopReason | None:
        """Return why another model call may not begin; None if it may."""
        if self.payers and self.is_used_up:
            return StopReason.BUDGET
        if self.only_steps:
            return None
        found = self.reached()
        return found if found in SPENDING else None

    def reserve_calls(self, control: Control) -> StopReason | None:
        """Count the calls in ``control.next_actions`` as running until they are counted.

        Returns:
            The limit that is in the way; they may not begin then.
        """
        if (found := self.reached(control)) is StopReason.MAX_TOOL_CALLS:
            return found
        for limited in self._limited:
            if limited.limits.max_tool_calls is not None:
                limited.calls[id(control)] = _uncounted(control)
        return None

    def release_calls(self, control: Control) -> None:
        """Forget the calls of :meth:`reserve_calls` that did not come to their ends."""
        for limited in self._limited:
            limited.calls.pop(id(control), None)

    def spend(self, usage: Usage, purpose: str | None = None) -> None:
        """Add what a model call used.

        Args:
            usage: What it used.
            purpose: What the memory made it for; None for a call of a state.

        Raises:
            LimitCheckError: A strict limit cannot count the call.
        """
        self.control.spent.add(usage, purpose)
        for outer, name, inner in self._inside:
            inner.spent.add(usage, purpose)
            outer.inside(name).add(usage, purpose)
        if self.payers:
            self.charge(usage, purpose)
        for limited in () if self.only_steps or usage.cost is not None else self._limited:
            for limit, problem in limited.limits.not_counted(usage).items():
                if limited.limits.strict:
                    raise LimitCheckError(problem)
                if limit not in self._warned:
                    self._warned += (limit,)
                    logger.warning(problem)

    def charge(self, usage: Usage, purpose: str | None = None) -> None:
        """Have the ledgers alone count what a model call used."""
        for payer in self.payers:
            payer.spend(usage, purpose)

    def count_tool_call(self, control: Control) -> None:
        """Count a tool call of the net with the registers ``control`` that was answered."""
        self.control.spent.tool_calls += 1
        for outer, name, inner in self._inside:
            inner.spent.tool_calls += 1
            outer.inside(name).tool_calls += 1
        for limited in () if self.only_steps else self._limited:
            if running := limited.calls.get(id(control)):
                limited.calls[id(control)] = running - 1

    def count_step(self) -> None:
        """Count a step of a net inside the run's own."""
        self.control.step += 1
        for outer, name, inner in self._inside:
            inner.step += 1
            outer.inside(name).step += 1

    def seconds(self) -> float:
        """Return the wall-clock seconds of the run, including those before a resume."""
        return anyio.current_time() - self.started if self.started else 0.0

    def reached(self, control: Control | None = None) -> StopReason | None:
        """Return the limit that is reached, if any: of the run, or of a brain inside.

        Args:
            control: The registers with the tool calls that are requested next.
        """
        if self.only_steps:
            most = self.limits.max_steps
            over = most is not None and self.control.step >= most
            return StopReason.MAX_STEPS if over else None
        timeout = self.limits.timeout
        if timeout is not None and self.seconds() >= timeout:
            return StopReason.TIMEOUT
        calls = 0 if control is None else _uncounted(control)
        for limited in self._limited:
            if (found := limited.reached(calls, control)) is not None:
                return found
        return None


def _uncounted(control: Control) -> int:
    """Return how many of the requested calls are not yet counted in ``spent``."""
    pending = control.pending
    known = (pending.get(action.id) for action in control.next_actions)
    return sum(not (call and call.reported and call.result is not None) for call in known)
