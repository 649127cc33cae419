"""What AG-UI counts in a run: its subagents, the IDs in use, and how it ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ag_ui import core

from agent_brain.common.text import clean, to_json_data
from agent_brain.serving.web.chat.threads import Path
from agent_brain.serving.web.requests import as_http_error
from agent_brain.states.events import RunFinished, UsageReported
from agent_brain.states.usage import Usage

CANCELLED = ("cancelled", "stopped", "paused", "sleeping")


class Ending:
    """Collects what the last event of a run says.

    Attributes:
        models: The names of the models by the IDs of their responses.
        interrupts: What waits for a person.
        pending: IDs of calls that the client is to run.
    """

    def __init__(self, thread_id: str, run_id: str) -> None:
        self.models: dict[str | None, str] = {}
        self.interrupts: list[core.Interrupt] = []
        self.pending: list[str] = []
        self._thread_id = thread_id
        self._run_id = run_id
        self._usage: dict[str, Usage] = {}

    def count(self, event: UsageReported) -> None:
        """Note what a model call used."""
        model = self.models.get(event.response_id) or event.usage.model or ""
        known = self._usage.get(model)
        self._usage[model] = event.usage if known is None else known + event.usage

    def interrupts_of(self, subagent: str) -> list[str]:
        """Return the IDs of what a subagent waits for."""
        return [each.id for each in self.interrupts if each.subagent_run_id == subagent]

    def finished(self, event: RunFinished) -> core.RunFinishedEvent:
        """Return the last event of a run that has not failed."""
        outcome: Any = core.RunFinishedSuccessOutcome(pending_tool_call_ids=self.pending or None)
        if event.stop_reason in CANCELLED:
            outcome = core.RunFinishedCancelledOutcome()
        elif self.interrupts:
            outcome = core.RunFinishedInterruptOutcome(interrupts=self.interrupts)
        succeeded = isinstance(outcome, core.RunFinishedSuccessOutcome)
        return core.RunFinishedEvent(
            thread_id=self._thread_id,
            run_id=self._run_id,
            outcome=outcome,
            result=_result(event) if succeeded else None,
            usage=self._tokens(),
        )

    def failed(self, error: Exception) -> core.RunErrorEvent:
        """Return the last event of a run that has failed."""
        return run_error(error, usage=self._tokens())

    def _tokens(self) -> list[core.TokenUsage] | None:
        return [
            core.TokenUsage(
                model=model or None,
                input_tokens=usage.input_tokens,
                output_tokens=usage.output_tokens,
                total_tokens=usage.total_tokens,
                reasoning_tokens=usage.reasoning_tokens,
                cached_input_tokens=usage.cached_tokens,
            )
            for model, usage in self._usage.items()
        ] or None


def _result(event: RunFinished) -> dict[str, Any]:
    result: dict[str, Any] = {"answer": clean(event.answer), "stopReason": event.stop_reason}
    if event.finish_reason is not None:
        result["finishReason"] = event.finish_reason
    if event.output is not None:
        result["output"] = to_json_data(event.output)
    return result


def run_error(
    error: Exception, *, usage: list[core.TokenUsage] | None = None
) -> core.RunErrorEvent:
    """Return the event for an error, with the type that the HTTP API gives it as the code."""
    http = as_http_error(error)
    return core.RunErrorEvent(message=clean(http.message), code=http.type, usage=usage)


class Subagents:
    """The subnets and branches that have begun and not ended, by their paths.

    Args:
        run_id: The run, as the client names it; part of the IDs.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._open: dict[Path, str] = {}
        self._count = 0

    def id_of(self, path: Path) -> str | None:
        """Return the ID of the subagent at ``path``; None for the agent itself."""
        return self._open.get(path)

    def enter(self, path: Path) -> list[core.BaseEvent]:
        """Return the event that announces the subagent at ``path``, if it is new."""
        if not path or path in self._open:
            return []
        around = (path[:length] for length in range(len(path) - 1, 0, -1))
        parent = next((self._open[outer] for outer in around if outer in self._open), None)
        self._count += 1
        self._open[path] = subagent = clean(f"{self._run_id}/{'/'.join(path)}#{self._count}")
        return [
            core.SubagentStartedEvent(
                subagent_run_id=subagent, name=clean(path[-1]), parent_subagent_run_id=parent
            )
        ]

    def inside(self, path: Path) -> list[Path]:
        """Return the paths of the open subagents at ``path`` and inside it, innermost first."""
        found = [open_path for open_path in self._open if open_path[: len(path)] == path]
        return sorted(found, key=len, reverse=True)

    def finish(
        self, path: Path, *, error: str | None = None, interrupts: Iterable[str] | None = None
    ) -> core.BaseEvent:
        """Return the event that ends the subagent at ``path``.

        Args:
            path: Its path.
            error: Why it failed, if it did.
            interrupts: If the run waits for a person: the IDs of what this subagent asks for.
        """
        subagent = self._open.pop(path)
        if error is not None:
            return core.SubagentErrorEvent(subagent_run_id=subagent, message=error)
        if interrupts is None:
            return core.SubagentFinishedEvent(subagent_run_id=subagent)
        outcome = core.SubagentFinishedSuspendedOutcome(interrupt_ids=[*interrupts])
        return core.SubagentFinishedEvent(subagent_run_id=subagent, outcome=outcome)


class OwnedIds:
    """Gives messages and calls IDs: AG-UI wants that none is used by two subagents.

    Two of them may come with one ID: a model that numbers its calls, asked by several branches.
    """

    def __init__(self) -> None:
        self._owners: dict[str, str | None] = {}

    def get(self, wanted: str, subagent: str | None) -> str:
        """Return ``wanted``, with a number if another subagent uses it."""
        found, number = wanted, 1
        while self._owners.setdefault(found, subagent) != subagent:
            number += 1
            found = f"{wanted}#{number}"
        return found
