"""Cassettes: real model calls, recorded once and replayed for ever after."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from re import Pattern
from types import TracebackType
from typing import Literal, Self, TypeAlias

from agent_brain.states.models.interception import instead_of_real_calls
from agent_brain.testing.cassettes.errors import CassetteError, CassetteMismatchError
from agent_brain.testing.cassettes.form import read_calls, write_calls
from agent_brain.testing.cassettes.player import Match, Player
from agent_brain.testing.cassettes.recorder import Recorder

Mode: TypeAlias = Literal["record", "replay", "auto"]
Scrub: TypeAlias = Iterable[str | Pattern[str]]


class Cassette:
    """A recording of model calls, in a ``with`` block (sync, also inside async code).

    Inside, it stands in for every call of :class:`~agent_brain.LiteLLM` in this process, and for
    models wrapped by :class:`CassetteLLM`; scripted models are left alone. Made by :func:`record`,
    :func:`replay` and :func:`cassette`.

    Attributes:
        path: The file.
        mode: ``"record"`` or ``"replay"``; ``"auto"`` is decided when the block is entered.
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
            raise CassetteError(f"mode={mode!r}: a cassette is for 'record', 'replay' or 'auto'")
        if match not in ("strict", "request"):
            raise CassetteError(f"match={match!r}: requests are matched 'strict' or by 'request'")
        self.path = Path(path)
        self.mode: Mode = mode
        self._match: Match = match
        self._scrub = (scrub,) if isinstance(scrub, str | Pattern) else tuple(scrub)
        self._recorder: Recorder | None = None
        self._player: Player | None = None
        self._entered = ExitStack()
        self._keep = True

    def __enter__(self) -> Self:
        if self.mode == "auto":
            self.mode = "replay" if self.path.exists() else "record"
        if self.mode == "record":
            self._recorder = Recorder(self._scrub)
            self._entered.enter_context(instead_of_real_calls(self._recorder.answer))
        else:
            name = f"Cassette {self.path.name!r}"
            self._player = Player(name, read_calls(self.path), self._match, self._scrub)
            self._entered.enter_context(instead_of_real_calls(self._player.answer))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._entered.close()
        if self._recorder is not None and error is None and self._keep:
            write_calls(self.path, self._recorder.calls)

    def discard(self) -> None:
        """Do not write what is recorded, as if the block had raised."""
        self._keep = False

    def assert_complete(self) -> None:
        """Check that every recorded call was made again, and none was refused.

        Code under test may swallow the error of a refused call; here it counts all the same.
        While recording there is nothing to check.

        Raises:
            CassetteMismatchError: With what is left over, or was refused.
        """
        if self._player is None:
            return
        problems = [*self._player.problems]
        if unused := self._player.unused():
            problems.append(unused)
        if problems:
            raise CassetteMismatchError("\n".join(problems))


def record(path: str | os.PathLike[str], *, scrub: Scrub = ()) -> Cassette:
    """Make real calls inside the block, and write them to ``path`` at its end.

    A block that raises writes nothing, and an older file stays. API keys, ``Authorization``, the
    values of environment variables whose names look secret and of fields named like one are
    replaced by ``[hidden]``, in requests, answers and errors.

    Args:
        path: A JSON file; its folder is made if need be.
        scrub: Regular expressions of what else is not to be written. What changes from run to run,
            such as a date in a prompt, goes here too.
    """
    return Cassette(path, "record", scrub=scrub)


def replay(path: str | os.PathLike[str], *, match: Match = "strict", scrub: Scrub = ()) -> Cassette:
    """Answer calls inside the block from ``path``: no network and no key.

    A request that differs from the recorded one is refused, with what differs: the model, a
    message, the tools or their schemas, the shape of the answer. Ids are not compared, and how the
    text was cut into chunks is as it was.

    Args:
        path: The file.
        match: ``"strict"`` wants the same requests in the same order; ``"request"`` takes for each
            the first unused one that is the same, for calls that are made at once.
        scrub: As when it was recorded.

    Raises:
        CassetteFileError: On entering: no such file, or no cassette of a known version.
    """
    return Cassette(path, "replay", match=match, scrub=scrub)


def cassette(
    path: str | os.PathLike[str],
    mode: Mode = "auto",
    *,
    match: Match = "strict",
    scrub: Scrub = (),
) -> Cassette:
    """As :func:`record` or :func:`replay`; ``"auto"`` records where there is no file yet.

    Raises:
        CassetteError: No such mode, or no such way to match.
    """
    return Cassette(path, mode, match=match, scrub=scrub)
