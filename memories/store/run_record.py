"""What a session has of the state of a run: the last step, and what happened since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import Any

from agent_brain.memories.control import Control
from agent_brain.memories.runs.calls import Call
from agent_brain.memories.store.events import CallNoted, Checkpointed, RunChange


class RunRecord:
    """The state of a run as the entries of a session tell it.

    A step is one entry. What happens inside a step is appended in small entries: a call that has
    begun, its result, the result of a part of a state. They count until a step, or an amendment of
    one, no longer has the call or the part.

    Attributes:
        at: Sequence number of the entry with the control, 0 if there is none.
        control: The control of that entry, with None for calls and parts that have entries.
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
        self.control: dict[str, Any] | None = None
        self.safe_at = 0
        self._calls: dict[str, dict[str, Any]] = {}  # by ID, as in Control.pending
        self._parts: dict[str, str] = {}  # by key, as in Control.ended
        self._counts: dict[str, Any] = {}  # as of the last of them
        self._counted: dict[str, Any] = {}  # as Control.counted
        self._calls_at: dict[str, list[int]] = {}  # sequence numbers
        self._parts_at: dict[str, list[int]] = {}
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
            ended[key] = None if self._parts.get(key) == value else value
        return data | control.counts() if pending or "uncounted" in vars(control) else data

    def counts_of(self, control: Control) -> dict[str, Any]:
        """Return what is counted inside a step too, by branches and tools."""
        if not control.counted:
            return control.counts()
        counted = {name: asdict(counts) for name, counts in control.counted.items()}
        new = {name: data for name, data in counted.items() if self._counted.get(name) != data}
        return control.counts() | ({"counted": new} if new else {})

    @property
    def is_running(self) -> bool:
        """Whether a run is in progress, or was interrupted."""
        return self.control is not None and self.control.get("status") == "running"

    def unnoted(self, control: Control) -> list[Call]:
        """Return the calls that have begun, or finished, and have no entry that says so."""
        return [call for i, call in control.pending.items() if not self._has_call(i, call)]

    def has(self, control: Control) -> bool:
        """Return whether the entries have ``control``, apart from new calls, parts and counts."""
        if self.control is None or self._calls.keys() - control.pending.keys():
            return False
        left_out = {"pending", "ended", "step", "spent", "counted"}
        now = control.model_dump(mode="json", exclude=left_out)
        return now.items() <= self.control.items()

    def _has_call(self, call_id: str, call: Call) -> bool:
        known = self._calls.get(call_id)
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
        if isinstance(change, Checkpointed):
            if change.since is None:
                self.steps.append(seq)
                if self._by_calls:  # it may be read again, before what calls have written since
                    later = {i: at for i, at in self._by_calls.items() if at[-1] > seq}
                    self._by_calls = later
            if self.at:
                self.outdated.append(self.at)
            control = change.control
            self.at, self.safe_at, self.control = seq, change.since or seq, dict(control)
            self._counts, self._counted = {}, dict(control.get("counted", {}))
            for noted, register, places in (
                (control["pending"], self._calls, self._calls_at),
                (control["ended"], self._parts, self._parts_at),
            ):
                for name in [*register]:
                    if noted.get(name, ...) is not None:
                        del register[name]
                        self.outdated += places.pop(name)
            return
        if isinstance(change, CallNoted):
            call_id = change.call["action"]["id"]
            self._calls[call_id] = change.call
            self._calls_at.setdefault(call_id, []).append(seq)
        else:
            self._parts[change.key] = change.value
            self._parts_at.setdefault(change.key, []).append(seq)
        self._counted.update(change.counts.get("counted", {}))
        self._counts.update(change.counts)

    @property
    def calls(self) -> list[str]:
        """The IDs of the calls that have begun and are not recorded as a whole round yet."""
        return [*_present((self.control or {}).get("pending", {})), *self._calls]

    @property
    def standing(self) -> set[int]:
        """The sequence numbers of the entries that count."""
        places = [*self._calls_at.values(), *self._parts_at.values()]
        return {self.at, *(seq for seqs in places for seq in seqs)}

    def whole(self) -> dict[str, Any]:
        """Return the control with all calls and parts, as data for :class:`Control`."""
        control = dict(self.control or {})
        control["pending"] = _present(control.get("pending", {})) | self._calls
        control["ended"] = _present(control.get("ended", {})) | self._parts
        return control | self._counts | {"counted": self._counted}


def call_data(call: Call) -> dict[str, Any]:
    """Return a call as data."""
    result = call.result
    return {
        "action": call.action.model_dump(mode="json"),
        "result": None if result is None else result.model_dump(mode="json", exclude_defaults=True),
        "reported": call.reported,
        **({"continues": True} if call.continues else {}),
    }


def _present(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
