"""What a run's end means to the shell and to the reader."""

from __future__ import annotations

from agent_brain.cli.exits import ExitCode, tell
from agent_brain.limits import Limits, StopReason
from agent_brain.result import Result


def conclude(result: Result, limits: Limits, how: str = "") -> ExitCode:
    """The exit code for a run that did not fail; says on stderr why it ended, if it must.

    Args:
        result: What came of the run.
        limits: Its limits.
        how: How it is answered, if it waits for a person.
    """
    reason = result.stop_reason
    if reason is StopReason.DONE:
        return ExitCode.ANSWERED
    tell(f"{_why(reason, limits)}{_what_is_left(result)}{how}", kind="Stopped")
    return ExitCode.CANCELLED if reason is StopReason.CANCELLED else ExitCode.STOPPED


def _why(reason: StopReason, limits: Limits) -> str:
    match reason:
        case StopReason.MAX_STEPS:
            return f"the limit of {limits.max_steps} steps was reached (--max-steps)"
        case StopReason.TIMEOUT:
            return f"the {limits.timeout:g} seconds it was given are over (--timeout)"
        case StopReason.MAX_COST:
            return f"the limit of ${limits.max_cost:g} was reached (--max-cost)"
        case StopReason.STUCK:
            return "the agent went in circles and a hint did not help"
        case StopReason.APPROVAL | StopReason.INPUT:
            return "the agent waits for a person"
        case _:
            return f"the run ended early ({reason.value})"


def _what_is_left(result: Result) -> str:
    if not result.answer:
        return "; there is no answer yet"
    return "; the answer is as far as it came"
