"""Observe runs: spans and metrics for OpenTelemetry, and records for ``logging``.

Nothing is observed and nothing is sent unless a program asks for it::

    from agent_brain import Brain
    from agent_brain.telemetry import LogRuns, OpenTelemetry

    Brain("react", hooks=[OpenTelemetry(), LogRuns()])

:class:`OpenTelemetry` needs the extra ``otel``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.telemetry.logs import LogRuns, RunFilter

if TYPE_CHECKING:
    from agent_brain.telemetry.hook import OpenTelemetry as OpenTelemetry

__all__ = ["LogRuns", "OpenTelemetry", "RunFilter"]


def __getattr__(name: str) -> object:
    if name != "OpenTelemetry":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agent_brain.errors import BrainDefinitionError

    try:
        from agent_brain.telemetry import hook
    except ModuleNotFoundError as error:
        raise BrainDefinitionError(
            "the package opentelemetry-api is not installed: pip install 'agent-brain[otel]'"
        ) from error
    return hook.OpenTelemetry


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
