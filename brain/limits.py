"""Limits on a run, and the reasons why runs stop."""

from __future__ import annotations

from dataclasses import dataclass, fields
from enum import StrEnum

from agent_brain.common.values import is_amount, is_count
from agent_brain.errors import BrainDefinitionError
from agent_brain.memories.control import Control
from agent_brain.states.usage import Usage


class StopReason(StrEnum):
    """Why a run has stopped.

    With ``APPROVAL``, ``INPUT``, ``SLEEPING`` and ``PAUSED`` it waits, and with ``STOPPED`` it was
    asked to stop after a step: it continues as it is. With the others it has ended;
    :meth:`Brain.resume` continues it unless its net has come to its end.
    """

    DONE = "done"
    MAX_STEPS = "max_steps"
    MAX_TOKENS = "max_tokens"
    MAX_COST = "max_cost"
    TIMEOUT = "timeout"
    STUCK = "stuck"
    CANCELLED = "cancelled"
    FAILED = "failed"
    APPROVAL = "approval"
    INPUT = "input"
    MAX_TOOL_CALLS = "max_tool_calls"
    MAX_REQUESTS = "max_requests"
    STOPPED = "stopped"
    BUDGET = "budget"
    PAUSED = "paused"
    SLEEPING = "sleeping"

    @property
    def clause(self) -> str:
        """What happened, as a clause for messages, such as "the run was cancelled"."""
        return _CLAUSES[self]


_CLAUSES = {
    StopReason.DONE: "the run had reached its goal",
    StopReason.MAX_STEPS: "the limit of steps was reached",
    StopReason.MAX_TOKENS: "the limit of tokens was reached",
    StopReason.MAX_COST: "the limit of cost was reached",
    StopReason.MAX_TOOL_CALLS: "the limit of tool calls was reached",
    StopReason.MAX_REQUESTS: "the limit of model calls was reached",
    StopReason.TIMEOUT: "the limit of time was reached",
    StopReason.STUCK: "the run repeated itself",
    StopReason.CANCELLED: "the run was cancelled",
    StopReason.FAILED: "the run failed",
    StopReason.APPROVAL: "the run waits for approval",
    StopReason.INPUT: "the run waits for an answer",
    StopReason.STOPPED: "the run was stopped",
    StopReason.BUDGET: "the budget was used up",
    StopReason.PAUSED: "the run was paused",
    StopReason.SLEEPING: "the run waits for a time",
}


WAITING = (StopReason.APPROVAL, StopReason.INPUT)  # for a person
SPENDING = (StopReason.MAX_TOKENS, StopReason.MAX_COST, StopReason.MAX_REQUESTS)
CUT_SHORT = (StopReason.CANCELLED, StopReason.FAILED, StopReason.TIMEOUT)  # at any moment
OWN = (StopReason.DONE, StopReason.STUCK)  # ends of one net, whatever the run around it does


def waits_on(control: Control) -> StopReason | None:
    """Return what a run waits for, a person before a time; None if it does not wait."""
    asked = control.human_requests
    if asked is not None and asked.waiting:
        return StopReason.APPROVAL if asked.approvals else StopReason.INPUT
    return None if control.wake_at is None else StopReason.SLEEPING


_COUNTS = ("max_steps", "max_tokens", "max_tool_calls", "max_requests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits on steps, tokens, cost, tool calls and time of a run.

    ::

        Brain("react", limits=Limits(max_steps=20, max_cost=0.5, timeout=60))

    A run that reaches a limit ends and keeps what was done. The limits hold for its inner nets,
    branches and brains used as tools, too. Once one is reached, no step, branch, item or model call
    begins; those that run are completed, apart from ``timeout``. A resumed run continues to count.

    Attributes:
        max_steps: Steps. A ReAct round of reasoning and acting is two.
        max_tokens: Tokens read and written by models.
        max_cost: US dollars, for the calls whose price is known.
        max_tool_calls: Tool calls. A round that would exceed it does not begin.
        max_requests: Model calls, without embeddings. Those that run at once when it is reached are
            completed.
        timeout: Seconds of wall clock from when the models of the net are loaded; running model
            calls and tools are then cancelled.
        strict: End the run with a :class:`~agent_brain.errors.LimitCheckError` after a model call
            that ``max_cost`` or ``max_tokens`` cannot count, as its price is unknown or its usage
            is not reported. By default this is logged as a warning, once in a run.

    Raises:
        BrainDefinitionError: A limit that is not a number above zero; a whole one but for
            ``max_cost`` and ``timeout``.
    """

    max_steps: int | None = 100
    max_tokens: int | None = None
    max_cost: float | None = None
    max_tool_calls: int | None = None
    max_requests: int | None = None
    timeout: float | None = None
    strict: bool = False

    def __post_init__(self) -> None:
        for field in fields(self):
            name, value = field.name, getattr(self, field.name)
            wanted = ""
            if name == "strict":
                wanted = "" if isinstance(value, bool) else "True or False"
            elif value is not None and not is_amount(value):
                wanted = "a limit is a number above 0, or None for no limit"
            elif value is not None and name in _COUNTS and not is_count(value):
                wanted = "it must be a whole number"
            if wanted:
                raise BrainDefinitionError(f"Limits({name}={value!r}): {wanted}")

    @property
    def watches_use(self) -> bool:
        """Whether a limit depends on what models report."""
        return self.max_cost is not None or self.max_tokens is not None

    def not_counted(self, usage: Usage) -> dict[str, str]:
        """Return the limits that cannot count a call with this usage, each with what to do."""
        model = repr(usage.model) if usage.model else "the model"
        found = {}
        if self.max_cost is not None and usage.cost is None:
            found["max_cost"] = (
                f"Limits(max_cost={self.max_cost!r}) cannot be checked: the price of {model} is "
                "unknown. Set max_tokens, or give LiteLLM input_cost_per_token and "
                "output_cost_per_token"
            )
        if self.max_tokens is not None and usage.cost is None and not usage.total_tokens:
            found["max_tokens"] = (
                f"Limits(max_tokens={self.max_tokens!r}) cannot be checked: {model} does not "
                "report its usage. Set max_steps, or have the model yield a Usage"
            )
        return found

    def reached(self, control: Control, calls: int = 0) -> StopReason | None:
        """Return the limit that ``control`` has reached, if any; the time is not checked.

        Args:
            control: The registers of the run.
            calls: How many tool calls are requested next.
        """
        spent = control.spent
        for reason, limit, used in (
            (StopReason.MAX_STEPS, self.max_steps, control.step),
            (StopReason.MAX_TOKENS, self.max_tokens, spent.input_tokens + spent.output_tokens),
            (StopReason.MAX_COST, self.max_cost, spent.cost),
            (StopReason.MAX_REQUESTS, self.max_requests, spent.requests - spent.embeddings),
        ):
            if limit is not None and used >= limit:
                return reason
        if self.max_tool_calls is not None and spent.tool_calls + calls > self.max_tool_calls:
            return StopReason.MAX_TOOL_CALLS
        return None
