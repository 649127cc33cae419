"""Spans and metrics in RAM, as trees and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agent_brain.telemetry import OpenTelemetry

Tree = dict[str, Any]


class Recording:
    """Providers that keep what they are given.

    Attributes:
        tracer_provider: Makes spans.
    """

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        self.tracer_provider = TracerProvider()
        self.tracer_provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self._meter_provider = MeterProvider([self._reader])

    def hook(self, **options: Any) -> OpenTelemetry:
        """A hook that records here."""
        return OpenTelemetry(
            tracer_provider=self.tracer_provider, meter_provider=self._meter_provider, **options
        )

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        """The spans that have ended, in this order."""
        return self._exporter.get_finished_spans()

    def named(self, name: str) -> list[ReadableSpan]:
        """The spans with this name."""
        return [span for span in self.spans if span.name == name]

    def attributes(self, name: str, at: int = 0) -> Mapping[str, Any]:
        """The attributes of a span."""
        return self.named(name)[at].attributes or {}

    def tree(self) -> list[Any]:
        """The names of all spans: a name, or (name, children in the order of their beginning)."""
        children: dict[int | None, list[ReadableSpan]] = {}
        for span in sorted(self.spans, key=lambda span: span.start_time or 0):
            children.setdefault(span.parent.span_id if span.parent else None, []).append(span)

        def branch(span: ReadableSpan) -> Any:
            assert span.context is not None
            below = [branch(child) for child in children.get(span.context.span_id, ())]
            return (span.name, below) if below else span.name

        return [branch(span) for span in children.get(None, ())]

    def points(self, name: str) -> list[Any]:
        """The data points of a metric."""
        data = self._reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]
