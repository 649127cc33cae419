"""From what litellm raises to the errors of this library, without secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from agent_brain.states.errors import (
    ContextWindowError,
    LLMAuthenticationError,
    LLMBadRequestError,
    LLMConnectionError,
    LLMError,
    LLMQuotaError,
    LLMRateLimitError,
    LLMServerError,
    LLMTimeoutError,
)
from agent_brain.states.models.litellm.error_kinds import (
    PAGE,
    RETRY_IN,
    all_text,
    chain,
    kind_of,
    network_error,
)
from agent_brain.states.retry import retry_after
from agent_brain.tools.litellm.setup import load_litellm
from agent_brain.tools.secrets import scrub
from agent_brain.tools.text import clean, shorten

_LONGEST = 500
"""Tokens of a provider's own words that an error keeps."""

_SECRET_NAME = re.compile(r"(?i)key|token|secret|password|credential|authorization|cookie")
_SECRET_VARIABLE = re.compile(r"(?i)(key|token|secret|password|credentials?)$")
_PREFIX = re.compile(r"^(litellm\.\w+:|\w+(Error|Exception|Timeout)( -|:))\s*")

_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")
_BYTES = re.compile(r"""b(['"])(.*)\1""", re.DOTALL)

_LEADS: dict[type[LLMError], str] = {
    LLMAuthenticationError: "The provider does not accept the API key, or there is none",
    LLMQuotaError: "The account's quota or credit is used up",
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
    for link in chain(error):
        _clear(link, secrets)
    origin = _origin(error)
    kind = kind_of(origin, broken=origin is not error)
    provider = getattr(origin, "llm_provider", None) or None
    text = hide(f"{_lead(kind, origin)}: {_words(kind, origin, error)}", secrets)
    return kind(text, provider=provider, model=model)


def no_stream(content_type: str | None) -> LLMServerError:
    """The error for a response that succeeded and had nothing of an answer in it."""
    what = f"sent {content_type}" if content_type else "sent nothing"
    hint = "a gateway or another server may have answered: check api_base"
    return LLMServerError(f"The provider {what} instead of a streamed answer; {hint}")


def asked_wait(error: BaseException) -> float | None:
    """Seconds that the provider asked to wait, in the headers or the body behind ``error``."""
    for link in chain(error):
        for holder in (getattr(link, "response", None), link):
            headers = getattr(holder, "headers", None)
            wait = retry_after(headers) if isinstance(headers, Mapping) else None
            if wait is not None:
                return wait
    found = RETRY_IN.search(all_text(error))
    return None if found is None else float(found[1])


def _lead(kind: type[LLMError], error: Exception) -> str:
    if kind is LLMAuthenticationError and getattr(error, "status_code", None) == 403:
        return "The provider does not allow the request"
    return _LEADS[kind]


def _words(kind: type[LLMError], origin: Exception, error: Exception) -> str:
    """What the provider said, or the network if it could not say anything."""
    network = network_error(origin) or network_error(error)
    words = str(network or "") if kind is LLMConnectionError else ""
    words = words or str(origin)
    if not PAGE.search(words):
        return _tidy(words)
    title = _TITLE.search(words)
    name = f" ({_tidy(title[1])!r})" if title else ""
    return f"it sent an HTML page{name}; a gateway may have answered: check api_base"


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
    if raw := _BYTES.fullmatch(text):
        text = raw[2]
    return shorten(text, _LONGEST) or "it gave no reason"


def _origin(error: Exception) -> Exception:
    """The error itself, or the one that litellm wrapped because it came in mid-stream."""
    original = getattr(error, "original_exception", None)
    wrapped = isinstance(error, load_litellm().exceptions.MidStreamFallbackError)
    return original if wrapped and isinstance(original, Exception) else error
