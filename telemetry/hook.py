"""Spans and metrics of runs for OpenTelemetry."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from importlib.metadata import version
from typing import Any, TypeVar

from opentelemetry import context as otel
from opentelemetry.metrics import MeterProvider, get_meter
from opentelemetry.trace import SpanKind, TracerProvider, get_tracer

from agent_brain.errors import BrainDefinitionError
from agent_brain.states.hooks import (
    EmbeddingRequest,
    Hook,
    ModelRequest,
    ModelResponse,
    RunRequest,
    StateRequest,
    ToolRequest,
    ToolResponse,
)
from agent_brain.states.usage import Usage
from agent_brain.telemetry import attributes as names
from agent_brain.telemetry import open_spans
from agent_brain.telemetry.open_spans import Current, OpenSpan, OpenStep

T = TypeVar("T")
_SCOPE = "agent_brain"


class OpenTelemetry(Hook):
    """A hook that makes spans and metrics of runs, by OpenTelemetry's GenAI conventions.

    ::

        Brain("react", hooks=[OpenTelemetry()])

    A run is an ``invoke_agent`` span, with a span for each state in it; in these, a ``chat`` span
    for each model call with its attempts, an ``embeddings`` span for each call of the memory's
    embedder, and an ``execute_tool`` span for each tool call. Any number of brains and runs may use
    it at once. Give it first, so that it sees what other hooks refuse.

    The parent of a run is the span that is current where the run begins. While a state, a model or
    a tool works, its span is the current one, so that spans of other libraries become its children.

    Args:
        tracer_provider: Makes the spans; None uses the global one of the program.
        meter_provider: Makes the metrics; None uses the global one.
        content: Record what users, models and tools say: messages, arguments, results, and the
            texts of errors. Given a function, such as ``HidePersonalData().hide``, what it returns
            of each text.
        name: ``gen_ai.agent.name`` of the runs. Default: the name of the net.

    Raises:
        BrainDefinitionError: An argument is of a wrong type.
    """

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        meter_provider: MeterProvider | None = None,
        content: bool | Callable[[str], str] = False,
        name: str | None = None,
    ) -> None:
        for option, given, kind in (
            ("tracer_provider", tracer_provider, TracerProvider),
            ("meter_provider", meter_provider, MeterProvider),
            ("name", name, str),
        ):
            if given is not None and not isinstance(given, kind):
                raise BrainDefinitionError(
                    f"OpenTelemetry({option}={given!r}): pass a {kind.__name__}, or nothing"
                )
        release = version("agent-brain")
        self._tracer = get_tracer(_SCOPE, release, tracer_provider)
        self._metrics = names.Metrics(get_meter(_SCOPE, release, meter_provider))
        self._content = content
        self._name = name
        self._providers = tracer_provider, meter_provider

    def __eq__(self, other: object) -> bool:
        """Return whether ``other`` reports to the same providers: a run then needs only one."""
        return isinstance(other, OpenTelemetry) and other._providers == self._providers

    def __hash__(self) -> int:
        return hash(self._providers)

    # Runs and states

    def before_run(self, request: RunRequest) -> None:
        """Begin the span of a run, as a child of the current one."""
        found = names.of_run(request)
        if self._name is not None:
            found[names.AGENT_NAME] = self._name
        found |= self._said(names.said_as_goal, request.goal)
        title = f"invoke_agent {found[names.AGENT_NAME]}"
        parent = otel.get_current()
        span = self._tracer.start_span(title, parent, SpanKind.INTERNAL, found)
        run = open_spans.add(OpenStep(span, parent, request.at, self))
        run.shared = {names.OPERATION: "invoke_agent", names.AGENT_NAME: found[names.AGENT_NAME]}

    def after_run(self, request: RunRequest, result: Any) -> None:
        """End the span of a run."""
        run = open_spans.remove(request.at, self)
        if run is None:
            return
        found = {
            "agent_brain.stop_reason": result.stop_reason.value,
            "agent_brain.steps": result.steps,
            **names.of_usage(result.usage),
        }
        if result.finish_reason is not None:
            found["gen_ai.response.finish_reasons"] = [result.finish_reason]
        found |= self._said(names.said_as_answer, result.answer)
        self._metrics.run.record(run.seconds, run.shared, run.context)
        run.end(found)

    def on_run_error(self, request: RunRequest, error: Exception) -> None:
        """End the span of a run that failed."""
        run = open_spans.remove(request.at, self)
        if run is not None:
            run.fail(error, content=self._content)
            self._metrics.run.record(run.seconds, run.shared, run.context)
            run.end({"agent_brain.stop_reason": "failed"})

    def before_state(self, request: StateRequest) -> None:
        """Begin the span of a step, as a child of the run, the outer step or the tool call."""
        outer = open_spans.find(request.outer, self, foreign=True)
        call = None if outer is None else outer.calls.get(request.call_id)
        parent = (call or outer).context if outer is not None else otel.get_current()
        found = {"agent_brain.state.kind": request.kind, **names.place(request)}
        span = self._tracer.start_span(f"state {request.state}", parent, SpanKind.INTERNAL, found)
        open_spans.add(OpenStep(span, parent, request.at, self))

    def after_state(self, request: StateRequest, next_state: str | None) -> None:
        """End the span of a step."""
        step = open_spans.remove(request.at, self)
        if step is not None:
            step.end({} if next_state is None else {"agent_brain.next_state": next_state})

    def on_state_error(self, request: StateRequest, error: BaseException) -> None:
        """End the span of a step that failed, was cancelled or left early."""
        step = open_spans.remove(request.at, self)
        if step is None:
            return
        if isinstance(error, Exception):
            step.fail(error, content=self._content)
            step.end()
        else:
            step.end({names.UNFINISHED: True})

    def around(
        self, request: StateRequest | ModelRequest | ToolRequest
    ) -> AbstractContextManager[None] | None:
        """Return what makes the span of the request the current one."""
        step = open_spans.find(request.at, self)
        if step is None or isinstance(request, StateRequest):
            return None if step is None else Current(step)
        call = step.calls.get(_key(request))
        return None if call is None else Current(call)

    # Calls

    def before_model_call(self, request: ModelRequest) -> None:
        """Begin the span of a model call."""
        shared = {names.OPERATION: "chat", **names.of_model(request)}
        found = {**shared, **names.of_request(request)}
        found |= self._said(names.said_to_model, request)
        self._begin(request, f"chat {shared[names.REQUEST_MODEL]}", SpanKind.CLIENT, found, shared)

    def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        """End the span of a model call."""
        call = self._take(request)
        if call is None:
            return
        call.shared[names.PROVIDER] = names.provider_name(request.llm)
        model = None if response.usage is None else response.usage.model
        if model in (None, request.llm.model):
            model = names.model_name(request.llm)
        call.shared.setdefault(names.RESPONSE_MODEL, model)  # as far as it is known
        found = {**call.shared, **names.of_usage(response.usage)}
        if response.finish_reason is not None:
            found["gen_ai.response.finish_reasons"] = [response.finish_reason]
        if call.first is not None:
            found["gen_ai.response.time_to_first_chunk"] = call.first
            self._metrics.first_chunk.record(call.first, call.shared, call.context)
        found |= self._said(names.said_by_model, response)
        self._metrics.operation.record(call.seconds, call.shared, call.context)
        self._metrics.count(response.usage, call.shared)
        call.end(found)

    def on_model_error(self, request: ModelRequest, error: Exception) -> None:
        """End the span of a model call that failed."""
        self._fail(request, error)

    def before_attempt(self, request: ModelRequest) -> None:
        """Begin the span of an attempt, inside that of the model call."""
        shared = names.of_model(request)
        found = {**shared, "agent_brain.attempt": request.attempt, **names.place(request)}
        self._begin(request, f"attempt {shared[names.REQUEST_MODEL]}", SpanKind.INTERNAL, found)

    def after_attempt(self, request: ModelRequest, response: ModelResponse) -> None:
        """End the span of an attempt; its model has given the response of the call."""
        attempt = self._take(request)
        if attempt is not None:
            attempt.end()
        step = open_spans.find(request.at, self)
        call = None if step is None else step.calls.get(request.response_id)
        if call is not None:
            call.shared[names.RESPONSE_MODEL] = names.model_name(request.llm)

    def on_attempt_error(self, request: ModelRequest, error: Exception) -> None:
        """End the span of an attempt that failed."""
        self._fail(request, error, measured=False)

    def before_embedding(self, request: EmbeddingRequest) -> None:
        """Begin the span of texts that a memory has embedded."""
        shared = names.of_embedder(request)
        found = {**shared, **names.place(request)}
        title = f"embeddings {request.model}"
        self._begin(request, title, SpanKind.CLIENT, found, shared)

    def after_embedding(self, request: EmbeddingRequest, usage: Usage) -> None:
        """End the span of texts that were embedded."""
        call = self._take(request)
        if call is not None:
            self._metrics.operation.record(call.seconds, call.shared, call.context)
            self._metrics.count(usage, call.shared)
            call.end(names.of_usage(usage))

    def on_embedding_error(self, request: EmbeddingRequest, error: Exception) -> None:
        """End the span of texts that could not be embedded."""
        self._fail(request, error)

    def before_tool_call(self, request: ToolRequest) -> None:
        """Begin the span of a tool call."""
        found = names.of_tool(request)
        shared = {name: found[name] for name in (names.OPERATION, names.TOOL_NAME)}
        found |= self._said(names.said_to_tool, request.action)
        title = f"execute_tool {request.action.name}"
        self._begin(request, title, SpanKind.INTERNAL, found, shared)

    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        """End the span of a tool call."""
        call = self._take(request)
        if call is None:
            return
        if response.is_error:
            call.fail(response.exception, content=self._content, text=response.content)
        self._metrics.tool.record(call.seconds, call.shared, call.context)
        call.end(self._said(names.said_by_tool, response.content))

    # Spans

    def _said(self, describe: Callable[[T], names.Attributes], what: T) -> names.Attributes:
        """Return what was said as attributes, if it may be recorded, as far as it may."""
        hide = self._content
        found = describe(what) if hide else {}
        return {k: hide(v) for k, v in found.items()} if callable(hide) else found

    def _begin(
        self,
        request: EmbeddingRequest | ModelRequest | ToolRequest,
        title: str,
        kind: SpanKind,
        found: names.Attributes,
        shared: names.Attributes | None = None,
    ) -> None:
        step = open_spans.find(request.at, self)
        if step is None:
            return
        parent = step.context
        if isinstance(request, ModelRequest) and request.attempt:
            parent = step.calls.get(request.response_id, step).context
        span = self._tracer.start_span(title, parent, kind, found)
        step.calls[_key(request)] = OpenSpan(span, parent, shared)

    def _fail(
        self, request: EmbeddingRequest | ModelRequest, error: Exception, *, measured: bool = True
    ) -> None:
        """End the span of a call that failed; an attempt is not measured by itself."""
        call = self._take(request)
        if call is None:
            return
        call.fail(error, content=self._content)
        if measured:
            self._metrics.operation.record(call.seconds, call.shared, call.context)
        call.end()

    def _take(self, request: EmbeddingRequest | ModelRequest | ToolRequest) -> OpenSpan | None:
        step = open_spans.find(request.at, self)
        return None if step is None else step.calls.pop(_key(request), None)


def _key(request: EmbeddingRequest | ModelRequest | ToolRequest) -> Hashable:
    """Return what distinguishes a call from the others of its step."""
    if isinstance(request, ToolRequest):
        return request.action.id
    if isinstance(request, ModelRequest) and request.attempt:
        return request.response_id, id(request.llm), request.attempt
    return request.response_id
