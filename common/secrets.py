"""Find and hide secrets in text.

*Patterns* are the forms of keys, tokens and passwords, hidden in errors, logs and cassettes.
*Values* are the secrets that this process was configured with: models and MCP servers register
them, and they are hidden in the results of tools too.
"""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import accumulate
from typing import Any
from urllib.parse import quote, urlsplit

from agent_brain.common.errors import ToolDefinitionError

HIDDEN = "[hidden]"
SHORTEST = 8  # shorter values are placeholders: hiding them would hide ordinary words
_LOOKS_RANDOM = 16  # from this length on, a value of letters and digits is a secret of any name

_VARIABLE = re.compile(
    r"(?i)(?:key|token|secret|password|passwd|passphrase|credentials?|authorization|cookie)$"
    r"|(?:^|[-_])(?:auth|pass|pat|dsn)$|[-_]pwd$"
)
_PROVIDERS = "openai|azure|anthropic|google|gemini|mistral|cohere|groq|nvidia|aws|subscription"
_FIELD = re.compile(
    r"(?i)(?:^|[-_])(?:api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|token|secret"
    r"|password|passwd|passphrase|credentials?|authorization|cookie)$|^apikey$"
    rf"|(?:^|[-_])(?:{_PROVIDERS})[-_]?key$|^(?-i:[A-Z][A-Z0-9_]*_KEY)$"
)
_PLAIN_HEADER = re.compile(r"(?i)^(accept.*|content-.*|user-agent|host|connection|cache-control)$")
_SCHEME = re.compile(r"(?i)^(?:bearer|basic|token)\s+")

_IS = r"[\"']?\s{0,4}[:=]\s{0,4}[\"']?"
_NOTHING = r"(?!(?:none|null|nil|true|false|undefined)\b|\[hidden\])"
_WORD = rf"{_NOTHING}[^\s\"',;&}}]{{4,}}"
_LONG_WORD = rf"{_NOTHING}[^\s\"',;&}}]{{8,}}"
_PAIR = r"[\w.$-]{1,100}=[^\s;\"']{1,4096}"  # of a cookie
_ODD = r"(?=[^\s\"',;&}]{0,200}\d)"  # words of a sentence have no digits
_STRONG = (
    r"api[-_]?key|access[-_]?key(?:[-_]?id)?|secret[-_]?key|private[-_]?key|secret[-_]?access[-_]?key"
    r"|account[-_]?key|client[-_]?secret|\w[-_]secret|(?:access|auth|refresh|session|id|bot)[-_]?token"
    r"|password|passwd"
)
_WEAK = "token|secret|pwd|passphrase"
_DIGIT = r"(?=[A-Za-z_-]{0,64}\d)"  # names of packages and models have few
_HEX = "[0-9a-f]"
_BEGIN = "-----BEGIN [A-Z0-9 ]{0,40}"
_PATTERNS = (
    rf"{_BEGIN}PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]{{0,40}}-----|\Z)",
    r"\bsk-(?!learn)[\w-]{8,}",  # OpenAI, Anthropic and others
    r"\b(?:sk|rk|pk)_(?:live|test)_\w{8,}|\bwhsec_\w{16,}",  # Stripe
    r"\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}",
    r"\bgl(?:pat|rt|dt|cbt|ptt|ft|soat|oas|agent)-[\w-]{16,}",  # GitLab
    rf"\b(?:xai|pplx|csk)-{_DIGIT}[A-Za-z0-9]{{16,}}",  # xAI, Perplexity, Cerebras
    rf"\b(?:nvapi|tvly|sq0[a-z]{{3}}|GOCSPX|NRAK|PMAK)-{_DIGIT}[\w-]{{16,}}",
    rf"\b(?:tgp_v1|jina|pcsk|lsv2_[a-z]{{2}}|ntn|lin_api|figd)_{_DIGIT}[\w=-]{{16,}}",
    rf"\b(?:pscale_[a-z]{{2,5}}|glsa|glc|sntry[su]|dckr_pat)_{_DIGIT}[\w=-]{{16,}}",
    rf"\bfw_{_DIGIT}[A-Za-z0-9]{{16,}}",  # Fireworks
    rf"\b(?:sk|e2b|sbp|rubygems|do[opr]_v1|shp(?:at|ca|pa|ss))_{_HEX}{{32,}}",
    rf"\b(?:dapi|SK|fc-|key-){_HEX}{{32}}\b|\b{_HEX}{{32}}-us\d{{1,2}}\b",  # Databricks, Twilio …
    rf"\bpa-{_DIGIT}[\w-]{{40,}}|\bATATT3[\w=-]{{32,}}|\bAGE-SECRET-KEY-1[0-9A-Z]{{32,}}",
    r"\bSG\.[\w-]{16,}\.[\w-]{16,}",  # SendGrid
    rf"\bhvs\.{_DIGIT}[\w-]{{24,}}|\bpat\w{{14}}\.{_HEX}{{64}}",  # Vault, Airtable
    r"\b\d{8,10}:AA[\w-]{32,}|\b[MNO][\w-]{22,27}\.[\w-]{6}\.[\w-]{27,}",  # Telegram, Discord
    r"\bxox[abeprs]-[\w-]{8,}|\bxapp-[\w-]{8,}",  # Slack
    r"(?<=hooks\.slack\.com/services/)[\w/]{8,}",
    r"\bA(?:KIA|SIA)[0-9A-Z]{12,}",  # AWS
    r"\bAIza[\w-]{20,}|\bya29\.[\w-]{10,}",  # Google
    r"\b(?:hf|npm|r8|gsk)_\w{16,}|\bpypi-[\w-]{16,}",  # Hugging Face and other hubs
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # JSON web tokens
    r"(?i)(?<=\bbearer )(?:[^\s\"',;]{12,}|(?=[^\s\"',;]{0,12}\d)[^\s\"',;]{4,})",
    r"(?i)(?<=\bbasic )[\w+/]{8,}={0,2}(?![\w+/=-])(?<=[A-Z0-9+/=])",
    rf"(?i)\bauthorization{_IS}(?P<secret>(?:(?:bearer|basic|token)\s+)?[^\s\"',;]+)",
    rf"(?i)(?:{_STRONG}){_IS}(?P<secret>{_WORD})",
    rf"(?i)(?<![a-z])(?:{_WEAK})(?:=|[\"']\s{{0,4}}[:=]\s{{0,4}})[\"']?(?P<secret>{_WORD})",
    rf"(?i)(?<![a-z])(?:{_WEAK}):\s{{0,4}}(?P<secret>{_ODD}{_WORD})",
    rf"\b[A-Z][A-Z0-9_]{{0,80}}_(?:KEY|PASS|PAT)\b{_IS}(?P<secret>{_ODD}{_LONG_WORD})",
    rf"(?i)\b(?:{_PROVIDERS})[-_]?key{_IS}(?P<secret>{_ODD}{_LONG_WORD})",
    rf"(?i)\bcookie[\"']?\s{{0,4}}[:=]\s{{0,4}}[\"']?(?P<secret>{_PAIR}(?:;\s{{0,4}}{_PAIR}){{0,100}})",
    rf"(?i)\b(?:PHPSESSID|JSESSIONID|connect\.sid|sessionid|csrftoken)=(?P<secret>{_ODD}{_LONG_WORD})",
    rf"(?i)(?<=\s)--(?:password|passwd|token|api-?key|secret)[ =](?P<secret>{_ODD}{_WORD})",
    r"(?<=\s)(?:-u|--user)[ =][^\s:]{1,100}:(?P<secret>[^\s:/]{4,})(?=\s|\Z)",
    rf"(?<=://)(?P<secret>{_DIGIT}[\w-]{{20,200}})(?=@)",
    r"(?<=[?&])(?:key|sig|signature|X-Amz-Signature|token)=(?P<secret>[^\s\"'&#]{4,})",
    r"(?<=://)[^\s/:@]{0,200}:(?P<secret>[^\s/@]{1,200})(?=@)",
)

_environment: Mapping[Any, Any] = {}  # when it was last read
_in_environment: frozenset[str] = frozenset()  # values of its variables that are named as secret
_values: tuple[str, ...] = ()  # registered, longest first, in each of their written forms


def register_secret(value: str) -> None:
    """Hide ``value`` wherever this library shows text: results of tools, errors, logs.

    It is kept in memory until the process ends.

    Raises:
        ToolDefinitionError: It is not text, as for an environment variable that is not set.
        ValueError: It has fewer than 8 characters: hiding it would hide ordinary words.
    """
    if not isinstance(value, str):
        raise ToolDefinitionError(
            f"register_secret({value!r}): a secret is text; is the environment variable set?"
        )
    if len(value) < SHORTEST:
        raise ValueError(f"a secret must have at least {SHORTEST} characters to be hidden in text")
    register_secrets([value])


def register_secrets(values: Iterable[str]) -> None:
    """Register each of ``values`` like :func:`register_secret`; short ones are ignored."""
    global _values  # noqa: PLW0603 - one registry for the process
    found = set(_values)
    for value in values:
        # as such, in JSON, and in a URL
        in_json = (json.dumps(value, ensure_ascii=plain)[1:-1] for plain in (True, False))
        forms = (value, value.strip(), *in_json, quote(value, safe=""))
        found.update(form for form in forms if len(form) >= SHORTEST)
    if len(found) > len(_values):
        _values = tuple(sorted(found, key=lambda form: (-len(form), form)))


def hide_in_result(text: str, *, is_error: bool = False) -> str:
    """Return a text of a tool as a model and others may read it; the same object if it is clean.

    A result loses configured secrets only, as it may be the purpose of a tool to return something
    that looks like one; an error loses what looks like a secret too.
    """
    if is_error:
        return scrub(text)
    _read_environment()
    for value in _values:
        if value in text:
            text = text.replace(value, HIDDEN)
    return text


def scrub(text: str, secrets: Iterable[str] = ()) -> str:
    """Return ``text`` without registered secrets, those in the environment, and patterns."""
    kept, at = [], 0
    for start, end in secret_spans(text, secrets):
        kept += [text[at:start], HIDDEN]
        at = end
    return "".join([*kept, text[at:]]) if kept else text


def secret_spans(
    text: str, secrets: Iterable[str] = (), patterns: Iterable[re.Pattern[str]] = ()
) -> list[tuple[int, int]]:
    """Return where the secrets in ``text`` begin and end, merged and in order."""
    _read_environment()
    values = {*_values, *_in_environment, *(s for s in secrets if len(s) >= SHORTEST)}
    present = [re.escape(value) for value in values if value in text]
    known = [re.compile("|".join(sorted(present, key=len, reverse=True)))] if present else []
    found = sorted(
        match.span("secret" if "secret" in pattern.groupindex else 0)
        for pattern in (*known, *_patterns(), *patterns)
        for match in pattern.finditer(text)
    )
    merged: list[tuple[int, int]] = []
    for start, end in found:
        if start == end or text[start:end] == HIDDEN:
            continue
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, _PATTERNS))


def is_secret_field(name: str) -> bool:
    """Return whether a field of this name holds a secret; ``"key"`` alone does not say so."""
    return _FIELD.search(name) is not None


def _read_environment() -> None:
    """Read the secrets of the environment, if it has changed since the last time.

    A value that was there stays registered: what has used it may show it later.
    """
    global _environment, _in_environment  # noqa: PLW0603 - one environment of the process
    now = getattr(os.environ, "_data", os.environ)  # as bytes: comparing it takes a microsecond
    if now != _environment:
        _environment = dict(now)
        named = {name: value for name, value in os.environ.items() if _VARIABLE.search(name)}
        _in_environment = frozenset(value for value in named.values() if len(value) >= SHORTEST)
        register_secrets(configured_secrets(named))


def secret_values(params: Mapping[str, Any], *, inside: bool = False) -> Iterator[str]:
    """Yield the values in ``params`` that are secret by their names, and all headers."""
    for name, value in params.items():
        secret = inside or is_secret_field(str(name))
        if isinstance(value, Mapping):
            yield from secret_values(value, inside=secret or str(name).endswith("headers"))
        elif secret and isinstance(value, str):
            yield from {value, _SCHEME.sub("", value)}


def configured_secrets(settings: Mapping[str, str]) -> Iterator[str]:
    """Yield the values of environment variables or headers that are certainly secret.

    A variable may hold a folder or a model's name as well as a password. Secret are values whose
    name says so, long values of letters and digits, and passwords in URLs.
    """
    for name, value in settings.items():
        bare = _SCHEME.sub("", value)
        if "://" in value:
            with suppress(ValueError):
                yield from filter(None, [urlsplit(value).password])
        elif bare != value or _looks_random(name, value) or _VARIABLE.search(name):
            if not value.startswith(("/", "./", "~/")):  # the place of a key, not the key
                yield from (value, bare)


def model_secrets(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the keys of a model: in its parameters, its headers and the environment."""
    for name, value in params.items():
        if isinstance(value, str) and is_secret_field(name):
            yield value
        elif isinstance(value, Mapping) and name.endswith("headers"):
            yield from configured_secrets({k: v for k, v in value.items() if isinstance(v, str)})
    yield from configured_secrets({k: v for k, v in os.environ.items() if _VARIABLE.search(k)})


def _looks_random(name: str, value: str) -> bool:
    return (
        len(value) >= _LOOKS_RANDOM
        and not _PLAIN_HEADER.match(name)
        and re.fullmatch(r"(?=.*\d)(?=.*[A-Za-z])[\w.~+=-]+", value) is not None
    )


class Scrubber:
    """Replaces secrets in texts and data by ``[hidden]``.

    Args:
        patterns: Regular expressions of further secrets; of one with a group named ``secret`` only
            that group is replaced.
        params: Parameters of a model: keys, tokens and all headers among them are secret.
    """

    def __init__(
        self,
        patterns: Iterable[str | re.Pattern[str]] = (),
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self._values = frozenset(secret_values(params or {}))
        self._patterns = tuple(re.compile(pattern) for pattern in patterns)

    def text(self, text: str) -> str:
        """Return ``text`` without secrets."""
        return self.chunks([text])[0]

    def chunks(self, chunks: Sequence[str]) -> list[str]:
        """Return the chunks of one text without the secrets in them, or cut across them."""
        text = "".join(chunks)
        spans = secret_spans(text, self._values, self._patterns)
        if not spans:
            return list(chunks)
        kept = list(text)
        for start, stop in spans:
            kept[start:stop] = [HIDDEN, *[""] * (stop - start - 1)]
        ends = accumulate(map(len, chunks))
        return [
            "".join(kept[end - len(chunk) : end]) for chunk, end in zip(chunks, ends, strict=True)
        ]

    def data(self, value: Any) -> Any:
        """Return JSON values without secrets: those in texts, and fields named like one."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {
            key: HIDDEN if isinstance(item, str) and is_secret_field(str(key)) else self.data(item)
            for key, item in value.items()
        }


class SecretFilter(logging.Filter):
    """Hides secrets in log records: in the message, its arguments and the traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the record if it contains a secret; never drops one."""
        try:
            message = record.getMessage()
        except (TypeError, ValueError):  # reported by the handler
            return True
        clean = scrub(message)
        if clean != message:
            record.msg, record.args = clean, ()
        if record.exc_info and record.exc_info[0] is not None:
            text = record.exc_text or logging.Formatter().formatException(record.exc_info)
            if (hidden := scrub(text)) != text:
                record.exc_text, record.exc_info = hidden, None  # formatters use the cached text
        return True


def get_logger(name: str) -> logging.Logger:
    """Return the logger of a module of this library: its records contain no secrets."""
    logger = logging.getLogger(name)
    if not any(isinstance(known, SecretFilter) for known in logger.filters):
        logger.addFilter(SecretFilter())
    return logger
