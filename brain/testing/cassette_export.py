"""Cassettes made of recorded sessions."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.trace.model_calls import ModelCallRecord
from agent_brain.states.sent_request import data_of
from agent_brain.testing.cassette_format import CassetteError, RecordedCall, write_calls


def export_cassette(calls: Iterable[ModelCallRecord], path: str | os.PathLike[str]) -> Path:
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
    target, known = Path(path), [call for call in calls if call.purpose != EMBEDDING]
    if not known:
        raise CassetteError("There are no model calls: record the run with Brain(trace=True)")
    last = {(c.run_id, c.branch, c.path, c.move): c.part for c in known}
    kept = [c for c in known if last[c.run_id, c.branch, c.path, c.move] == c.part]
    write_calls(
        target,
        [
            RecordedCall(
                data_of(call),
                [*map(dict, call.response)],
                None if call.error is None else dict(call.error),
                left=call.cut,
            )
            for call in kept
        ],
    )
    return target
