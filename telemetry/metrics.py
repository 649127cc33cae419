"""The metrics of runs, by the GenAI conventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.metrics import Histogram, Meter

from agent_brain.states.usage import Usage
from agent_brain.telemetry.attributes import OPERATION

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_TOKENS = tuple(4**power for power in range(14))


class Metrics:
    """The histograms.

    Args:
        meter: Makes them.

    Attributes:
        operation: Seconds of model calls, retries and fallbacks included.
        first_chunk: Seconds until a model has said something.
        run: Seconds of runs.
        tool: Seconds of tool calls.
        tokens: Tokens of model calls.
    """

    def __init__(self, meter: Meter) -> None:
        self.operation = _seconds(meter, "gen_ai.client.operation.duration", "Model calls.")
        self.first_chunk = _seconds(
            meter,
            "gen_ai.client.operation.time_to_first_chunk",
            "From a model call to the first chunk of its response.",
        )
        self.run = _seconds(meter, "gen_ai.invoke_agent.duration", "Runs.")
        self.tool = _seconds(meter, "gen_ai.execute_tool.duration", "Tool calls.")
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Tokens that model calls have read and written.",
            explicit_bucket_boundaries_advisory=_TOKENS,
        )

    def count(self, usage: Usage | None, attributes: Mapping[str, Any]) -> None:
        """Record the tokens of a model call."""
        if usage is None or not usage.total_tokens:
            return
        for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            self.tokens.record(tokens, {OPERATION: "chat", **attributes, "gen_ai.token.type": kind})


def _seconds(meter: Meter, name: str, description: str) -> Histogram:
    return meter.create_histogram(
        name,
        unit="s",
        description=description,
        explicit_bucket_boundaries_advisory=_SECONDS,
    )
