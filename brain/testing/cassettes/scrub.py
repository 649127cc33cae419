"""Keeping secrets out of cassettes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agent_brain.tools.secrets import HIDDEN, is_secret_field, secret_spans, secret_values


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
        self._values = frozenset(secret_values(params or {}))
        self._patterns = tuple(re.compile(pattern) for pattern in patterns)

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Where the secrets in ``text`` begin and end, merged and in order."""
        return secret_spans(text, self._values, self._patterns)

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
                key: HIDDEN
                if isinstance(item, str) and is_secret_field(str(key))
                else self.data(item)
                for key, item in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        return value
