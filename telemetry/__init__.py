"""Observe runs: spans and metrics for OpenTelemetry, and records for ``logging``.

Nothing is observed and nothing is sent unless a program asks for it::

    from agent_brain import Brain
    from agent_brain.telemetry import LogRuns, OpenTelemetry

    Brain("react", hooks=[OpenTelemetry(), LogRuns()])

:class:`OpenTelemetry` needs the extra ``otel``.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import extra, lazy_exports
from agent_brain.errors import BrainDefinitionError

if TYPE_CHECKING or not lazy_exports(globals(), partial(extra, "otel", BrainDefinitionError)):
    from agent_brain.telemetry.hook import OpenTelemetry as OpenTelemetry
    from agent_brain.telemetry.logs import LogRuns as LogRuns
    from agent_brain.telemetry.logs import RunFilter as RunFilter
