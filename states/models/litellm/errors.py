"""Translate what litellm raises into the errors of this library, without secrets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from agent_brain.common.litellm import load_litellm
from agent_brain.common.secrets import scrub, secret_values
from agent_brain.common.text import clean, shorten
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
from agent_brain.states.retry import retry_after

_LONGEST = 500  # tokens of a provider's own words in an error

_NO_KEY = re.compile(r"(?i)missing (\w+ )?(api key|credentials)|api_key client option must be set")
_TOO_LONG = re.compile(
    r"""(?ix)
    context [ _](?:length|window|size|limit) | exceed_context_size | tokens_limit_reached
    | maximum\ (?:prompt|input|model|sequence)\ length | (?:prompt|input)\ is\ too\ long
    | too\ many\ (?:input\ )?tokens | too\ many\ total\ text\ bytes | request_too_large
    | tokens?\ (?:count|limit|length)\b.{0,60}\bexceed
    | exceeds?\b.{0,40}\bnumber\ of\ (?:input\ )?tokens
    | model\ only\ supports\ up\ to\ \d+ | current\ length\ is\ \d+\ while\ limit\ is
    | (?:reduce|shorten)\ the\ (?:length|size)\ of\ (?:the|your)\ (?:messages|prompt|input)
    | inputs`?\ tokens\ \+ | inputs`?\ must\ have\ less\ than
    """
)
_TOO_LARGE = re.compile(r"(?i)request (body |entity )?too large|tokens must be reduced")
"""A request that never passes: larger than all tokens of a minute, with status 429, or than any
request may be, with status 413, which litellm turns into 429."""

_QUOTA = re.compile(
    r"""(?ix)
    insufficient[_ ](?:quota|balance|credits?|funds) | credit\ balance\ is\ too\ low
    | plan\ and\ billing\ details | billing[_ ]hard[_ ]limit | not\ enough\ credits
    | spending\ limit | (?:used|exhausted)\ all\ (?:of\ )?(?:your\ )?(?:available\ )?credits
    """
)
_DAILY = re.compile(r"(?i)per_?day|\blimit: 0\b")
_WAIT = re.compile(r"(?i)please wait|try again (in|later)")
_RETRY_IN = re.compile(r"(?i)(?:retryDelay\W+|retry in |try again in )(\d+(?:\.\d+)?) ?s")
_NO_WORDS = re.compile(r"Error code: \d+$")
_PAGE = re.compile(r"(?i)<!doctype html|<html\b")
_TITLE = re.compile(r"(?is)<title[^>]*>(.*?)</title>")
_PREFIX = re.compile(r"^(litellm\.\w+:|\w+(Error|Exception|Timeout)( -|:))\s*")
_BYTES = re.compile(r"""b(['"])(.*)\1""", re.DOTALL)

_LEADS: dict[type[LLMError], str] = {
    LLMAuthenticationError: "The provider does not accept the API key, or there is none",
    LLMQuotaError: "The account's quota or credit is used up",
    ContextWindowError: "The messages are longer than the model accepts",
    LLMBadRequestError: "The provider does not accept the request",
    LLMRateLimitError: "The provider's rate limit is reached",
    LLMTimeoutError: "The model did not answer in time",
    LLMConnectionError: "The connection to the provider failed or broke",
    LLMServerError: "The provider failed",
    LLMError: "The model call failed",
}


def to_llm_error(error: Exception, *, model: str, params: Mapping[str, Any]) -> LLMError:
    """Return the error to raise for ``error``.

    Args:
        error: What litellm raised. Secrets are removed from its texts.
        model: The model that was called.
        params: Its parameters: keys, tokens and headers in them are secret.
    """
    secrets = frozenset(secret_values(params))
    for link in _chain(error):
        _remove_secrets(link, secrets)
    wrapped = isinstance(error, load_litellm().exceptions.MidStreamFallbackError)
    original = getattr(error, "original_exception", None)
    origin = original if wrapped and isinstance(original, Exception) else error
    kind = _kind_of(origin, broken=origin is not error)
    lead = _LEADS[kind]
    if kind is LLMAuthenticationError and getattr(origin, "status_code", None) == 403:
        lead = "The provider does not allow the request"
    text = scrub(f"{lead}: {_reason(kind, origin, error)}", secrets)
    return kind(text, provider=getattr(origin, "llm_provider", None) or None, model=model)


def no_stream(stream: Any) -> LLMServerError:
    """Return the error for a response that succeeded without any part of an answer."""
    headers = (getattr(stream, "_hidden_params", None) or {}).get("additional_headers") or {}
    found = headers.get("llm_provider-content-type")
    what = f"sent {str(found).partition(';')[0]}" if found else "sent nothing"
    hint = "a gateway or another server may have answered: check api_base"
    return LLMServerError(f"The provider {what} instead of a streamed answer; {hint}")


def malformed_call(reason: str) -> LLMServerError:
    """Return the error for a call of a tool that the provider itself could not read."""
    return LLMServerError(f"The model wrote a tool call that its provider cannot read ({reason})")


def requested_wait(error: BaseException) -> float | None:
    """Return the seconds to wait that the provider's response requests, if any."""
    for link in _chain(error):
        for holder in (getattr(link, "response", None), link):
            headers = getattr(holder, "headers", None)
            wait = retry_after(headers) if isinstance(headers, Mapping) else None
            if wait is not None:
                return wait
    found = _RETRY_IN.search(_all_text(error))
    return None if found is None else float(found[1])


def _kind_of(error: Exception, *, broken: bool) -> type[LLMError]:
    """Return the class of the error to raise; ``broken``: it came in the middle of a stream."""
    status = getattr(error, "status_code", None)
    permanent = _permanent_kind(error, status)
    if permanent is not None:
        return permanent
    if isinstance(error, TimeoutError | load_litellm().Timeout) or status == 408:
        return LLMTimeoutError
    if status == 429:
        return LLMRateLimitError
    network = _network_error(error)
    if network is not None:
        import httpx

        timed_out = isinstance(network, httpx.TimeoutException)
        return LLMTimeoutError if timed_out else LLMConnectionError
    if isinstance(status, int) and 400 <= status < 500:
        return LLMBadRequestError
    return LLMServerError if isinstance(status, int) or broken else LLMError


def _permanent_kind(error: Exception, status: Any) -> type[LLMError] | None:
    """Return the kind of a failure that waiting does not cure, judged by its text."""
    text = _all_text(error)
    if status in (401, 403) and _PAGE.search(text):
        return LLMBadRequestError  # from a gateway: the provider has not seen the key
    in_words = _QUOTA.search(text) and not _RETRY_IN.search(text) and status not in (401, 404)
    if status == 402 or (status == 429 and _DAILY.search(text)) or in_words:
        return LLMQuotaError  # credit or a daily quota is used up: waiting a minute is useless
    if status in (401, 403) or _NO_KEY.search(str(error)):
        return LLMAuthenticationError
    if status == 429 or _WAIT.search(text):
        return ContextWindowError if _TOO_LARGE.search(text) else None
    if isinstance(error, load_litellm().ContextWindowExceededError) or status == 413:
        return ContextWindowError
    too_long = status in (None, 400, 422, 500) and _TOO_LONG.search(text)
    return ContextWindowError if too_long else None


def _reason(kind: type[LLMError], origin: Exception, error: Exception) -> str:
    """Return the reason in the provider's words, or in the network's if there is no response."""
    network = _network_error(origin) or _network_error(error)
    words = str(network or "") if kind is LLMConnectionError else ""
    words = words or str(origin)
    if _NO_WORDS.search(words):  # OpenAI's client leaves out a body that is in another form
        bodies = (getattr(link, "body", None) for link in _chain(origin))
        words = next((f"{words} - {body}" for body in bodies if body), words)
    if not _PAGE.search(words):
        return _tidy(words)
    title = _TITLE.search(words)
    name = f" ({_tidy(title[1])!r})" if title else ""
    return f"it sent an HTML page{name}; a gateway may have answered: check api_base"


def _tidy(text: str) -> str:
    """Return one line of a provider's words, without litellm's prefixes and its traceback."""
    text = text.split("Traceback (most recent call last)", 1)[0]
    text = " ".join(clean(text).split())
    while match := _PREFIX.match(text):
        text = text[match.end() :]
    if raw := _BYTES.fullmatch(text):
        text = raw[2]
    return shorten(text, _LONGEST) or "it gave no reason"


def _remove_secrets(error: BaseException, secrets: frozenset[str]) -> None:
    args = tuple(scrub(arg, secrets) if isinstance(arg, str) else arg for arg in error.args)
    if args != error.args:
        error.args = args
    message = getattr(error, "message", None)
    if isinstance(message, str) and message != scrub(message, secrets):
        with suppress(AttributeError):  # a property of the args
            error.message = scrub(message, secrets)  # type: ignore[attr-defined]


def _all_text(error: BaseException) -> str:
    """Return all text of ``error`` and its causes, including the body of the response."""
    found: list[str] = []
    for link in _chain(error):
        found += [str(link), str(getattr(link, "body", None) or "")]
        found += [str(getattr(link, name, None) or "") for name in ("code", "type")]
    return "\n".join(found)


def _network_error(error: BaseException) -> BaseException | None:
    """Return the network failure behind ``error``; None if there was a response."""
    import httpx

    for link in _chain(error):
        if isinstance(link, httpx.HTTPStatusError):
            return None
        if isinstance(link, httpx.TransportError | ConnectionError):
            return link
    return None


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """Yield ``error`` and its causes, nearest first."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        original = getattr(error, "original_exception", None)
        if isinstance(original, BaseException) and id(original) not in seen:
            seen.add(id(original))
            yield original
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
