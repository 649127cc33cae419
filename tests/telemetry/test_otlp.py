"""A run over real sockets, read back from memory and from a real OTLP collector."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai
from opentelemetry.semconv._incubating.metrics import gen_ai_metrics
from opentelemetry.semconv.attributes import error_attributes, server_attributes

from agent_brain import Brain, MessagesMemory, react, tool
from agent_brain.errors import Refused
from agent_brain.nets import SubnetState
from agent_brain.states import Hook, ToolRequest
from agent_brain.states.models.litellm.adapter import LiteLLM
from agent_brain.telemetry import OpenTelemetry
from tests.support.openai_server import Failure, OpenAIServer, Reply, Response, tool_calls
from tests.telemetry.collector import Collector, values

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]

CONVENTIONS = {
    value
    for module in (gen_ai, error_attributes, server_attributes)
    for name, value in vars(module).items()
    if name.isupper() and isinstance(value, str)
}
METRICS = {
    value
    for name, value in vars(gen_ai_metrics).items()
    if name.isupper() and isinstance(value, str)
} | {"gen_ai.invoke_agent.duration", "gen_ai.execute_tool.duration"}  # younger than the package


class Outer(Enum):
    INNER = "inner"


class Guard(Hook):
    def before_tool_call(self, request: ToolRequest) -> None:
        raise Refused("No")


@tool
async def look(at: str) -> str:
    """Look."""
    return f"I see {at}"


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as running:
        yield running


class Exported:
    """Providers that export to a collector."""

    def __init__(self, url: str) -> None:
        self.tracers = TracerProvider()
        exporter = OTLPSpanExporter(endpoint=f"{url}/v1/traces")
        self.tracers.add_span_processor(BatchSpanProcessor(exporter))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(endpoint=f"{url}/v1/metrics"))
        self.meters = MeterProvider([reader])

    def shutdown(self) -> None:
        self.tracers.shutdown()
        self.meters.shutdown()


def model_of(server: OpenAIServer, **options: Any) -> LiteLLM:
    return LiteLLM(
        "openai/gpt-4.1",
        api_base=server.url,
        api_key="k",
        backoff=0.001,
        temperature=0.5,
        **options,
    )


async def run_it(hook: OpenTelemetry) -> OpenAIServer:
    """Run a subnet: a retry, a tool call that is refused, then a fallback that answers."""
    script: list[Response] = [
        Failure(429, headers={"Retry-After": "0"}),
        Reply(*tool_calls(("call_1", "look", '{"at": "the sea"}'))),
        Failure(500),
        Failure(500),
        Reply("It is ", "blue."),
    ]
    with OpenAIServer(script) as server:
        llm = model_of(server, retries=1, fallbacks=["openai/gpt-4.1-mini"])
        memory = MessagesMemory([look], session="alice/42", tenant="acme")
        net = {Outer.INNER: SubnetState(react(llm))}
        result = await Brain(net, memory, hooks=[hook, Guard()]).run("Look")
        assert result.answer == "It is blue."
        await llm.aclose()
    return server


async def test_a_collector_receives_the_whole_run_by_the_conventions(collector: Collector) -> None:
    exported = Exported(collector.url)
    hook = OpenTelemetry(tracer_provider=exported.tracers, meter_provider=exported.meters)
    server = await run_it(hook)
    exported.shutdown()

    (run,) = named(collector, "invoke_agent Outer")
    assert tree(collector.spans, run) == (
        "invoke_agent Outer",
        [
            (
                "state INNER",
                [
                    (
                        "state REASONING",
                        [("chat gpt-4.1", ["attempt gpt-4.1", "attempt gpt-4.1"])],
                    ),
                    ("state ACTION", ["execute_tool look"]),
                    (
                        "state REASONING",
                        [
                            (
                                "chat gpt-4.1",
                                ["attempt gpt-4.1", "attempt gpt-4.1", "attempt gpt-4.1-mini"],
                            )
                        ],
                    ),
                    "state ANSWER",
                ],
            )
        ],
    )
    retried, fallen_back = (values(span.attributes) for span in named(collector, "chat gpt-4.1"))
    port = int(server.url.split(":")[2].split("/")[0])
    run_id = values(run.attributes)["agent_brain.run.id"]
    first_chunk = retried.pop("gen_ai.response.time_to_first_chunk")
    assert 0 < first_chunk < 10
    cost = retried.pop("agent_brain.usage.cost")
    assert cost > 0
    assert retried == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-4.1",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.response.model": "gpt-4.1",
        "gen_ai.response.finish_reasons": ["tool_calls"],
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.conversation.id": "alice/42",
        "server.address": "127.0.0.1",
        "server.port": port,
        "agent_brain.run.id": run_id,
        "agent_brain.tenant": "acme",
        "agent_brain.state": "REASONING",
        "agent_brain.path": ["INNER"],
        "agent_brain.step": 0,
    }
    assert fallen_back["gen_ai.request.model"] == "gpt-4.1"
    assert fallen_back["gen_ai.response.model"] == "gpt-4.1-mini"
    assert "error.type" not in fallen_back

    attempts = [span for span in collector.spans if span.name.startswith("attempt")]
    attempts.sort(key=lambda span: span.start_time_unix_nano)
    found = [values(span.attributes) for span in attempts]
    assert [item["agent_brain.attempt"] for item in found] == [1, 2, 1, 2, 1]
    assert [item.get("error.type") for item in found] == [
        "LLMRateLimitError",
        None,
        "LLMServerError",
        "LLMServerError",
        None,
    ]
    assert all("gen_ai.operation.name" not in item for item in found)  # one operation in all

    (refused,) = named(collector, "execute_tool look")
    assert refused.status.code == Status.STATUS_CODE_ERROR
    assert values(refused.attributes)["error.type"] == "Refused"
    assert values(refused.attributes)["gen_ai.tool.call.id"] == "call_1"
    assert run.status.code == Status.STATUS_CODE_UNSET
    kinds = {span.name.split()[0]: span.kind for span in collector.spans}
    assert kinds == {
        "invoke_agent": Span.SPAN_KIND_INTERNAL,
        "state": Span.SPAN_KIND_INTERNAL,
        "chat": Span.SPAN_KIND_CLIENT,
        "attempt": Span.SPAN_KIND_INTERNAL,
        "execute_tool": Span.SPAN_KIND_INTERNAL,
    }


async def test_all_names_are_those_of_the_conventions(collector: Collector) -> None:
    exported = Exported(collector.url)
    options: dict[str, Any] = {"content": True}
    hook = OpenTelemetry(
        tracer_provider=exported.tracers, meter_provider=exported.meters, **options
    )
    await run_it(hook)
    exported.shutdown()
    used = {pair.key for span in collector.spans for pair in span.attributes}
    ours = {name for name in used if name.startswith("agent_brain.")}
    assert used - ours <= CONVENTIONS
    assert len(used - ours) > 15
    assert set(collector.metrics) <= METRICS
    assert len(collector.metrics) == 5
    for metric in collector.metrics.values():
        for point in metric.histogram.data_points:
            assert set(values(point.attributes)) <= CONVENTIONS


async def test_the_metrics_of_a_run_arrive(collector: Collector) -> None:
    exported = Exported(collector.url)
    hook = OpenTelemetry(tracer_provider=exported.tracers, meter_provider=exported.meters)
    await run_it(hook)
    exported.shutdown()
    tokens = {
        (found["gen_ai.response.model"], found["gen_ai.token.type"]): point.sum
        for point in collector.metrics["gen_ai.client.token.usage"].histogram.data_points
        if (found := values(point.attributes))
    }
    assert tokens == {
        ("gpt-4.1", "input"): 11,
        ("gpt-4.1", "output"): 7,
        ("gpt-4.1-mini", "input"): 11,
        ("gpt-4.1-mini", "output"): 7,
    }
    durations = collector.metrics["gen_ai.client.operation.duration"]
    assert durations.unit == "s"
    assert sum(point.count for point in durations.histogram.data_points) == 2
    (point,) = collector.metrics["gen_ai.execute_tool.duration"].histogram.data_points
    assert values(point.attributes) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "look",
        "error.type": "Refused",
    }


async def test_a_model_call_that_fails_after_all_has_its_error(collector: Collector) -> None:
    exported = Exported(collector.url)
    hook = OpenTelemetry(tracer_provider=exported.tracers, meter_provider=exported.meters)
    with OpenAIServer([Failure(500), Failure(500)]) as server:
        llm = model_of(server, retries=1)
        with pytest.raises(Exception, match="told to fail"):
            await Brain(react(llm), hooks=[hook]).run("Look")
        await llm.aclose()
    exported.shutdown()
    (call,) = named(collector, "chat gpt-4.1")
    assert values(call.attributes)["error.type"] == "LLMServerError"
    assert call.status.message == "LLMServerError"
    (point,) = collector.metrics["gen_ai.client.operation.duration"].histogram.data_points
    assert values(point.attributes)["error.type"] == "LLMServerError"
    assert "gen_ai.client.token.usage" not in collector.metrics


def named(collector: Collector, name: str) -> list[Span]:
    found = [span for span in collector.spans if span.name == name]
    return sorted(found, key=lambda span: span.start_time_unix_nano)


def tree(spans: list[Span], root: Span) -> Any:
    below = [span for span in spans if span.parent_span_id == root.span_id]
    below.sort(key=lambda span: span.start_time_unix_nano)
    return (root.name, [tree(spans, span) for span in below]) if below else root.name
