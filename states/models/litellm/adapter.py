"""Any model that litellm knows, behind the model port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from functools import cached_property, partial
from typing import Any

import anyio
from pydantic import BaseModel

from agent_brain.memories.message import Message
from agent_brain.states.aclosing import closing
from agent_brain.states.errors import (
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMServerError,
    LLMTimeoutError,
    StateDefinitionError,
)
from agent_brain.states.hook_chain import model_attempt
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.models.interception import RealCall, about_to_call, intercepted, real_call
from agent_brain.states.models.litellm.call import Call, Target
from agent_brain.states.models.litellm.errors import asked_wait
from agent_brain.states.models.litellm.messages import origin, to_wire
from agent_brain.states.models.litellm.usage import PRICES
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.states.retry import RetryPolicy
from agent_brain.states.usage import Usage
from agent_brain.tools.base import BaseTool
from agent_brain.tools.litellm.connections import connections
from agent_brain.tools.litellm.setup import (
    litellm_on_asyncio,
    model_entry,
    provider_of,
)
from agent_brain.tools.secrets import model_secrets, register_secrets
from agent_brain.tools.values import is_amount, is_count

_TRANSIENT = (LLMRateLimitError, LLMTimeoutError, LLMConnectionError, LLMServerError)
_CACHE_POINTS = ({"location": "message", "role": "system"}, {"location": "message", "index": -1})
"""The system message, with the tools before it, and all of the conversation so far."""

_MARKED = frozenset(
    {
        "anthropic",
        "azure_ai",
        "bedrock",
        "dashscope",
        "databricks",
        "minimax",
        "openrouter",
        "vertex_ai",
        "zai",
    }
)
"""Providers that take marks in a request where their cache is to end. Others may refuse them, and
for Gemini they create a cache that costs by the hour."""

_PORTABLE = frozenset(
    {
        "drop_params",
        "frequency_penalty",
        "max_completion_tokens",
        "max_tokens",
        "parallel_tool_calls",
        "presence_penalty",
        "reasoning_effort",
        "seed",
        "stop",
        "temperature",
        "top_p",
    }
)
"""Parameters that mean the same to every provider and give nothing away."""


class LiteLLM(LLM):
    """A model by the name that litellm has for it, such as ``"openai/gpt-4o-mini"``.

    One object serves any number of calls at once. litellm runs on asyncio only. It is imported with
    the first call, in a thread, which takes one to three seconds: a server pays for that when it
    starts with ``await llm.open()``.

    Failures that may pass (rate limits, timeouts, connections, errors of the server) are tried
    again with exponential back-off and full jitter, no sooner than the provider asks for; then the
    fallbacks are tried in order. Both only while nothing of the answer was given out: after that
    an error is raised, as the same words would come twice. Each call that failed yields a
    :class:`~agent_brain.states.Usage` of its own, before the answer or the error.

    A provider that does not report its usage gets an estimate. The cost is None where no price is
    known; prices of your own go into ``params`` as ``input_cost_per_token`` and
    ``output_cost_per_token``, both: where one is missing, litellm's table is asked for it.

    Args:
        model: The name, with the provider in front unless litellm knows it without.
        timeout: Seconds to wait for the first piece of the answer, and between any two pieces.
        retries: How often a call that failed is tried again.
        fallbacks: What to try next. A name is called with the parameters of this model if the
            provider is the same; another provider gets none of the keys, addresses and headers.
        supports_tools: The model calls tools natively. None asks litellm's table when it is first
            needed; models that are not in it are taken to do so.
        supports_schema: The model takes a JSON schema for its answer (``response_format``). None
            asks the table; models that are not in it are taken not to.
        backoff: Upper bound of the first wait before a retry in seconds; it doubles each time.
        max_retry_wait: Longest wait before a retry in seconds; where the provider asks for more,
            its error is raised at once.
        params: Handed to ``litellm.acompletion``: ``api_base``, ``api_key``, ``temperature``, …

    Raises:
        StateDefinitionError: An empty name, or a number out of range.
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
        cache_prompt: bool = False,
        backoff: float = 0.5,
        max_retry_wait: float = 60.0,
        **params: Any,
    ) -> None:
        self.model = model
        self.timeout = timeout
        self.max_images = max_images
        self.cache_prompt = cache_prompt
        self._supports_vision = supports_vision
        self.retry = RetryPolicy(retries, backoff, max_retry_wait)
        self.fallbacks = fallbacks if isinstance(fallbacks, str) else tuple(fallbacks)
        self.params = params
        register_secrets(model_secrets(params))  # hidden in the results of tools too
        self._supports_schema = supports_schema
        if supports_tools is not None:
            self.supports_tools = supports_tools  # pyright: ignore[reportIncompatibleVariableOverride]
        problems = self._problems()
        if problems:
            raise StateDefinitionError(f"LiteLLM({model!r}) cannot be used: {'; '.join(problems)}")

    def _problems(self) -> list[str]:
        found = []
        if not isinstance(self.model, str) or not self.model.strip():
            found.append("the model must have a name")
        if not is_amount(self.timeout):
            found.append(f"timeout must be above 0 seconds, not {self.timeout!r}")
        for name, count in {
            "retries": self.retry.retries,
            "max_images": self.max_images or 0,
        }.items():
            if not is_count(count, least=0):
                found.append(f"{name} must be a whole number from 0, not {count!r}")
        amounts = {"backoff": self.retry.backoff, "max_retry_wait": self.retry.max_wait}
        amounts |= {name: self.params[name] for name in PRICES if name in self.params}
        for name, amount in amounts.items():
            if not is_amount(amount, zero=True):
                found.append(f"{name} must be a number from 0, not {amount!r}")
        if isinstance(self.fallbacks, str):
            found.append(f"fallbacks must be a list, such as [{self.fallbacks!r}]")
        elif not all(
            isinstance(item, LLM) or (isinstance(item, str) and item.strip())
            for item in self.fallbacks
        ):
            found.append("each of the fallbacks must be a model or have a name")
        return found

    @cached_property
    def supports_tools(self) -> bool:  # type: ignore[override]  # an attribute once it is known
        """It calls tools natively; the first time, this may import litellm."""
        entry = self._entry
        return entry is None or bool(entry.get("supports_function_calling"))

    @cached_property
    def _schema(self) -> bool:
        if self._supports_schema is not None:
            return self._supports_schema
        return bool((self._entry or {}).get("supports_response_schema"))

    @cached_property
    def sends_schema(self) -> bool:  # type: ignore[override]  # an attribute once it is known
        """It sends the schema of the output as ``response_format``, and so do its fallbacks."""
        return self._schema and all(llm.sends_schema for llm in self._fallbacks)

    @property
    def _entry(self) -> dict[str, Any] | None:
        return model_entry(self.params.get("base_model") or self.model)

    @cached_property
    def _fallbacks(self) -> list[LLM]:
        return [item if isinstance(item, LLM) else self._named(item) for item in self.fallbacks]

    def _named(self, model: str) -> LiteLLM:
        provider = provider_of(self.model)
        same = provider is not None and provider == provider_of(model)
        return LiteLLM(
            model,
            timeout=self.timeout,
            retries=self.retry.retries,
            max_images=self.max_images,
            cache_prompt=self.cache_prompt,
            backoff=self.retry.backoff,
            max_retry_wait=self.retry.max_wait,
            **{k: v for k, v in self.params.items() if same or k in _PORTABLE},
        )

    @cached_property
    def _sees(self) -> bool:
        if self._supports_vision is not None:
            return self._supports_vision
        return self._entry is None or bool(self._entry.get("supports_vision"))

    @property
    def _caches_on_request(self) -> bool:
        return self._target.provider in _MARKED and "gemini" not in self.model

    @cached_property
    def _target(self) -> Target:
        provider = provider_of(self.model)
        family = origin(self.model, provider)
        return Target(self.model, provider, family, self.timeout, self.params)

    async def open(self) -> None:
        """Import litellm, in a thread, so that no call has to wait for it.

        Other tasks and threads run on meanwhile. The second time does nothing.
        """
        if not intercepted():
            await litellm_on_asyncio()

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """One model call; see :meth:`LLM.stream`.

        Raises:
            LLMError: A subclass that says what went wrong; from the last fallback, if there are
                any, with notes on the models before it.
            EventLoopError: Not on asyncio.
        """
        call = RealCall(
            self, messages, tools, output_type, partial(self._send, messages, tools, output_type)
        )
        async with closing(real_call(call)) as pieces:
            async for piece in pieces:
                yield piece

    async def _send(
        self,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        output_type: type[BaseModel] | None,
    ) -> AsyncIterator[Piece]:
        about_to_call(self.model)
        await litellm_on_asyncio()
        notes: list[str] = []
        answers = self._retried(messages, tools, output_type)
        for fallback in [*self._fallbacks, None]:
            started = False
            try:
                async with closing(answers) as pieces:
                    async for piece in pieces:
                        started = started or not isinstance(piece, Usage)
                        yield piece
                return
            except LLMError as error:
                if started or fallback is None:
                    for note in notes:
                        error.add_note(note)
                    raise
                notes.append(f"Before that, another model failed: {error}")
            answers = fallback.stream(messages, tools=tools, output_type=output_type)

    async def _retried(
        self,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        output_type: type[BaseModel] | None,
    ) -> AsyncIterator[Piece]:
        done = 0
        while True:
            started = False
            calls: list[Call] = []

            def send(request: ModelRequest, calls: list[Call] = calls) -> AsyncIterator[Piece]:
                wire = self._request(request.messages, request.tools, request.output_type)
                calls.append(Call(self._target, wire, request.messages, request.tools))
                return calls[-1].stream()

            attempt = model_attempt(self, done + 1, messages, tools, output_type, send)
            try:
                async with closing(attempt) as pieces:
                    async for piece in pieces:
                        started = True
                        yield piece
                return
            except LLMError as error:
                failure = error
            for call in calls:  # none, if a hook has refused it
                yield call.usage_so_far()
            failure.retries = done
            wait = None if started else self._wait(failure, done)
            if wait is None:
                raise failure
            await anyio.sleep(wait)
            done += 1

    def _wait(self, error: LLMError, done: int) -> float | None:
        """Seconds to wait before the call is tried again, or None if it is not to be."""
        if not isinstance(error, _TRANSIENT):
            return None
        asked = None if error.__cause__ is None else asked_wait(error.__cause__)
        if asked is not None:
            error.message += f"; the provider asks to wait {asked:g} s"
        return self.retry.wait(done, asked)

    def _request(
        self,
        messages: Sequence[Message],
        tools: Sequence[BaseTool],
        output_type: type[BaseModel] | None,
    ) -> dict[str, Any]:
        request = {
            "drop_params": True,
            **{name: value for name, value in self.params.items() if name not in PRICES},
            "model": self.model,
            "messages": to_wire(
                messages,
                family=self._target.family,
                sees=self._sees,
                max_images=self.max_images,
            ),
            "stream": True,
            "stream_options": {"include_usage": True},
            "timeout": self.timeout,
            "max_retries": 0,
            "num_retries": 0,
        }
        if tools:
            request["tools"] = [_wire_tool(tool) for tool in tools]
        if output_type is not None and self._schema:
            request["response_format"] = output_type
        if self.cache_prompt and self._caches_on_request:
            request.setdefault("cache_control_injection_points", list(_CACHE_POINTS))
        return request

    async def aclose(self) -> None:
        """Close the HTTP connections that litellm keeps open on the running event loop.

        They are shared by all models on it, so they are closed when none of them streams. The model
        may be used again afterwards, and on another event loop.
        """
        await connections.close()
        for fallback in self.fallbacks:
            if isinstance(fallback, LLM):
                await fallback.aclose()

    def __repr__(self) -> str:
        return f"LiteLLM({self.model!r})"


def _wire_tool(tool: BaseTool) -> dict[str, Any]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
    }
    return {"type": "function", "function": function}
