"""The steps of a case, as its page shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent_brain.common.scrubber import Scrubber
from agent_brain.experiments.report.html.kept_sessions import KeptSession
from agent_brain.experiments.report.html.texts import Once, cut, cut_all
from agent_brain.memories.message import Message, Role
from agent_brain.memories.sessions.timeline import Part
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.recording.places import Places
from agent_brain.recording.step_data import describe_happened

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
            "branches": [_branch(branch) for branch in happened["branches"]],
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
        if id(message) not in self._known:
            self._known[id(message)] = self._placed(message)
        return self._known[id(message)]

    def _placed(self, message: Message) -> int | str:
        told = {
            "role": message.role.value,
            "content": message.content,
            "name": message.name,
            "is_error": message.is_error,
            "calls": [{"name": c.name, "args": c.args} for c in message.tool_calls],
            "files": [a.name or a.media_type for a in message.attachments],
        }
        data = cut_all({name: value for name, value in told.items() if value})
        if message.role is Role.SYSTEM:
            return str(self._shared.place(data))
        return self.messages.place(data)

    def _shared_place(self, value: Mapping[str, Any]) -> int | str:
        if id(value) not in self._known:
            self._known[id(value)] = self._shared.place(cut_all(dict(value)))
        return self._known[id(value)]


def _call(call: dict[str, Any]) -> dict[str, Any]:
    kept = {name: call[name] for name in ("name", "state", "result", "seconds")}
    kept["args"] = Scrubber().data(call["args"])
    return {name: value for name, value in kept.items() if value is not None}


def _branch(branch: dict[str, Any]) -> dict[str, str]:
    return {"name": str(branch["name"]), "result": cut(str(branch["result"]), SHORT)}


def _said(happened: dict[str, Any], *, traced: bool) -> Iterator[dict[str, Any]]:
    """Yield the messages of a step; without those that its calls of models and tools show."""
    for message in happened["messages"]:
        shown = message["role"] == "tool" or (message["role"] == "assistant" and traced)
        if not shown and message["content"]:
            yield {"role": message["role"], "content": message["content"]}
