"""What a part of a run came to, as JSON."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue, TypeAdapter

from agent_brain.common.secrets import scrub
from agent_brain.common.text import clean, to_json_data
from agent_brain.limits import WAITING, StopReason
from agent_brain.nets.net import Net
from agent_brain.result import Result, empty_result
from agent_brain.states.usage import Usage


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a part of a run came to.

    Attributes:
        kind: ``"ended"`` with a result, ``"failed"`` with an error, or ``"passed_on"``: the next
            part continues.
        result: The result of the run, as JSON.
        error: The class and the text of the error.
        output_class: The name of the class of the result's output.
    """

    kind: Literal["ended", "failed", "passed_on"]
    result: dict[str, Any] | None = None
    error: dict[str, str] | None = None
    output_class: str | None = None

    @classmethod
    def of(cls, result: Result[Any]) -> Outcome:
        """Return the outcome of a run that has ended."""
        name = None if result.output is None else type(result.output).__name__
        return cls("ended", result=to_json_data(result), output_class=name)

    @classmethod
    def failed(cls, error: BaseException) -> Outcome:
        """Return the outcome of a run that raised ``error``."""
        text = clean(scrub(str(error)))
        return cls("failed", error={"type": type(error).__name__, "message": text})

    @property
    def waits(self) -> bool:
        """Whether the run waits for a person."""
        return self.result is not None and self.result["stop_reason"] in WAITING

    @property
    def cancelled(self) -> bool:
        """Whether the run was cancelled."""
        return self.result is not None and self.result["stop_reason"] == StopReason.CANCELLED

    @property
    def wake_at(self) -> datetime | None:
        """When the run is to be continued, if it sleeps, or a branch of it does."""
        if self.result is None or self.result["stop_reason"] not in (StopReason.SLEEPING, *WAITING):
            return None
        wake_at = self.result.get("wake_at")
        return None if wake_at is None else datetime.fromisoformat(wake_at)

    def to_result(self, net: Net | None = None) -> Result[Any]:
        """Return the result.

        Args:
            net: The net of the run, which makes its output of the JSON; None returns the JSON.
        """
        result = _RESULT.validate_python(self.result)
        if net is None:
            return result
        return replace(result, output=net.restore_output(result.output, self.output_class))

    def to_json(self) -> dict[str, JsonValue]:
        """Return it as JSON values."""
        found: dict[str, JsonValue] = _ADAPTER.dump_python(self, mode="json")
        return found

    @classmethod
    def from_json(cls, data: object) -> Outcome:
        """Read what :meth:`to_json` returned."""
        return _ADAPTER.validate_python(data)


def unbegun(key: str, reason: StopReason) -> Result[Any]:
    """Return the result of a run that was ended before it began."""
    return empty_result(key, reason, Usage(cost=0.0, requests=0))


_RESULT = TypeAdapter(Result[Any])
_ADAPTER = TypeAdapter(Outcome)
