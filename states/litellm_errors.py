"""From what litellm raises to the errors of this library, without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from agent_brain.memories.litellm_setup import load_litellm
from agent_brain.states.errors import (
    ContextWindowError,
    LLMAuthenticationError,
    LLMBadRequestError,
    LLMConnectionError,
    LLMError,
    LLMRateLimitError,
    LLMServerError,
    LLMTimeoutError,
)
from agent_brain.states.retry import retry_after
from agent_brain.tools.secrets import scrub
from agent_brain.tools.text import clean, shorten

_LONGEST = 500
"""Tokens of a provider's own words that an error keeps."""

_SECRET_NAME = re.compile(r"(?i)key|token|secret|password|credential|authorization|cookie")
_SECRET_VARIABLE = re.compile(r"(?i)(key|token|secret|password|credentials?)$")
_NO_KEY = re.compile(r"(?i)missing (\w+ )?(api key|credentials)|api_key client option must be set")
_PREFIX = re.compile(r"^(litellm\.\w+:|\w+(Error|Exception|Timeout)( -|:))\s*")

_LEADS: dict[type[LLMError], str] = {
    LLMAuthenticationError: "The provider does not accept the API key, or there is none",
    ContextWindowError: "The messages are longer than the model takes",
    LLMBadRequestError: "The provider does not take the request",
    LLMRateLimitError: "The provider's rate limit is reached",
    LLMTimeoutError: "The model did not answer in time",
    LLMConnectionError: "The connection to the provider failed or broke",
    LLMServerError: "The provider failed",
    LLMError: "The model call failed",
}


def to_llm_error(error: Exception, *, model: str, secrets: frozenset[str]) -> LLMError:
    """The error to raise from ``error``, of the kind that it is.

    The texts in ``error`` and in what caused it are cleared of ``secrets`` too, as they are printed
    with a traceback.

    Args:
        error: What litellm raised.
        model: The model that was called.
        secrets: What must not be in any text: see :func:`secrets_in`.
    """
    for link in _chain(error):
        _clear(link, secrets)
    origin = _origin(error)
    kind = _kind(origin, broken=origin is not error)
    network = _network_error(origin) or _network_error(error)
    words = str(network or "") if kind is LLMConnectionError else ""
    text = hide(_tidy(words or str(origin)), secrets)
    provider = getattr(origin, "llm_provider", None) or None
    return kind(f"{_LEADS[kind]}: {text}", provider=provider, model=model)


def asked_wait(error: BaseException) -> float | None:
    """Seconds that the provider asked to wait, in the headers of the response behind ``error``."""
    for link in _chain(error):
        for holder in (getattr(link, "response", None), link):
            headers = getattr(holder, "headers", None)
            wait = retry_after(headers) if isinstance(headers, Mapping) else None
            if wait is not None:
                return wait
    return None


def secrets_in(params: Mapping[str, Any]) -> frozenset[str]:
    """Values in ``params``, and in the environment, that their names say are secret.

    All headers count as secret. Values of fewer than 8 characters do not: they are placeholders,
    and hiding them would hide ordinary words.
    """
    found = set(_secret_values(params, all_of_it=False))
    found.update(value for name, value in os.environ.items() if _SECRET_VARIABLE.search(name))
    return frozenset(value for value in found if len(value) >= 8)


def _secret_values(params: Mapping[str, Any], *, all_of_it: bool) -> Iterator[str]:
    for name, value in params.items():
        secret = all_of_it or _SECRET_NAME.search(name) is not None
        if isinstance(value, Mapping):
            yield from _secret_values(value, all_of_it=secret or name.endswith("headers"))
        elif secret and isinstance(value, str):
            yield value
            yield value.removeprefix("Bearer ")


def hide(text: str, secrets: frozenset[str]) -> str:
    """``text`` without the secrets, and without what looks like one."""
    return scrub(text, secrets)


def _clear(error: BaseException, secrets: frozenset[str]) -> None:
    args = tuple(hide(a, secrets) if isinstance(a, str) else a for a in error.args)
    if args != error.args:
        error.args = args
    message = getattr(error, "message", None)
    if isinstance(message, str) and message != hide(message, secrets):
        with suppress(AttributeError):  # it is made from the args
            setattr(error, "message", hide(message, secrets))  # noqa: B010


def _tidy(text: str) -> str:
    """One line of a provider's words, without litellm's prefixes and its traceback."""
    text = text.split("Traceback (most recent call last)", 1)[0]
    text = " ".join(clean(text).split())
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    return shorten(text, _LONGEST) or "it gave no reason"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """``error`` and what caused it, nearest first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        original = getattr(error, "original_exception", None)
        if isinstance(original, BaseException) and id(original) not in seen:
            seen.add(id(original))
            yield original
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def _origin(error: Exception) -> Exception:
    """The error itself, or the one that litellm wrapped because it came in mid-stream."""
    original = getattr(error, "original_exception", None)
    wrapped = isinstance(error, load_litellm().exceptions.MidStreamFallbackError)
    return original if wrapped and isinstance(original, Exception) else error


def _network_error(error: BaseException) -> BaseException | None:
    """The failure of the connection behind ``error``; None if a response came."""
    import httpx

    for link in _chain(error):
        if isinstance(link, httpx.HTTPStatusError):
            return None
        if isinstance(link, httpx.TransportError | ConnectionError):
            return link
    return None


def _timed_out(error: BaseException) -> bool:
    import httpx

    return isinstance(error, httpx.TimeoutException)


def _kind(error: Exception, *, broken: bool) -> type[LLMError]:
    litellm = load_litellm()
    status = getattr(error, "status_code", None)
    if isinstance(error, litellm.ContextWindowExceededError):
        return ContextWindowError
    if status in (401, 403) or _NO_KEY.search(str(error)):
        return LLMAuthenticationError
    if isinstance(error, TimeoutError | litellm.Timeout) or status == 408:
        return LLMTimeoutError
    if status == 429:
        return LLMRateLimitError
    network = _network_error(error)
    if network is not None:
        return LLMTimeoutError if _timed_out(network) else LLMConnectionError
    if isinstance(status, int) and 400 <= status < 500:
        return LLMBadRequestError
    return LLMServerError if isinstance(status, int) or broken else LLMError
