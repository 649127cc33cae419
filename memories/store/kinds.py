"""The kinds of journal entries that memories write, and their versions.

An entry of another version is refused. Whoever changes the form of a kind, or a default that its
entries leave out, raises its version here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pydantic import JsonValue

from agent_brain.memories.journal.entry import Entry, Rows
from agent_brain.memories.store.log import unreadable

VERSIONS: Mapping[str, int] = MappingProxyType(
    {
        "part": 1,  # a message that is not the last of its update
        "message": 1,
        "goal": 1,  # which message is the goal
        "delete": 1,
        "forget": 1,
        "forgetting": 1,  # what is still to be forgotten: here, in branches, in the history
        "tag": 1,
        "view": 1,  # a value by name, such as a summary
        "evicted": 1,
        "clear": 1,
        "step": 1,  # where the run stands: when it begins, after a step, when it waits or ends
        "amend": 1,  # the state of the run, changed inside a step
        "call_begun": 1,
        "call_finished": 1,
        "part_finished": 1,  # the result of a part of a state, such as a branch
        "rollback": 1,
        "beside": 1,  # how many entries behind it were written by another program, beside the run
        "forked": 1,  # the first entry of a branch: how much of the session it begins with
        "recorded_call": 1,  # a call of a model or a tool in a traced run
    }
)

NOTED = ("call_begun", "call_finished", "part_finished")
"""Kinds that tell of calls and parts inside a step."""

LASTING = frozenset(("delete", "forget", "forgetting", "amend", "evicted", "beside", *NOTED))
"""Kinds that a rollback does not undo."""

RUN = frozenset(("step", "amend", *NOTED))
"""Kinds that hold the state of a run."""

RECORDED_CALL = "recorded_call"
"""The kind that only records what happened: it is left out when a session is read."""


def entry(kind: str, data: JsonValue) -> Entry:
    """Return a new entry of the current version."""
    return Entry(kind, data, version=VERSIONS[kind])


def checked(rows: Rows) -> Rows:
    """Return rows whose entries this library can all read.

    Raises:
        JournalError: An entry has a kind or a version that is unknown.
    """
    if unknown := {*rows.kinds} - VERSIONS.keys():
        at = next(at for at, kind in enumerate(rows.kinds) if kind in unknown)
        raise unreadable(rows.seqs[at], f"its kind {rows.kinds[at]!r} is unknown to this version")
    if not rows.versions:  # which are all 1
        return rows
    for seq, kind in zip(rows.seqs, rows.kinds, strict=True):
        version = rows.versions.get(seq, 1)
        if version != VERSIONS[kind]:
            raise unreadable(
                seq, f"it is {kind!r} in version {version}, and this library reads {VERSIONS[kind]}"
            )
    return rows
