"""How a run ends, for AG-UI: its outcome, what it waits for, and its usage. Private."""

from __future__ import annotations

from typing import Any

from ag_ui.core import (
    Interrupt,
    RunErrorEvent,
    RunFinishedCancelledOutcome,
    RunFinishedEvent,
    RunFinishedInterruptOutcome,
    RunFinishedSuccessOutcome,
    TokenUsage,
)

from agent_brain.serving.web.ag_ui.waits import approval_interrupt, question_interrupt
from agent_brain.serving.web.errors import as_http_error
from agent_brain.states.events import InputRequested, RunFinished, UsageReported
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.text import clean, to_json_data

CANCELLED = ("cancelled", "stopped", "paused", "sleeping")


class Ending:
    """Collects what the last event of a run tells.

    Attributes:
        models: The names of the models by the IDs of their responses.
    """

    def __init__(self, thread_id: str, run_id: str, session: str) -> None:
        self.models: dict[str | None, str] = {}
        self._thread_id = thread_id
        self._run_id = run_id
        self._session = session
        self._interrupts: list[Interrupt] = []
        self._pending: list[str] = []
        self._usage: dict[str, Usage] = {}

    def count(self, event: UsageReported) -> None:
        """Note what a model call used."""
        model = self.models.get(event.response_id) or event.usage.model or ""
        known = self._usage.get(model)
        self._usage[model] = event.usage if known is None else known + event.usage

    def wait_for_approval(self, action: Action, call_id: str, subagent: str | None) -> None:
        """Note a call that waits for approval."""
        self._interrupts.append(approval_interrupt(self._session, action, call_id, subagent))

    def wait_for_answer(
        self, event: InputRequested, call_id: str | None, subagent: str | None
    ) -> None:
        """Note a question that waits for an answer, with the call that asks it, if one does."""
        self._interrupts.append(
            question_interrupt(self._session, event.id, event.prompt, call_id, subagent)
        )

    def wait_for_call(self, call_id: str) -> None:
        """Note a call that the client is to run."""
        self._pending.append(call_id)

    def interrupts_of(self, subagent: str) -> list[str]:
        """Return the IDs of what a subagent waits for."""
        return [each.id for each in self._interrupts if each.subagent_run_id == subagent]

    def finished(self, event: RunFinished) -> RunFinishedEvent:
        """Return the last event of a run that has not failed."""
        if event.stop_reason in CANCELLED:
            return self._finished(RunFinishedCancelledOutcome())
        if self._interrupts:
            return self._finished(RunFinishedInterruptOutcome(interrupts=self._interrupts))
        outcome = RunFinishedSuccessOutcome(pending_tool_call_ids=self._pending or None)
        result: dict[str, Any] = {"answer": clean(event.answer), "stopReason": event.stop_reason}
        if event.output is not None:
            result["output"] = to_json_data(event.output)
        return self._finished(outcome, result)

    def failed(self, error: Exception) -> RunErrorEvent:
        """Return the last event of a run that has failed."""
        return run_error(error, usage=self._tokens())

    def _finished(
        self,
        outcome: RunFinishedSuccessOutcome
        | RunFinishedInterruptOutcome
        | RunFinishedCancelledOutcome,
        result: Any = None,
    ) -> RunFinishedEvent:
        return RunFinishedEvent(
            thread_id=self._thread_id,
            run_id=self._run_id,
            outcome=outcome,
            result=result,
            usage=self._tokens(),
        )

    def _tokens(self) -> list[TokenUsage] | None:
        return [
            TokenUsage(
                model=model or None,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                total_tokens=usage.total_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                cached_input_tokens=usage.cached_tokens,
            )
            for model, usage in self._usage.items()
        ] or None


def run_error(error: Exception, *, usage: list[TokenUsage] | None = None) -> RunErrorEvent:
    """Return the event for an error, with the type that the HTTP API gives it as the code."""
    http = as_http_error(error)
    return RunErrorEvent(message=clean(http.message), code=http.type, usage=usage)
