"""Replace secrets in texts and data that are stored."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any

from agent_brain.common.secrets import HIDDEN, is_secret_field, secret_spans, secret_values


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
