"""What a rollback drops, and what it keeps as it cannot be undone."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from agent_brain.memories.journal.entry import Rows
from agent_brain.memories.message import Message
from agent_brain.memories.store.events import MESSAGES
from agent_brain.memories.store.kinds import LASTING, entry
from agent_brain.memories.store.log import decode
from agent_brain.memories.store.store import MessageStore

_CALL = '"tool_call'  # in the text of a message with calls, or with the result of one


@dataclass(frozen=True, slots=True)
class Undoing:
    """What a rollback does with the entries since the last step.

    Attributes:
        undone: The entries that it undoes.
        kept: The entries that it keeps although they are not lasting: what other programs wrote
            beside the run, what finished calls wrote, and the messages that ask for, or answer, a
            call of the step that has begun. What a call did cannot be undone.
        asked: The IDs of all calls that these messages ask for.
        results: Those of the kept messages that are results of calls.
    """

    undone: list[int]
    kept: list[int]
    asked: set[str]
    results: list[Message]


def plan_undoing(later: Rows, calls: Iterable[str] = ()) -> Undoing:
    """Return what a rollback does.

    Args:
        later: The entries since the last step.
        calls: The IDs of calls that had begun before, and belong to the step: a run that was
            interrupted twice has begun some of them the first time.
    """
    begun, written = {*calls}, set[int]()
    for seq, kind, line in later:
        if kind == "call_begun":
            begun.add(json.loads(line)["action"]["id"])
        elif kind == "call_finished":
            written.update(json.loads(line).get("wrote", ()))
        elif kind == "beside":
            written.update(range(seq + 1, seq + 1 + json.loads(line)))
    plan = Undoing([], [], set(), [])
    for seq, kind, line in later:
        if kind in LASTING:
            continue
        if begun and kind in MESSAGES and _CALL in line:
            message = decode(line, seq)
            if _is_about(message, begun):
                plan.kept.append(seq)
                plan.asked.update(call.id for call in message.tool_calls)
                plan.results.extend([message] if message.tool_call_id else [])
                continue
        (plan.kept if seq in written else plan.undone).append(seq)
    return plan


def _is_about(message: Message, calls: set[str]) -> bool:
    return message.tool_call_id in calls or any(call.id in calls for call in message.tool_calls)


async def undo_step(store: MessageStore) -> Undoing | None:
    """Drop what a session has got since its last step; return what that was, if it has a step.

    The store is to be read again then.
    """
    session = store.session
    assert session is not None
    await session.flush()
    async with session.lock:
        if not session.run.at:
            return None
        safe_at = session.run.safe_at
        plan = plan_undoing(await session.written(safe_at), session.run.calls)
        if plan.undone:
            store.reread(adopt_control=True)
            data: JsonValue = {"to": safe_at, "kept": [*plan.kept]}
            noted = await session.append([entry("rollback", data)])
            await session.set_aside([*plan.undone, noted])
    return plan
