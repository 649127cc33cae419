"""The replaying side: answers from the file, and refuses what was not recorded."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from re import Pattern
from typing import Any, Literal, TypeAlias

from agent_brain.states.models.interception import Pieces, RealCall
from agent_brain.testing.cassettes.errors import CassetteMismatchError
from agent_brain.testing.cassettes.form import RecordedCall
from agent_brain.testing.cassettes.pieces import error_from_data, piece_from_data
from agent_brain.testing.cassettes.refusal import explain_request
from agent_brain.testing.cassettes.requests import described, request_to_data
from agent_brain.testing.cassettes.scrub import Scrubber
from agent_brain.tools.text import to_compact_json

Match: TypeAlias = Literal["strict", "request"]


class Player:
    """Answers calls from ``calls``: in their order, or each by the first that asks for the same.

    Attributes:
        problems: Why calls were refused.
    """

    def __init__(
        self,
        name: str,
        calls: Sequence[RecordedCall],
        match: Match,
        scrub: Iterable[str | Pattern[str]],
    ) -> None:
        self.problems: list[str] = []
        self._name = name
        self._calls = calls
        self._match = match
        self._scrub = tuple(scrub)
        self._left = list(range(len(calls)))

    async def answer(self, call: RealCall) -> Pieces:
        """Stream what was recorded for this request.

        Raises:
            CassetteMismatchError: Nothing was, or the caller wants more than was recorded.
        """
        recorded = self._take(call)
        for piece in recorded.pieces:
            yield piece_from_data(piece)
        if recorded.error is not None:
            raise error_from_data(recorded.error)
        if recorded.left:
            raise self._refused(
                "The recorded call was left before its answer was complete, and now the caller "
                "waits for more than the cassette has"
            )

    def unused(self) -> str | None:
        """What was recorded and not asked for, or None."""
        if not self._left:
            return None
        rest = [f"  {n + 1}. {described(self._calls[n].request['messages'])}" for n in self._left]
        return (
            f"{self._name} has {len(self._calls)} calls, and {len(rest)} of them were not "
            "made again:\n" + "\n".join(rest)
        )

    def _take(self, call: RealCall) -> RecordedCall:
        params: Any = getattr(call.llm, "params", None)
        scrubber = Scrubber(self._scrub, params if isinstance(params, dict) else None)
        made = request_to_data(call, scrubber)
        candidates = self._left[:1] if self._match == "strict" else self._left
        for index in candidates:
            if self._calls[index].request == made:
                self._left.remove(index)
                return self._calls[index]
        raise self._refused(self._why_not(made))

    def _why_not(self, made: dict[str, Any]) -> str:
        count = len(self._calls)
        asked = described(made["messages"])
        if not self._left:
            return f"One call more than the {count} that were recorded was made: {asked}"
        if self._match == "strict":
            nearest = self._left[0]
        else:
            same = [n + 1 for n, call in enumerate(self._calls) if call.request == made]
            if same:
                times = f"{len(same)} times" if len(same) > 1 else "once"
                return f"This request was recorded {times}, and is now made once more: {asked}"
            nearest = max(self._left, key=lambda n: _likeness(self._calls[n].request, made))
        difference = explain_request(self._calls[nearest].request, made)
        which = "" if self._match == "strict" else "the most similar one, "
        return (
            f"The request differs from {which}call {nearest + 1} of {count} "
            f"(- recorded, + now):\n{difference}"
        )

    def _refused(self, problem: str) -> CassetteMismatchError:
        self.problems.append(problem)
        return CassetteMismatchError(
            f"{self._name}: {problem}\nIf the change is meant, record the cassette again"
        )


def _likeness(one: dict[str, Any], other: dict[str, Any]) -> float:
    texts = (to_compact_json(one), to_compact_json(other))
    return difflib.SequenceMatcher(None, *texts, autojunk=False).quick_ratio()
