"""The sessions of a case, step by step, as its page shows them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_brain.common.secrets import Scrubber
from agent_brain.common.text import clean_json
from agent_brain.experiments.case import CaseResult
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.message import Message, Role
from agent_brain.memories.sessions.timeline import Part, split_parts
from agent_brain.memories.store.events import RECORDED_CALL
from agent_brain.memories.store.session import session_key
from agent_brain.memories.trace.chunks import ChunkReader
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.recording.places import Places
from agent_brain.recording.step_data import describe_happened

LONGEST = 20_000
"""Characters of one text."""


def cut(text: str, longest: int = LONGEST) -> str:
    """Return a text, or its beginning and how much was left out."""
    if len(text) <= longest:
        return text
    left_out = len(text) - longest
    return f"{text[:longest]}\n[… {left_out:,} more characters are not in this file]"


def cut_all(value: Any, longest: int = LONGEST) -> Any:
    """Return JSON data without characters that cannot be written, and with its texts cut."""
    return _cut_inside(clean_json(value), longest)


def _cut_inside(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return cut(value, longest)
    if isinstance(value, dict):
        return {name: _cut_inside(item, longest) for name, item in value.items()}
    if isinstance(value, list):
        return [_cut_inside(item, longest) for item in value]
    return value


class Once:
    """A list in which each value is once.

    Attributes:
        values: The values, in the order in which they came.
    """

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, value: Any) -> int:
        """Return where a value of JSON is in the list; it is added if it is not there."""
        key = json.dumps(value, ensure_ascii=False, sort_keys=True)
        if key not in self._places:
            self._places[key] = len(self.values)
            self.values.append(value)
        return self._places[key]


@dataclass(frozen=True, slots=True)
class KeptSession:
    """A session of a case.

    Attributes:
        name: Its name.
        parts: Its steps, and what is before and after them.
        calls: Its calls of models and tools, in order.
    """

    name: str
    parts: Sequence[Part]
    calls: Sequence[RecordedCall]

    def calls_of(self, part: Part) -> list[RecordedCall]:
        """Return the model calls that were made in a part of the session."""
        numbers = {entry.seq for entry in part.entries if entry.kind == RECORDED_CALL}
        return [c for c in self.calls if c.number in numbers and c.action is None]


def last_run(sessions: Sequence[KeptSession]) -> KeptSession | None:
    """Return the session with only the run that was begun last; None if no beginning is kept."""
    begun = [
        (step.time, session, step.run_id)
        for session in sessions
        for part in session.parts
        if part.begins_run and (step := part.step) is not None and step.time and step.run_id
    ]
    if not begun:
        return None
    _, session, run = max(begun, key=lambda found: found[0])
    parts = [part for part in session.parts if part.step is not None and part.step.run_id == run]
    calls = [call for call in session.calls if call.run_id == run]
    return KeptSession(session.name, parts, calls)


async def read_sessions(journal: Journal, case: CaseResult) -> list[KeptSession]:
    """Return the sessions of a case; empty if they are not kept."""
    found = []
    for name in case.sessions:
        entries = await journal.read(session_key(name, case.id), history=True)
        parts, calls = [*split_parts(entries)], [*ChunkReader().read(entries)]
        found.append(KeptSession(name, parts, calls))
    return [session for session in found if session.parts]


SHORT = 2_000  # characters of what is less important
Step = dict[str, Any]


class StepWriter:
    """Writes the steps of one case.

    Args:
        shared: What many cases of a report have, such as system prompts and tools.

    Attributes:
        messages: The messages of this case.
    """

    def __init__(self, shared: Once) -> None:
        self.messages = Once()
        self._shared = shared
        self._known: dict[int, int | str] = {}  # places by the IDs of what is there
        self._places = Places()

    def sessions(self, sessions: Sequence[KeptSession]) -> list[dict[str, Any]]:
        """Return the sessions with their steps, numbered from 1 through all of them."""
        found: list[dict[str, Any]] = []
        number = 0
        for session in sessions:
            steps = []
            for part in session.parts:
                number += 1
                steps.append(self._step(number, part, session.calls_of(part)))
            found.append({"name": session.name, "steps": steps})
        return found

    def _step(self, number: int, part: Part, calls: Sequence[RecordedCall]) -> Step:
        happened = describe_happened(part, self._places)
        kept = ("kind", "ran", "next", "seconds", "stop_reason", "failure", "error", "waits_for")
        told = {name: happened[name] for name in kept}
        spent = happened["spent"]
        step = told | {
            "n": number,
            "tokens": [spent.get("input_tokens", 0), spent.get("output_tokens", 0)],
            "cost": spent.get("cost"),
            "said": [*_said(happened, traced=bool(calls))],
            "calls": [
                _call(c) for c in happened["calls"] if c["state"] != "requested" or not calls
            ],
            "branches": [
                {"name": str(b["name"]), "result": cut(str(b["result"]), SHORT)}
                for b in happened["branches"]
            ],
            "removed": happened["removed"],
            "values": happened["values"],
            "changes": happened["control"],
            "models": [self._model_call(call) for call in calls],
        }
        found: Step = {name: value for name, value in cut_all(step).items() if value}
        return found

    def _model_call(self, call: RecordedCall) -> dict[str, Any]:
        usage = call.usage or {}
        made = {
            "model": call.model,
            "state": [*call.path, call.state or ""],
            "branch": call.branch,
            "seconds": call.seconds,
            "tokens": [usage.get("input_tokens", 0), usage.get("output_tokens", 0)],
            "cost": usage.get("cost"),
            "finish": call.finish_reason,
            "error": None if call.error is None else dict(call.error),
            "cut": call.cut,
            "attempts": [*map(dict, call.attempts)],
            "prompt": [self._message(message) for message in call.messages],
            "tools": [self._shared_place(tool) for tool in call.tools],
            "schema": None
            if call.output_schema is None
            else self._shared_place(call.output_schema),
            "thoughts": call.thoughts,
            "text": call.text,
            "actions": [{"name": a.name, "args": a.args or a.unparsed} for a in call.actions],
        }
        return {name: value for name, value in made.items() if value not in (None, "", [], False)}

    def _message(self, message: Message) -> int | str:
        """Return where a message is: a number in those of the case, a text in the shared ones."""
        if id(message) in self._known:
            return self._known[id(message)]
        told = {
            "role": message.role.value,
            "content": message.content,
            "name": message.name,
            "is_error": message.is_error,
            "calls": [{"name": c.name, "args": c.args} for c in message.tool_calls],
            "files": [a.name or a.media_type for a in message.attachments],
        }
        data = cut_all({name: value for name, value in told.items() if value})
        is_shared = message.role is Role.SYSTEM
        place = str(self._shared.place(data)) if is_shared else self.messages.place(data)
        self._known[id(message)] = place
        return place

    def _shared_place(self, value: Mapping[str, Any]) -> int | str:
        if id(value) not in self._known:
            self._known[id(value)] = self._shared.place(cut_all(dict(value)))
        return self._known[id(value)]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    kept = {name: call[name] for name in ("name", "state", "result", "seconds")}
    kept["args"] = Scrubber().data(call["args"])
    return {name: value for name, value in kept.items() if value is not None}


def _said(happened: dict[str, Any], *, traced: bool) -> Iterator[dict[str, Any]]:
    """Yield the messages of a step; without those that its calls of models and tools show."""
    for message in happened["messages"]:
        shown = message["role"] == "tool" or (message["role"] == "assistant" and traced)
        if not shown and message["content"]:
            yield {"role": message["role"], "content": message["content"]}
