"""Any model that litellm supports, behind the model port."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import anyio
from pydantic import BaseModel

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.litellm import (
    connections,
    faults_in_name,
    litellm_on_asyncio,
    load_litellm,
    model_entry,
    provider_of,
)
from agent_brain.common.secrets import model_secrets, register_secrets
from agent_brain.common.suggest import closest
from agent_brain.common.values import is_amount, is_count
from agent_brain.memories.message import Message
from agent_brain.states.errors import (
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMServerError,
    LLMTimeoutError,
    StateDefinitionError,
)
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.model_stream import model_attempt
from agent_brain.states.models.interception import about_to_call, intercepted, real_call
from agent_brain.states.models.litellm.attempt import PRICES, Attempt, through_pauses
from agent_brain.states.models.litellm.errors import requested_wait
from agent_brain.states.models.litellm.messages import origin, response_format, to_wire
from agent_brain.states.models.litellm.provider_tools import (
    ProviderTool,
    faults_in,
    names_of,
    wire_tools,
)
from agent_brain.states.models.llm import LLM, ArgumentsDelta, Piece, Thought
from agent_brain.states.retry import RetryPolicy
from agent_brain.states.usage import Usage
from agent_brain.states.work import closing
from agent_brain.tools.base import BaseTool

_TRANSIENT = (LLMRateLimitError, LLMTimeoutError, LLMConnectionError, LLMServerError)
_UNSAID = (Usage, Thought, ArgumentsDelta)
"""What may be yielded before an attempt fails and another one is made."""

_CACHE_POINTS = ({"location": "message", "role": "system"}, {"location": "message", "index": -1})
"""The system message, with the tools before it, and the whole conversation so far."""

_MARKED = frozenset(
    "anthropic azure_ai bedrock dashscope databricks minimax openrouter vertex_ai zai".split()
)
"""Providers that accept marks in a request where their cache ends. Others may reject them, and for
Gemini they create a cache that is billed by the hour."""

_PORTABLE = frozenset(
    """drop_params frequency_penalty max_completion_tokens max_tokens parallel_tool_calls
    presence_penalty reasoning_effort seed stop temperature top_p""".split()
)
"""Parameters that mean the same to every provider and reveal nothing."""


class LiteLLM(LLM):
    """A model by its litellm name, such as ``"openai/gpt-4o-mini"``.

    ::

        from agent_brain import Brain, LiteLLM

        llm = LiteLLM("openai/gpt-4.1", fallbacks=["anthropic/claude-sonnet-4-5"], temperature=0)
        brain = Brain("react", llm=llm)

    One object serves any number of calls at once. litellm requires asyncio. It is imported by the
    first call, in a thread, which takes one to three seconds: a server does that when it starts
    with ``await llm.open()``.

    Transient failures (rate limits, timeouts, connections, server errors) are retried with
    exponential back-off and full jitter, no sooner than the provider requests; then the fallbacks
    are tried in order. Once a part of the answer has been yielded, an error is raised instead, as
    a retry would repeat that part; thoughts, and calls without all their arguments, are not part
    of it. Each failed attempt yields a :class:`~agent_brain.states.Usage` of its own, before the
    answer or the error.

    If a provider does not report its usage, it is estimated. The cost is None if no price is
    known; set ``input_cost_per_token`` and ``output_cost_per_token`` in ``params`` to give prices;
    if one is missing, it is taken from litellm's table.

    Args:
        model: The name, with the provider in front unless litellm knows it without.
        timeout: Seconds to wait for the first piece of the answer, and between two pieces.
        retries: How often a failed call is retried.
        fallbacks: Models to try next. A name is called with the parameters of this model if the
            provider is the same; another provider gets none of the keys, addresses and headers.
        supports_tools: Whether the model calls tools natively. None looks it up in litellm's table
            when first needed; unknown models are assumed to.
        supports_schema: Whether the model accepts a JSON schema (``response_format``). None looks
            it up; unknown models are assumed not to.
        supports_vision: Whether the model accepts pictures. None looks it up; unknown models are
            assumed to.
        max_images: Number of pictures to send, the newest; None sends all.
        provider_tools: Tools that the provider runs itself: ``"web_search"``, ``"code_execution"``.
            They are told in events, and kept with the message. Others are given in the provider's
            own form, in ``tools``.
        cache_prompt: Mark the instructions and the conversation for the provider's cache.
        backoff: Upper bound of the first wait before a retry in seconds; it doubles each time.
        max_retry_wait: Longest wait before a retry in seconds; if the provider requests more, its
            error is raised at once.
        params: Passed to ``litellm.acompletion``: ``api_base``, ``api_key``, ``temperature``, …
            ``tools`` of the provider, such as ``{"type": "web_search"}``, are sent with those of
            the brain.

    Raises:
        StateDefinitionError: An empty name, or one without a provider that litellm knows; a number
            out of range, or a misspelt parameter.
    """

    def __init__(
        self,
        model: str,
        *,
        timeout: float = 60.0,
        retries: int = 3,
        fallbacks: Sequence[str | LLM] = (),
        supports_tools: bool | None = None,
        supports_schema: bool | None = None,
        supports_vision: bool | None = None,
        max_images: int | None = 20,
        provider_tools: Sequence[ProviderTool] = (),
        cache_prompt: bool = False,
        backoff: float = 0.5,
        max_retry_wait: float = 60.0,
        **params: Any,
    ) -> None:
        self.model = model
        self.timeout = timeout
        self.max_images = max_images
        self.provider_tools = provider_tools
        self.cache_prompt = cache_prompt
        self._supports_vision = supports_vision
        self.retry = RetryPolicy(retries, backoff, max_retry_wait)
        self.fallbacks = fallbacks if isinstance(fallbacks, str) else tuple(fallbacks)
        self.params = params
        register_secrets(model_secrets(params))  # hidden in the results of tools
        self._supports_schema = supports_schema
        self._supports_tools = supports_tools
        if problems := "; ".join(self._problems()):
            raise StateDefinitionError(f"LiteLLM({model!r}) cannot be used: {problems}")
        if faults := "; ".join(_faults(self)):
            raise StateDefinitionError(faults)

    def _problems(self) -> Iterator[str]:
        if not isinstance(self.model, str) or not self.model.strip():
            yield "the model must have a name"
        if not is_amount(self.timeout):
            yield f"timeout must be greater than 0 seconds, not {self.timeout!r}"
        counts = {"retries": self.retry.retries, "max_images": self.max_images or 0}
        for name, count in counts.items():
            if not is_count(count, least=0):
                yield f"{name} must be a whole number of at least 0, not {count!r}"
        amounts = {"backoff": self.retry.backoff, "max_retry_wait": self.retry.max_wait}
        amounts |= {name: self.params[name] for name in PRICES if name in self.params}
        for name, amount in amounts.items():
            if not is_amount(amount, zero=True):
                yield f"{name} must be a number of at least 0, not {amount!r}"
        yield from faults_in(self.params.get("tools"))
        fallbacks = () if isinstance(self.fallbacks, str) else self.fallbacks
        for model in (self.model, *(name for name in fallbacks if isinstance(name, str))):
            try:
                if self.provider_tools:
                    wire_tools(model, provider_of(model), self.provider_tools)
            except ValueError as error:
                yield str(error)
        if isinstance(self.fallbacks, str):
            yield f"fallbacks must be a list, such as [{self.fallbacks!r}]"
        if any(
            not isinstance(item, str | LLM) or (isinstance(item, str) and not item.strip())
            for item in fallbacks
        ):
            yield "each of the fallbacks must be a model or have a name"

    def check_tools(self, tools: Iterable[BaseTool]) -> None:
        """Refuse tools with the name of one that the provider runs; see :meth:`LLM.check_tools`."""
        taken = names_of(self.provider_tools, self.params.get("tools"))
        for tool in tools:
            if tool.name in taken:
                raise ToolDefinitionError(
                    f"The tool {tool.name!r} has the name of one that the provider of "
                    f"{self.model!r} runs: give it another name, as in @tool(name=…), or do not "
                    "give the model the provider's"
                )

    def _supports(self, ability: str, *, given: bool | None, if_unknown: bool) -> bool:
        """Return whether the model has an ability, as given or by litellm's table."""
        if given is not None:
            return given
        entry = model_entry(self.params.get("base_model") or self.model)
        return if_unknown if entry is None else bool(entry.get(f"supports_{ability}"))

    @cached_property
    def supports_tools(self) -> bool:  # type: ignore[override]  # an attribute once it is known
        """Whether the model calls tools natively; the first access may import litellm."""
        return self._supports("function_calling", given=self._supports_tools, if_unknown=True)

    @cached_property
    def _schema(self) -> bool:
        return self._supports("response_schema", given=self._supports_schema, if_unknown=False)

    @cached_property
    def sends_schema(self) -> bool:  # type: ignore[override]  # an attribute once it is known
        """Whether this model and its fallbacks send the schema as ``response_format``."""
        return self._schema and all(llm.sends_schema for llm in self._fallbacks)

    @cached_property
    def _fallbacks(self) -> list[LLM]:
        return [item if isinstance(item, LLM) else self._named(item) for item in self.fallbacks]

    def _named(self, model: str) -> LiteLLM:
        same = self.provider is not None and self.provider == provider_of(model)
        return LiteLLM(
            model,
            timeout=self.timeout,
            retries=self.retry.retries,
            max_images=self.max_images,
            provider_tools=self.provider_tools,
            cache_prompt=self.cache_prompt,
            backoff=self.retry.backoff,
            max_retry_wait=self.retry.max_wait,
            **{k: v for k, v in self.params.items() if same or k in _PORTABLE},
        )

    @cached_property
    def _sees(self) -> bool:
        return self._supports("vision", given=self._supports_vision, if_unknown=True)

    @cached_property
    def provider(self) -> str | None:
        """The provider of the model, if known."""
        return provider_of(self.model)

    @cached_property
    def family(self) -> str:
        """The family of models that understand each other's provider data."""
        return origin(self.model, self.provider)

    async def open(self) -> None:
        """Import litellm in a thread, so that no call has to wait for it; is idempotent."""
        if not intercepted():
            await litellm_on_asyncio()

    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """Call the model; see :meth:`LLM.stream`.

        Raises:
            LLMError: A subclass that says what went wrong; from the last fallback, if there are
                any, with notes on the models before it.
            ToolDefinitionError: A tool has the name of one that the provider runs.
            EventLoopError: Not on asyncio.
        """
        if self.provider_tools or "tools" in self.params:
            self.check_tools(tools)
        request = ModelRequest(llm=self, messages=messages, tools=tools, output_type=output_type)
        return real_call(request, self._send)

    async def _send(self, request: ModelRequest) -> AsyncIterator[Piece]:
        """Make attempts until one succeeds: this model with its retries, then the fallbacks."""
        about_to_call(self.model)
        await litellm_on_asyncio()
        failures: list[LLMError] = []
        fallbacks = iter(self._fallbacks)
        done = 0
        pieces = self._attempt(replace(request, attempt=1))
        while True:
            started = False
            try:
                async with closing(pieces) as attempt:
                    async for piece in attempt:
                        started = started or not isinstance(piece, _UNSAID)
                        yield piece
                return
            except LLMError as error:
                failure = error
            if not failures:  # of this model
                failure.retries = done
            wait = None if failures or started else self._wait(failure, done)
            if wait is not None:
                await anyio.sleep(wait)
                done += 1
                pieces = self._attempt(replace(request, attempt=done + 1))
                continue
            fallback = None if started else next(fallbacks, None)
            if fallback is None:
                for earlier in failures:
                    failure.add_note(f"Before that, another model failed: {earlier}")
                raise failure
            failures.append(failure)
            pieces = fallback.stream(
                request.messages, tools=request.tools, output_type=request.output_type
            )

    def _attempt(self, request: ModelRequest) -> AsyncIterator[Piece]:
        """Make one attempt; a response of Claude with its own tools may take several requests."""

        def send(request: ModelRequest) -> AsyncIterator[Piece]:
            return Attempt(self, self._wire(request), request).stream()

        def ask(sent: Sequence[Message]) -> AsyncIterator[Piece]:
            """Make one request: the only place where one is sent."""
            return model_attempt(replace(request, messages=sent), send)

        may_pause = "claude" in self.family and (self.provider_tools or self.params.get("tools"))
        return through_pauses(ask, request.messages) if may_pause else ask(request.messages)

    def _wait(self, error: LLMError, done: int) -> float | None:
        """Return the seconds to wait before a retry; None for no retry."""
        if not isinstance(error, _TRANSIENT):
            return None
        requested = None if error.__cause__ is None else requested_wait(error.__cause__)
        if requested is not None:
            error.message += f"; the provider asks to wait {requested:g} s"
        return self.retry.wait(done, requested)

    def _wire(self, asked: ModelRequest) -> dict[str, Any]:
        """Return the arguments of ``litellm.acompletion``."""
        request = {
            "drop_params": True,
            **{name: value for name, value in self.params.items() if name not in PRICES},
            "model": self.model,
            "messages": to_wire(
                asked.messages, family=self.family, sees=self._sees, max_images=self.max_images
            ),
            "stream": True,
            "stream_options": {"include_usage": True},
            "timeout": self.timeout,
            "max_retries": 0,
            "num_retries": 0,
        }
        if asked.tools or self.provider_tools:
            served = wire_tools(self.model, self.provider, self.provider_tools)
            own = self.params.get("tools") or ()
            functions = (
                {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.input_schema,
                }
                for tool in asked.tools
            )
            called = ({"type": "function", "function": function} for function in functions)
            request["tools"] = [*own, *served, *called]
        if asked.output_type is not None and self._schema:
            request["response_format"] = response_format(asked.output_type)
        if self.cache_prompt and self.provider in _MARKED and "gemini" not in self.model:
            request.setdefault("cache_control_injection_points", list(_CACHE_POINTS))
        return request

    async def aclose(self) -> None:
        """Close litellm's HTTP connections on the running event loop.

        They are shared by all models on it, so they are closed when none of them streams. The model
        may be used again afterwards, and on another event loop.
        """
        await connections.close()
        for fallback in self.fallbacks:
            if isinstance(fallback, LLM):
                await fallback.aclose()

    def __repr__(self) -> str:
        return f"LiteLLM({self.model!r})"


_PARAMETERS = frozenset(
    """api_base api_key api_version base_url custom_llm_provider deployment_id drop_params
    extra_headers frequency_penalty input_cost_per_token logit_bias logprobs max_completion_tokens
    max_tokens n organization output_cost_per_token parallel_tool_calls presence_penalty
    prompt_cache_key reasoning_effort response_format safety_identifier seed service_tier stop
    temperature thinking tool_choice top_logprobs top_p user verbosity web_search_options""".split()
)
"""Parameters of a call that need no further look. Providers have others, so a parameter is wrong
only if it is nearly one of these."""
_NEARLY = 0.85  # how similar a misspelt parameter is at least


def _faults(llm: LiteLLM) -> Iterator[str]:
    """Yield what is wrong with the name and the parameters of a model, and its fallbacks' names.

    Nothing here needs a network. litellm is imported only for a name or a parameter that looks
    wrong, and has the last word on it. A name that only its provider can judge has no fault.
    """
    yield from faults_in_name(llm.model, llm.params)
    for option in llm.params:
        yield from _of_option(option, type(llm))
    for fallback in llm.fallbacks:
        if isinstance(fallback, str):
            yield from (f"fallbacks: {fault}" for fault in faults_in_name(fallback, {}))
    names = names_of(llm.provider_tools, llm.params.get("tools"))
    if len({*names}) < len(names):
        yield f"give each tool of the provider once, not {', '.join(names)}"


def _of_option(name: str, kind: type[LiteLLM]) -> Iterator[str]:
    if name in _PARAMETERS:
        return
    meant = closest(name, {*inspect.signature(kind).parameters, *_PARAMETERS}, _NEARLY)
    if meant is not None:
        litellm = load_litellm()
        more = getattr(litellm.types.utils, "all_litellm_params", ())
        if name not in {*inspect.signature(litellm.acompletion).parameters, *more}:
            yield f"there is no option {name!r}. Did you mean {meant!r}?"
