"""What a session has of the state of a run, and what a rollback of its last step drops."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from agent_brain.memories.control import Control
from agent_brain.memories.journal.entry import Rows
from agent_brain.memories.message import Message
from agent_brain.memories.runs.calls import Call
from agent_brain.memories.store import events
from agent_brain.memories.store.events import RunChange
from agent_brain.memories.store.log import decode

if TYPE_CHECKING:
    from agent_brain.memories.store.store import MessageStore


_NOTES = ("scratch", "session")  # the registers that states and tools write as they like
_COUNTED = ("pending", "ended", "step", "spent", "counted")  # what entries of their own tell


class RunRecord:
    """The state of a run as the entries of a session tell it.

    A step is one entry. What happens inside a step is appended in small entries: a call that has
    begun, its result, the result of a part of a state. They count until a step, or an amendment of
    one, no longer has the call or the part.

    An amendment holds what a step that is repeated after a crash begins with: of ``scratch`` and
    ``session`` what was there at its beginning, and what has changed while calls ran; none of the
    calls that the step itself has requested.

    Attributes:
        at: Sequence number of the entry with the control, 0 if there is none.
        control: The control of that entry, with None for calls and parts that have entries, and
            what was counted since.
        safe_at: Sequence number that a rollback returns to: the end of the last step.
        steps: Sequence numbers of the last steps.
        outdated: Those of entries that are outdated, to be removed later.
    """

    def __init__(self) -> None:
        self._by_calls: dict[str, list[int]] = {}  # sequence numbers, by the IDs of calls
        self.reset()

    def reset(self) -> None:
        """Start without a run."""
        self.at = 0
        self.control: dict[str, Any] = {}
        self._seen: dict[str, Any] = {}  # the whole control when it was last written or amended
        self.safe_at = 0
        # By register and key: what it has there, and the sequence numbers that tell so.
        self._noted: dict[str, dict[str, Any]] = {"pending": {}, "ended": {}}
        self._noted_at: dict[str, dict[str, list[int]]] = {"pending": {}, "ended": {}}
        self.steps: list[int] = []
        self.outdated: list[int] = []

    def reduced(self, control: Control, noted: Collection[str] = ()) -> dict[str, Any]:
        """Return ``control`` as data, with None for calls and parts that have entries.

        Args:
            control: The control.
            noted: IDs of calls whose entries are written just before it.
        """
        data = control.model_dump(mode="json", exclude={"pending", "ended"})
        data["pending"] = pending = {}
        for i, call in control.pending.items():
            is_known = i in noted or self._has_call(i, call)
            pending[i] = None if is_known else call_data(call)
        data["ended"] = ended = {}
        for key, value in control.ended.items():
            ended[key] = None if self._noted["ended"].get(key) == value else value
        return data | control.counts() if pending or "uncounted" in vars(control) else data

    def counts_of(self, control: Control) -> dict[str, Any]:
        """Return what is counted inside a step too, by branches and tools."""
        if not control.counted:
            return control.counts()
        counted = {name: asdict(counts) for name, counts in control.counted.items()}
        known = self.control.get("counted", {})
        new = {name: data for name, data in counted.items() if known.get(name) != data}
        return control.counts() | ({"counted": new} if new else {})

    @property
    def is_running(self) -> bool:
        """Whether a run is in progress, or was interrupted."""
        return self.control.get("status") == "running"

    def unnoted(self, control: Control) -> list[Call]:
        """Return the calls that have begun, or finished, and have no entry that says so."""
        return [call for i, call in control.pending.items() if not self._has_call(i, call)]

    def has(self, control: Control) -> bool:
        """Return whether only calls, parts and counts are new since the last step or look."""
        if self._noted["pending"].keys() - control.pending.keys():
            return False
        now = control.model_dump(mode="json", exclude={*_COUNTED})
        return now.items() <= self._seen.items()

    def amended(self, control: Control, noted: Collection[str]) -> dict[str, Any] | None:
        """Return what the step begins with if it is repeated; None if the entries have that.

        Args:
            control: The control.
            noted: As for :meth:`reduced`.
        """
        now = self.reduced(control, noted)
        seen, self._seen = self._seen, now
        data, known = dict(now), self.control
        still_open = {action["id"] for action in now["next_actions"]}
        data["next_actions"] = [each for each in known["next_actions"] if each["id"] in still_open]
        in_calls = any(call["result"] is None for call in self._whole("pending").values())
        for name in _NOTES:
            data[name] = dict(known[name])
            if in_calls:
                data[name] = _with_changes(data[name], seen[name], now[name])
        removed = self._noted["pending"].keys() - control.pending.keys()
        changed = any(data[name] != known.get(name) for name in data.keys() - {*_COUNTED})
        return data if removed or changed else None

    def _has_call(self, call_id: str, call: Call) -> bool:
        known = self._noted["pending"].get(call_id)
        return known is not None and (known["result"] is None) == (call.result is None)

    def note_writer(self, call_id: str, last: int, count: int) -> None:
        """Note that a tool call has written ``count`` entries, up to the last one."""
        if self.is_running:
            self._by_calls.setdefault(call_id, []).extend(range(last - count + 1, last + 1))

    def written_by(self, call_id: str) -> list[int]:
        """Return the sequence numbers of what a call has written since the last step."""
        return self._by_calls.get(call_id, [])

    def take(self, change: RunChange, seq: int) -> None:
        """Take what an entry says of the run."""
        if isinstance(change, events.Checkpointed):
            if change.since is None:
                self.steps.append(seq)
                if self._by_calls:  # it may be read again, before what calls have written since
                    later = {i: at for i, at in self._by_calls.items() if at[-1] > seq}
                    self._by_calls = later
            if self.at:
                self.outdated.append(self.at)
            self.at, self.safe_at, self.control = seq, change.since or seq, dict(change.control)
            if change.since is None or not self._seen:
                self._seen = self.control
            for register, noted in self._noted.items():
                for name in [*noted]:
                    if self.control[register].get(name, ...) is not None:
                        del noted[name]
                        self.outdated += self._noted_at[register].pop(name)
            return
        value: Any
        register = "pending"
        if isinstance(change, events.PartNoted):
            register, name, value = "ended", change.key, change.value
        elif isinstance(change, events.CallFinished):
            name, value = change.call["action"]["id"], change.call
        else:
            name, value = change.action["id"], {"action": change.action, "result": None}
            value |= {"reported": False, "continues": change.continues}
        self._noted[register][name] = value
        self._noted_at[register].setdefault(name, []).append(seq)
        counted = {**self.control.get("counted", {}), **change.counts.get("counted", {})}
        self.control |= {**change.counts, "counted": counted}

    @property
    def calls(self) -> list[str]:
        """The IDs of the calls that have begun and are not recorded as a whole round yet."""
        return [*self._whole("pending")]

    @property
    def standing(self) -> set[int]:
        """The sequence numbers of the entries that count."""
        places = (seqs for at in self._noted_at.values() for seqs in at.values())
        return {self.at, *(seq for seqs in places for seq in seqs)}

    def whole(self) -> dict[str, Any]:
        """Return the control with all calls and parts, as data for :class:`Control`."""
        return self.control | {register: self._whole(register) for register in self._noted}

    def _whole(self, register: str) -> dict[str, Any]:
        known = self.control.get(register, {}).items()
        return {name: value for name, value in known if value is not None} | self._noted[register]


def _with_changes(
    values: dict[str, Any], before: Mapping[str, Any], now: Mapping[str, Any]
) -> dict[str, Any]:
    """Return ``values`` with what is different ``now`` from ``before``."""
    values |= {name: value for name, value in now.items() if before.get(name, ...) != value}
    return {name: value for name, value in values.items() if name in now or name not in before}


def call_data(call: Call) -> dict[str, Any]:
    """Return a call as data."""
    result = call.result
    return {
        "action": call.action.model_dump(mode="json"),
        "result": None if result is None else result.model_dump(mode="json", exclude_defaults=True),
        "reported": call.reported,
        **({"continues": True} if call.continues else {}),
    }


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
        if kind in events.LASTING:
            continue
        if begun and kind in events.MESSAGES and _CALL in line:
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
            noted = await session.append([events.entry("rollback", data)])
            await session.set_aside([*plan.undone, noted])
    return plan
