"""The kinds of journal entries that memories write, and their versions.

An entry of an older version is brought to the current form when it is read; one of a newer version
is refused. Whoever changes the form of a kind, or a default that its entries leave out, raises its
version here and adds the change to :data:`UPGRADES`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType

from pydantic import JsonValue

from agent_brain.memories.journal.entry import Entry, Rows, to_line
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
        "step": 1,  # a boundary: where the run stands
        "amend": 2,  # the state of the run, changed inside a step
        "call_begun": 1,
        "call_finished": 1,
        "part_finished": 1,  # the result of a part of a state, such as a branch
        "rollback": 2,
        "beside": 1,  # how many entries behind it were written by another program, beside the run
        "forked": 1,  # the first entry of a branch: how much of the session it begins with
        "control": 1,  # the form of "step" before there were entries for calls
        "model_call": 1,  # a model call of a traced run
        "tool_result": 1,  # what a tool returned in a branch of a traced run
    }
)

NOTED = ("call_begun", "call_finished", "part_finished")
"""Kinds that tell of calls and parts inside a step."""

LASTING = frozenset(("delete", "forget", "forgetting", "amend", "evicted", "beside", *NOTED))
"""Kinds that a rollback does not undo."""

RUN = frozenset(("control", "step", "amend", *NOTED))
"""Kinds that hold the state of a run."""

STEPS = ("control", "step")

TRACED = ("model_call", "tool_result")
"""Kinds that only tell what happened: they are left out when a session is read."""

_Upgrade = Callable[[JsonValue], JsonValue]
UPGRADES: Mapping[tuple[str, int], _Upgrade] = MappingProxyType(
    {
        ("amend", 1): lambda data: data,  # it had all calls in it, which is still read
        ("rollback", 1): lambda to: {"to": to, "kept": []},
    }
)
"""Functions from the data of a version to that of the next, by kind and version."""

_OLD_FORMS = frozenset(kind for kind, _ in UPGRADES)


def entry(kind: str, data: JsonValue) -> Entry:
    """Return a new entry of the current version."""
    return Entry(kind, data, version=VERSIONS[kind])


def current(rows: Rows) -> Rows:
    """Return ``rows`` with every entry in the current form of its kind.

    Raises:
        JournalError: An entry has a kind or a version that is unknown.
    """
    kinds = {*rows.kinds}
    if unknown := kinds - VERSIONS.keys():
        at = next(at for at, kind in enumerate(rows.kinds) if kind in unknown)
        raise unreadable(rows.seqs[at], f"its kind {rows.kinds[at]!r} is unknown to this version")
    if not rows.versions and kinds.isdisjoint(_OLD_FORMS):
        return rows
    changed: dict[int, str] = {}
    for at, (seq, kind) in enumerate(zip(rows.seqs, rows.kinds, strict=True)):
        version = rows.versions.get(seq, 1)
        if version != VERSIONS[kind]:
            changed[at] = _upgraded(seq, kind, version, rows.lines[at])
    if not changed:
        return rows
    found = rows[:]
    for at, line in changed.items():
        found.lines[at] = line
    return found


def _upgraded(seq: int, kind: str, version: int, line: str) -> str:
    if version > VERSIONS[kind]:
        raise unreadable(
            seq, f"it is {kind!r} in version {version}, and this library reads {VERSIONS[kind]}"
        )
    data: JsonValue = json.loads(line)
    for older in range(version, VERSIONS[kind]):
        data = UPGRADES[kind, older](data)
    return to_line(data)
