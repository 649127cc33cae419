"""Which kind of error a failed call of litellm is, by what it raised and what the provider said."""

from __future__ import annotations

import re
from collections.abc import Iterator
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
from agent_brain.tools.litellm.setup import load_litellm

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
request may be, with status 413, which litellm makes 429."""

_QUOTA = re.compile(
    r"""(?ix)
    insufficient[_ ](?:quota|balance|credits?|funds) | credit\ balance\ is\ too\ low
    | plan\ and\ billing\ details | billing[_ ]hard[_ ]limit | not\ enough\ credits
    | spending\ limit | (?:used|exhausted)\ all\ (?:of\ )?(?:your\ )?(?:available\ )?credits
    """
)
_DAILY = re.compile(r"(?i)per_?day|\blimit: 0\b")
_WAIT = re.compile(r"(?i)please wait|try again (in|later)")
PAGE = re.compile(r"(?i)<!doctype html|<html\b")
RETRY_IN = re.compile(r"(?i)(?:retryDelay\W+|retry in |try again in )(\d+(?:\.\d+)?) ?s")


def kind_of(error: Exception, *, broken: bool) -> type[LLMError]:
    """The class of the error to raise.

    Args:
        error: What litellm raised, or the cause that it wrapped.
        broken: The failure came in the middle of a stream.
    """
    status = getattr(error, "status_code", None)
    refused = _refusal(error, status)
    if refused is not None:
        return refused
    if isinstance(error, TimeoutError | load_litellm().Timeout) or status == 408:
        return LLMTimeoutError
    if status == 429:
        return LLMRateLimitError
    network = network_error(error)
    if network is not None:
        return LLMTimeoutError if _timed_out(network) else LLMConnectionError
    if isinstance(status, int) and 400 <= status < 500:
        return LLMBadRequestError
    return LLMServerError if isinstance(status, int) or broken else LLMError


def _refusal(error: Exception, status: Any) -> type[LLMError] | None:
    """The kind of a failure that does not pass by itself, as far as its words tell."""
    text = all_text(error)
    if status in (401, 403) and PAGE.search(text):
        return LLMBadRequestError  # of a gateway: the provider has not seen the key
    if _used_up(status, text):
        return LLMQuotaError
    if status in (401, 403) or _NO_KEY.search(str(error)):
        return LLMAuthenticationError
    if _too_long(error, status, text):
        return ContextWindowError
    return None


def _too_long(error: Exception, status: Any, text: str) -> bool:
    if status == 429 or _WAIT.search(text):
        return _TOO_LARGE.search(text) is not None
    if isinstance(error, load_litellm().ContextWindowExceededError) or status == 413:
        return True
    return status in (None, 400, 422, 500) and _TOO_LONG.search(text) is not None


def _used_up(status: Any, text: str) -> bool:
    """Whether it is money that is missing, or a quota of a day: waiting a minute does not help."""
    if status == 402 or (status == 429 and _DAILY.search(text)):
        return True
    return (
        status not in (401, 404)
        and _QUOTA.search(text) is not None
        and RETRY_IN.search(text) is None
    )


def all_text(error: BaseException) -> str:
    """Everything that ``error`` and what caused it say, the body of the response included."""
    found: list[str] = []
    for link in chain(error):
        found += [str(link), str(getattr(link, "body", None) or "")]
        found += [str(getattr(link, name, None) or "") for name in ("code", "type")]
    return "\n".join(found)


def network_error(error: BaseException) -> BaseException | None:
    """The failure of the connection behind ``error``; None if a response came."""
    import httpx

    for link in chain(error):
        if isinstance(link, httpx.HTTPStatusError):
            return None
        if isinstance(link, httpx.TransportError | ConnectionError):
            return link
    return None


def _timed_out(error: BaseException) -> bool:
    import httpx

    return isinstance(error, httpx.TimeoutException)


def chain(error: BaseException | None) -> Iterator[BaseException]:
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
