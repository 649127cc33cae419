"""Cassettes: model calls that are recorded once and replayed without a network."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from re import Pattern
from typing import Any, Literal, Self, TypeAlias

from agent_brain.states.aclosing import closing
from agent_brain.states.models.call_data import error_from_data, error_to_data, pieces_to_data
from agent_brain.states.models.interception import (
    Pieces,
    RealCall,
    instead_of_real_calls,
    send_for_real,
)
from agent_brain.states.models.llm import Piece
from agent_brain.states.request_diff import describe_request, explain_request, similarity
from agent_brain.testing.cassette_format import (
    CassetteError,
    CassetteMismatchError,
    RecordedCall,
    piece_from_data,
    read_calls,
    request_to_data,
    write_calls,
)
from agent_brain.tools.scrubber import Scrubber

Mode: TypeAlias = Literal["record", "replay", "auto"]
Match: TypeAlias = Literal["strict", "request"]
Scrub: TypeAlias = Iterable[str | Pattern[str]]


class Cassette:
    """A recording of model calls, used as a sync ``with`` block, also in async code.

    For example::

        with replay("tests/cassettes/answer.json") as tape:
            await brain.run("What is the answer?")
        tape.assert_complete()

    Inside the block it handles every call of :class:`~agent_brain.LiteLLM` in this process, and of
    models wrapped in :class:`CassetteLLM`; scripted models are not affected. Made by
    :func:`record`, :func:`replay` and :func:`cassette`.

    Attributes:
        path: The file.
        mode: ``"record"`` or ``"replay"``; ``"auto"`` is resolved when the block is entered.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: Mode,
        *,
        match: Match = "strict",
        scrub: Scrub = (),
    ) -> None:
        if mode not in ("record", "replay", "auto"):
            raise CassetteError(f"mode={mode!r}: it must be 'record', 'replay' or 'auto'")
        if match not in ("strict", "request"):
            raise CassetteError(f"match={match!r}: it must be 'strict' or 'request'")
        self.path = Path(path)
        self.mode: Mode = mode
        self._match: Match = match
        self._scrub = (scrub,) if isinstance(scrub, str | Pattern) else tuple(scrub)
        self._recorded: list[RecordedCall] = []
        self._player: _Player | None = None
        self._entered = ExitStack()
        self._keep = True

    def __enter__(self) -> Self:
        if self.mode == "auto":
            self.mode = "replay" if self.path.exists() else "record"
        if self.mode == "replay":
            name = f"Cassette {self.path.name!r}"
            self._player = _Player(name, read_calls(self.path), self._match)
        answer = self._record if self._player is None else self._replay
        self._entered.enter_context(instead_of_real_calls(answer))
        return self

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self._entered.close()
        if self._player is None and error is None and self._keep:
            write_calls(self.path, self._recorded)

    def discard(self) -> None:
        """Do not write the recording, as if the block had raised."""
        self._keep = False

    def assert_complete(self) -> None:
        """Check that every recorded call was made again and no call was refused.

        A refused call counts even if the code under test swallowed its error. While recording,
        nothing is checked.

        Raises:
            CassetteMismatchError: Recorded calls were not made, or calls were refused.
        """
        if self._player is not None and (problems := self._player.problems()):
            raise CassetteMismatchError("\n".join(problems))

    def _request(self, call: RealCall) -> tuple[dict[str, Any], Scrubber]:
        params: Any = getattr(call.llm, "params", None)
        scrubber = Scrubber(self._scrub, params if isinstance(params, dict) else None)
        return request_to_data(call, scrubber), scrubber

    async def _record(self, call: RealCall) -> Pieces:
        request, scrubber = self._request(call)
        recorded = RecordedCall(request, [], left=True)
        self._recorded.append(recorded)  # in the order in which calls begin
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

    async def _replay(self, call: RealCall) -> Pieces:
        assert self._player is not None
        recorded = self._player.take(self._request(call)[0])
        for piece in recorded.pieces:
            yield piece_from_data(piece)
        if recorded.error is not None:
            raise error_from_data(recorded.error)
        if recorded.left:
            raise self._player.refuse(
                "The recorded call was left before its answer was complete, but now the caller "
                "reads further than what was recorded"
            )


class _Player:
    """The recorded calls, each to be used once."""

    def __init__(self, name: str, calls: Sequence[RecordedCall], match: Match) -> None:
        self._name = name
        self._calls = calls
        self._match = match
        self._unused = list(range(len(calls)))
        self._refused: list[str] = []

    def take(self, made: dict[str, Any]) -> RecordedCall:
        """Return the recorded call for a request.

        Raises:
            CassetteMismatchError: There is none.
        """
        for index in self._unused[:1] if self._match == "strict" else self._unused:
            if self._calls[index].request == made:
                self._unused.remove(index)
                return self._calls[index]
        raise self.refuse(self._why_not(made))

    def refuse(self, problem: str) -> CassetteMismatchError:
        """Note a problem and return its error."""
        self._refused.append(problem)
        return CassetteMismatchError(
            f"{self._name}: {problem}\nIf the change is intended, record the cassette again"
        )

    def problems(self) -> list[str]:
        """Return why calls were refused, and which recorded calls were not made."""
        if not self._unused:
            return self._refused
        rest = [f"  {n + 1}. {describe_request(self._calls[n].request)}" for n in self._unused]
        title = f"{self._name} has {len(self._calls)} calls, and {len(rest)} of them were not made:"
        return [*self._refused, "\n".join([title, *rest])]

    def _why_not(self, made: dict[str, Any]) -> str:
        count, asked = len(self._calls), describe_request(made)
        if not self._unused:
            return f"All {count} recorded calls are used, but another call was made: {asked}"
        nearest, which = self._unused[0], ""
        if self._match == "request":
            same = sum(call.request == made for call in self._calls)
            if same:
                times = f"{same} times" if same > 1 else "once"
                return f"This request was recorded {times} and is made once more: {asked}"
            nearest = max(self._unused, key=lambda n: similarity(self._calls[n].request, made))
            which = "the most similar one, "
        return (
            f"The request differs from {which}call {nearest + 1} of {count} "
            f"(- recorded, + now):\n{explain_request(self._calls[nearest].request, made)}"
        )


def record(path: str | os.PathLike[str], *, scrub: Scrub = ()) -> Cassette:
    """Make real calls inside the block and write them to ``path`` at its end.

    A block that raises writes nothing and keeps an older file. API keys, ``Authorization``, values
    of environment variables with secret-looking names, and fields named like a secret are replaced
    by ``[hidden]`` in requests, answers and errors.

    Args:
        path: A JSON file; its folder is created.
        scrub: Regular expressions of further secrets, and of what changes between runs, such as a
            date in a prompt.
    """
    return Cassette(path, "record", scrub=scrub)


def replay(path: str | os.PathLike[str], *, match: Match = "strict", scrub: Scrub = ()) -> Cassette:
    """Answer calls inside the block from ``path``, without a network or a key.

    A request that differs from the recorded one in its model, messages, tools or output schema is
    refused with an error that shows the difference. IDs are not compared. Chunks are the same as
    when recorded.

    Args:
        path: The file.
        match: ``"strict"`` expects the same requests in the same order; ``"request"`` answers each
            with the first unused equal one, for calls that run concurrently.
        scrub: The expressions it was recorded with.

    Raises:
        CassetteFileError: On entering: there is no such file, or it is not a known cassette.
    """
    return Cassette(path, "replay", match=match, scrub=scrub)


def cassette(
    path: str | os.PathLike[str],
    mode: Mode = "auto",
    *,
    match: Match = "strict",
    scrub: Scrub = (),
) -> Cassette:
    """Like :func:`record` or :func:`replay`; ``"auto"`` records if there is no file yet.

    Raises:
        CassetteError: ``mode`` or ``match`` is unknown.
    """
    return Cassette(path, mode, match=match, scrub=scrub)
