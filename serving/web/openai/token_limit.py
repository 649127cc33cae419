"""A limit on the tokens that a run writes."""

from __future__ import annotations

from agent_brain.common.text import count_tokens
from agent_brain.states.events import TextDelta, UsageReported


class TokenLimit:
    """Counts what the models of a run write, and cuts the text where the limit is reached.

    Text counts by an estimate while it arrives, and by what the model reports when its response
    has ended.

    Args:
        most: The limit; None for no limit.

    Attributes:
        most: The limit.
        reached: Whether the limit is reached: the run should be cancelled.
        cut: Whether text was left out.
        admitted: How many characters of text that is not a thought were admitted.
    """

    def __init__(self, most: int | None) -> None:
        self.reached = False
        self.cut = False
        self.admitted = 0
        self.most = most
        self._ended = 0  # tokens of responses that have ended
        self._arriving: dict[str | None, float] = {}

    def admit(self, event: TextDelta) -> str:
        """Return as much of the text as the limit allows."""
        text = self._allowed(event)
        self.admitted += 0 if event.thought else len(text)
        return text

    def _allowed(self, event: TextDelta) -> str:
        if self.most is None:
            return event.text
        if self.reached:
            self.cut = self.cut or bool(event.text)
            return ""
        text = event.text
        size = len(text) / 4 if text.isascii() else count_tokens(text)
        left = self.most - self._ended - sum(self._arriving.values())
        if size > left:
            text = text[: int(len(text) * left / size)]
            self.reached = self.cut = True
        known = self._arriving.get(event.response_id, 0.0)
        self._arriving[event.response_id] = known + size
        return text

    def report(self, event: UsageReported) -> None:
        """Count a response that has ended; a summary of the memory is not output."""
        if event.purpose is not None:
            return
        estimate = self._arriving.pop(event.response_id, 0.0)
        self._ended += event.usage.output_tokens or round(estimate)
        if self.most is not None and self._ended >= self.most:
            self.reached = True


class ReachedLimit(TokenLimit):
    """The limit of a response that has reached it: its text is cut at the same place again.

    Args:
        most: The limit.
        admitted: How many characters of text were admitted.
        cut: Whether text was left out.
    """

    def __init__(self, most: int | None, admitted: int, *, cut: bool) -> None:
        super().__init__(most)
        self.reached = True
        self.cut = cut
        self._length = admitted

    def _allowed(self, event: TextDelta) -> str:
        return event.text if event.thought else event.text[: self._length - self.admitted]
