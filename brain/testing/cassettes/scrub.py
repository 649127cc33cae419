"""Keeping secrets out of cassettes."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

HIDDEN = "[hidden]"

_SHORTEST = 8
"""Shorter values count as placeholders: hiding them would hide ordinary words."""

_VARIABLE = re.compile(r"(?i)(key|token|secret|password|passwd|pwd|credentials?|auth)$")
_FIELD = re.compile(
    r"(?i)(^|[-_])(api[-_]?key|access[-_]?key|secret[-_]?key|private[-_]?key|token|secret|password"
    r"|passwd|credentials?|authorization|cookie)$|^(apikey|x-api-key)$"
)
_IS = r"[\"']?\s*[:=]\s*[\"']?"
_WORD = r"[^\s\"',;&}]{4,}"
_TEXTS = tuple(
    re.compile(pattern)
    for pattern in (
        r"\bsk-[\w-]{8,}",  # OpenAI, Anthropic and others
        r"\bgh[pousr]_\w{16,}|\bgithub_pat_\w{16,}",
        r"\bxox[abeprs]-[\w-]{8,}",  # Slack
        r"\bA(?:KIA|SIA)[0-9A-Z]{12,}",  # AWS
        r"\bAIza[\w-]{20,}",  # Google
        r"\bhf_\w{16,}",
        r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*",  # JSON web tokens
        r"(?i)(?<=\bbearer )[^\s\"',;]{4,}",
        r"(?i)(?<=\bbasic )[\w+/]{8,}={0,2}",
        rf"(?i)\bauthorization{_IS}(?P<secret>(?:(?:bearer|basic|token)\s+)?[^\s\"',;]+)",
        rf"(?i)\b(?:[\w-]*[-_])?(?:api[-_]?key|password){_IS}(?P<secret>{_WORD})",
        rf"(?i)\b\w+[-_]secret{_IS}(?P<secret>{_WORD})",
        rf"(?i)\b(?:access|auth|refresh)[-_]?token{_IS}(?P<secret>{_WORD})",
        r"(?<=://)[^\s/:@]+:(?P<secret>[^\s/@]+)(?=@)",
    )
)


class Scrubber:
    """Finds secrets in texts and in data, and replaces them by ``[hidden]``.

    Args:
        patterns: Regular expressions of what else is not to be written; of one with a group named
            ``secret`` only that group.
        params: Parameters of a model: keys, tokens and all headers among them are secret.
    """

    def __init__(
        self,
        patterns: Iterable[str | re.Pattern[str]] = (),
        params: Mapping[str, Any] | None = None,
    ) -> None:
        values = {v for name, v in os.environ.items() if _VARIABLE.search(name)}
        values |= set(_secret_values(params or {}, inside=False))
        whole = sorted((v for v in values if len(v) >= _SHORTEST), key=len, reverse=True)
        known = (re.compile("|".join(map(re.escape, whole))),) if whole else ()
        self._patterns = (*known, *_TEXTS, *(re.compile(pattern) for pattern in patterns))

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the secrets in ``text`` begin and end, merged and in order."""
        found = sorted(
            match.span("secret" if "secret" in pattern.groupindex else 0)
            for pattern in self._patterns
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

    def text(self, text: str) -> str:
        """``text`` without secrets."""
        return "".join(self.chunks([text]))

    def chunks(self, chunks: Sequence[str]) -> list[str]:
        """The pieces of one text, without the secrets that lie in them or across them."""
        spans, result, offset = self.spans("".join(chunks)), [], 0
        for chunk in chunks:
            end, kept, at = offset + len(chunk), [], offset
            for start, stop in spans:
                if stop <= offset or start >= end:
                    continue
                kept.append(chunk[at - offset : max(start, at) - offset])
                if start >= offset:
                    kept.append(HIDDEN)
                at = min(stop, end)
            result.append("".join(kept) + chunk[at - offset :])
            offset = end
        return result

    def data(self, value: Any) -> Any:
        """JSON values without secrets: text is searched, and fields named like one are hidden."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                key: HIDDEN if isinstance(item, str) and _FIELD.search(key) else self.data(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return value


def _secret_values(params: Mapping[str, Any], *, inside: bool) -> Iterable[str]:
    for name, value in params.items():
        secret = inside or _FIELD.search(str(name)) is not None
        if isinstance(value, Mapping):
            yield from _secret_values(value, inside=secret or str(name).endswith("headers"))
        elif secret and isinstance(value, str):
            yield value
            yield value.removeprefix("Bearer ")
