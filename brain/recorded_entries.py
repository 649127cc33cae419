"""Reads what a run recorded, in entries and messages, into a :class:`RecordedRun`. Private."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from agent_brain.memories.control import Decision
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Attachment, Message, Role
from agent_brain.memories.store.events import MESSAGES
from agent_brain.memories.store.kinds import STEPS
from agent_brain.memories.store.log import decode
from agent_brain.memories.trace.model_calls import ToolResultRecord
from agent_brain.memories.views.truncated_results import FULL_RESULT
from agent_brain.recorded_run import CallKey, RecordedResult, RecordedRun
from agent_brain.tools.result import Media

EDITED = "[A person changed the arguments of this call first]\n"
CUT = "\n[Shortened from "


class EntryReader:
    """Reads the entries of a run into a :class:`RecordedRun`."""

    def __init__(self, run: RecordedRun) -> None:
        self._run = run
        self._said: list[tuple[int, Message]] = []  # by a user, since the last step

    def read(self, entries: Iterable[Entry], steps: Sequence[Entry]) -> None:
        """Read the entries from the first of the ``steps`` to the end of the run."""
        numbers, moves, last = {step.seq for step in steps}, 0, steps[-1].seq
        parts = [(call.number, call.part) for call in self._run.calls]
        for entry in entries:
            data: Any = entry.data
            if entry.kind in STEPS:
                if entry.seq not in numbers:
                    break  # another run
                self._step(data, moves)
                moves = data.get("moves", 0)
                if data.get("status") == "waiting":
                    before = [part for number, part in parts if number < entry.seq]
                    self._run.waits.update(before[-1:])
            elif entry.kind == "amend" and entry.seq < last:
                self._people(data["control"], moves)
            elif entry.kind == "rollback":
                self._said = [said for said in self._said if said[0] <= data["to"]]
                for asked in self._run.asked.values():
                    asked[:] = [one for one in asked if one[1] <= data["to"]]
            elif entry.kind == "call_finished":
                note_messages(self._run, [Message.model_validate(data["call"]["result"])])
                self._note_args(data["call"]["action"])
            elif entry.kind in MESSAGES:
                message = decode(json.dumps(data), entry.seq)
                note_messages(self._run, [message], seq=entry.seq)
                if message.role is Role.USER:
                    self._said.append((entry.seq, message))

    def _step(self, control: dict[str, Any], before: int) -> None:
        run, moves = self._run, control.get("moves", 0)
        if not control.get("done"):
            run.states[moves] = control.get("state") or ""
        if moves == before and control.get("status") == "running":
            run.sent[moves] += [message for _, message in self._said]
        self._said = []
        self._people(control, moves)

    def _people(self, control: dict[str, Any], moves: int) -> None:
        asked = control.get("human_requests")
        if not asked:
            return
        run = self._run
        run.questions.update({i: text for i, text in asked["questions"].items() if i})
        run.answers[moves].update(asked["answers"])
        for call_id, decision in asked["decisions"].items():
            run.decisions[moves][call_id] = Decision.model_validate(decision)

    def _note_args(self, action: dict[str, Any]) -> None:
        known = self._run.results.get(_last_key(self._run, "", action["id"]))
        if known is not None:
            known.args.update(action["args"])


def note_messages(
    run: RecordedRun, messages: Iterable[Message], branch: str = "", seq: int = 0
) -> None:
    """Note the results of tools among messages, and the arguments of the calls."""
    for message in messages:
        _note_calls(run, message, branch, seq)
        if message.tool_call_id is not None:
            key = _last_key(run, branch, message.tool_call_id)
            known = run.results.get(key)
            args = {} if known is None else known.args
            full = message.metadata.get(FULL_RESULT)
            if (decision := message.metadata.get("decision")) is not None:
                run.decided[message.tool_call_id] = Decision.model_validate(decision)
            content = full if isinstance(full, str) else message.content.removeprefix(EDITED)
            media = tuple(filter(None, map(_media, message.attachments)))
            run.results[key] = RecordedResult(
                message.name or "", args, content, message.is_error, media
            )


def _note_calls(run: RecordedRun, message: Message, branch: str, seq: int = 0) -> None:
    """Note the calls that a message asks for."""
    for call in message.tool_calls:
        asked = run.asked[branch, call.id]
        if message.id in [of for of, _ in asked]:
            continue  # a request of a later call has it again
        asked.append((message.id, seq))
        made = RecordedResult(call.name, dict(call.args))
        if branch:  # what it returned may have been recorded beside it
            run.results.setdefault((branch, call.id, len(asked) - 1), made)
        else:
            run.results[branch, call.id, len(asked) - 1] = made


def _last_key(run: RecordedRun, branch: str, call_id: str) -> CallKey:
    """Return the key of the last call with an ID."""
    return branch, call_id, max(len(run.asked[branch, call_id]) - 1, 0)


def _media(attachment: Attachment) -> Media | None:
    if attachment.data is None:
        return None
    return Media(attachment.media_type, attachment.data, attachment.name)


def note_traced(run: RecordedRun, results: Iterable[ToolResultRecord]) -> None:
    """Note the results that were recorded beside the messages, and those that models saw."""
    before: Counter[tuple[str, str]] = Counter()
    for result in results:
        media = tuple(Media(**item) for item in result.media)
        action, of = result.action, (result.branch, result.action.id)
        run.results[*of, before[of]] = RecordedResult(
            action.name, dict(action.args), result.content, result.is_error, media
        )
        before[of] += 1
    for call in run.calls:
        answered: Counter[str] = Counter()
        for message in call.messages if call.branch else ():
            call_id = message.tool_call_id or ""
            known = run.results.get((call.branch, call_id, answered[call_id]))
            answered[call_id] += 1
            if message.tool_calls:
                _note_calls(run, message, call.branch)
            if message.tool_call_id is None or (known is not None and _shows(message, known)):
                continue
            note_messages(run, [message], call.branch)  # such as that a call is in doubt


def _shows(message: Message, result: RecordedResult) -> bool:
    """Return whether a model saw ``result``, whole or shortened."""
    return message.content == result.content or CUT in message.content
