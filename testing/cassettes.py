"""Cassettes: model calls that are recorded once and replayed without a network."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from re import Pattern
from typing import Any, Literal, Self, TypeAlias

from agent_brain.common.errors import AgentBrainError
from agent_brain.common.files import replace_file
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.recording.run import without_repeated
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.model_trace import CallInProgress
from agent_brain.states.models.call_data import (
    RequestReader,
    describe_request,
    explain_request,
    piece_from_data,
    play,
    request_to_data,
    similarity,
    with_hash,
)
from agent_brain.states.models.interception import (
    Pieces,
    Send,
    instead_of_real_calls,
    send_for_real,
)
from agent_brain.states.work import closing

FORMAT = "agent-brain-cassette"
VERSION = 2


class CassetteError(AgentBrainError):
    """Base class for the errors of cassettes."""


class CassetteFileError(CassetteError, ValueError):
    """Raised when a file is missing, is not a cassette, or has an unknown version."""


class CassetteMismatchError(CassetteError, AssertionError):
    """Raised when the calls that are made differ from those that were recorded."""


def write_calls(path: Path, calls: Iterable[RecordedCall]) -> None:
    """Write the file atomically, creating its folder.

    Raises:
        FileExistsError: It is a database.
    """
    data = {"format": FORMAT, "version": VERSION, "calls": [*map(_call_to_data, calls)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n", mode=0o644)


def read_calls(path: Path) -> list[RecordedCall]:
    """Return the calls in the file.

    Raises:
        CassetteFileError: It is missing, not a cassette, or of another version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CassetteFileError(f"There is no cassette {str(path)!r}: record it first") from None
    except (OSError, ValueError) as error:
        raise CassetteFileError(f"The cassette {str(path)!r} cannot be read: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CassetteFileError(f"{str(path)!r} is not a cassette of Agent Brain")
    if data.get("version") != VERSION:
        raise CassetteFileError(
            f"The cassette {str(path)!r} has version {data.get('version')!r}, but this release "
            f"reads version {VERSION}: record it again"
        )
    try:
        return [*map(_call_from_data, data["calls"])]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CassetteFileError(f"The cassette {str(path)!r} is damaged: {error!r}") from error


def _call_to_data(call: RecordedCall) -> dict[str, Any]:
    """Return the fields of a call without what differs from run to run, such as IDs and times."""
    kept = {"error", "cut"}
    ended = call.model_dump(mode="json", include=kept, exclude_defaults=True)
    return {**request_to_data(call), "response": [*call.response], **ended}


def _call_from_data(data: dict[str, Any]) -> RecordedCall:
    call = RecordedCall.model_validate({**data, "response": data["response"]})
    for piece in call.response:
        piece_from_data(piece)
    return with_hash(call)


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
        self._reader = RequestReader((scrub,) if isinstance(scrub, str | Pattern) else scrub)
        self._recorded: list[CallInProgress] = []  # in the order in which calls begin
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
            write_calls(self.path, [call.recorded() for call in self._recorded])

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

    async def _record(self, request: ModelRequest, send: Send) -> Pieces:
        made = CallInProgress(self._reader.read(request), self._reader.scrubber_of(request.llm))
        self._recorded.append(made)
        async with closing(made.through(send_for_real(request, send))) as pieces:
            async for piece in pieces:
                yield piece

    async def _replay(self, request: ModelRequest, _: Send) -> Pieces:
        assert self._player is not None
        recorded = self._player.take(self._reader.read(request))
        async with closing(play(recorded)) as pieces:
            async for piece in pieces:
                yield piece
        if recorded.cut:
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

    def take(self, made: RecordedCall) -> RecordedCall:
        """Return the recorded call for a request.

        Raises:
            CassetteMismatchError: There is none.
        """
        for index in self._unused[:1] if self._match == "strict" else self._unused:
            if self._calls[index].request_hash == made.request_hash:
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
        rest = [f"  {n + 1}. {describe_request(self._calls[n])}" for n in self._unused]
        title = f"{self._name} has {len(self._calls)} calls, and {len(rest)} of them were not made:"
        return [*self._refused, "\n".join([title, *rest])]

    def _why_not(self, made: RecordedCall) -> str:
        count, asked = len(self._calls), describe_request(made)
        if not self._unused:
            return f"All {count} recorded calls are used, but another call was made: {asked}"
        nearest, which = self._unused[0], ""
        if self._match == "request":
            same = sum(call.request_hash == made.request_hash for call in self._calls)
            if same:
                times = f"{same} times" if same > 1 else "once"
                return f"This request was recorded {times} and is made once more: {asked}"
            nearest = max(self._unused, key=lambda n: similarity(self._calls[n], made))
            which = "the most similar one, "
        return (
            f"The request differs from {which}call {nearest + 1} of {count} "
            f"(- recorded, + now):\n{explain_request(self._calls[nearest], made)}"
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
    path: str | os.PathLike[str], mode: Mode = "auto", *, match: Match = "strict", scrub: Scrub = ()
) -> Cassette:
    """Like :func:`record` or :func:`replay`; ``"auto"`` records if there is no file yet.

    Raises:
        CassetteError: ``mode`` or ``match`` is unknown.
    """
    return Cassette(path, mode, match=match, scrub=scrub)


def export_cassette(calls: Iterable[RecordedCall], path: str | os.PathLike[str]) -> Path:
    """Write a cassette from the model calls of a session, for :func:`replay`.

    A run that makes the same requests gets the recorded responses::

        export_cassette(await memory.model_calls(run_id=…), "tests/cassettes/trip.json")

    Calls of steps that were interrupted and run again are left out.

    Args:
        calls: The calls, as ``await memory.model_calls()`` returns them.
        path: The file; it is replaced if it exists.

    Returns:
        The path.

    Raises:
        CassetteError: There are no calls: the run was not traced.
    """
    target, known = Path(path), [c for c in without_repeated(calls) if c.action is None]
    if not known:
        raise CassetteError("There are no model calls: record the run with Brain(trace=True)")
    write_calls(target, known)
    return target
