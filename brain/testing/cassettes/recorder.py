"""The recording side: lets real calls pass, and keeps what was asked and answered."""

from __future__ import annotations

from collections.abc import Iterable
from re import Pattern
from typing import Any

from agent_brain.states.aclosing import closing
from agent_brain.states.models.interception import Pieces, RealCall, send_for_real
from agent_brain.states.models.llm import Piece
from agent_brain.testing.cassettes.form import RecordedCall
from agent_brain.testing.cassettes.pieces import error_to_data, pieces_to_data
from agent_brain.testing.cassettes.requests import request_to_data
from agent_brain.testing.cassettes.scrub import Scrubber


class Recorder:
    """Answers real calls by making them; ``calls`` has them in the order in which they began."""

    def __init__(self, scrub: Iterable[str | Pattern[str]]) -> None:
        self.calls: list[RecordedCall] = []
        self._scrub = tuple(scrub)

    async def answer(self, call: RealCall) -> Pieces:
        """Make the call, streaming what comes, and note it however it ends."""
        params: Any = getattr(call.llm, "params", None)
        scrubber = Scrubber(self._scrub, params if isinstance(params, dict) else None)
        recorded = RecordedCall(request_to_data(call, scrubber), [], left=True)
        self.calls.append(recorded)
        streamed: list[Piece] = []
        try:
            async with closing(send_for_real(call)) as pieces:
                async for piece in pieces:
                    streamed.append(piece)
                    yield piece
            recorded.left = False
        except Exception as error:
            recorded.error, recorded.left = error_to_data(error, scrubber), False
            raise
        finally:
            recorded.pieces = pieces_to_data(streamed, scrubber)
