"""Print a session: what happened in it, or the memory as of a step."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import brief, call_text
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.places import describe, entries, memory_at, use_session
from agent_brain.cli.sessions.tables import local_time, print_json, spent_text
from agent_brain.common.text import count_of
from agent_brain.memories import Message
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import text_for_model
from agent_brain.memories.sessions.timeline import Part, read_parts
from agent_brain.memories.stored import StoredMemory
from agent_brain.tools import Action

SAID = {"system": ("system", "dim"), "user": ("you", "bold"), "assistant": ("said", "")}
REMOVALS = {"delete": "deleted", "forget": "forgotten"}


def show_session(options: Options, number: int | None, *, full: bool) -> None:
    """Print what happened in a session step by step, or with ``number`` the memory as of a step."""
    printer = Printer(Screen(sys.stdout), full=full)

    async def show(journal: Journal, record: SessionRecord) -> None:
        if number is not None:
            memory = await memory_at(journal, record.key, number)
            await _show_memory(printer, record.key, number, memory, as_json=options.as_json)
            return
        if not options.as_json:
            printer.header(record)
        async for part in read_parts(journal, record.key):
            if options.as_json:
                print_json(_part_as_dict(part))
            else:
                printer.part(part)

    use_session(options, show)


async def _show_memory(
    printer: Printer, key: str, number: int, memory: StoredMemory, *, as_json: bool
) -> None:
    messages, control = await memory.context(), memory.control
    values = (await memory.snapshot()).views
    if as_json:
        shown = [_message_as_dict(message) for message in messages]
        registers = control.model_dump(mode="json")
        print_json({"step": number, "messages": shown, "control": registers, "values": values})
        return
    printer.screen.line(f"{describe(key)} as of step {number}", "bold")
    for message in messages:
        printer.message(message)
    printer.registers(control.model_dump(mode="json", exclude_defaults=True))
    for name, value in values.items():
        printer.line("value", f"{name}: {json.dumps(value, ensure_ascii=False)}")


@dataclass(slots=True)
class Printer:
    """Prints parts of a session on a screen, long texts in full or cut."""

    screen: Screen
    full: bool = False
    _names: dict[str, str] = field(default_factory=dict)  # of the tools, by the IDs of calls

    def header(self, record: SessionRecord) -> None:
        """Print which session it is."""
        self.screen.line(f"{describe(record.key)}, {entries(record.entries)}", "bold")

    def part(self, part: Part) -> None:
        """Print a part of a session."""
        if part.begins_run:
            self.screen.line()
        self.screen.line(_title(part), "bold" if part.step else "yellow")
        for message in part.messages:
            self.message(message)
        for entry in part.entries:
            self._change(entry)
        if part.step is None and part.before is not None:
            self._open_calls(part)
        self._requests(part.control)

    def message(self, message: Message) -> None:
        """Print a message with its calls."""
        if message.role == "tool":
            label, style = ("error", "red") if message.is_error else ("result", "green")
            name = message.name or self._names.get(message.tool_call_id or "", "")
            self.line(label, f"{name}: {message.content}", style)
            return
        label, style = SAID[message.role]
        if message.content or not message.tool_calls:
            self.line(label, text_for_model(message), style)
        for attachment in message.attachments:
            self.line("file", attachment.name or attachment.media_type, style)
        for call in message.tool_calls:
            self._names[call.id] = call.name
            self.line("tool", self._call(call), "cyan")

    def registers(self, control: Mapping[str, Any]) -> None:
        """Print the registers of a run that are not empty."""
        self.screen.line("control", "bold")
        for name, value in control.items():
            if name == "next_actions":
                for call in value:
                    self.line("next", self._call(Action(**call)), "cyan")
            elif value not in ({}, [], None):
                text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
                self.line("", f"{name}: {text}")

    def line(self, label: str, text: str, style: str = "") -> None:
        """Print a text with its label."""
        self.screen.labelled(label, text if self.full else brief(text), style)

    def _call(self, call: Action) -> str:
        if not self.full:
            return call_text(call)
        shown = call.args if call.unparsed is None else call.unparsed
        return f"{call.name}({json.dumps(shown, ensure_ascii=False)})"

    def _change(self, entry: Entry) -> None:
        if entry.kind in REMOVALS and isinstance(entry.data, list):
            messages = count_of(len(entry.data), "message")
            self.line(REMOVALS[entry.kind], messages, "yellow")
        elif entry.kind == "clear":
            self.line("cleared", "everything before", "yellow")
        elif entry.kind == "view" and isinstance(entry.data, dict):
            value = json.dumps(entry.data.get("value"), ensure_ascii=False)
            self.line("value", f"{entry.data.get('name')}: {value}", "dim")

    def _open_calls(self, part: Part) -> None:
        """Print which calls have begun in a step that is not finished."""
        begun: dict[str, tuple[Action, Message | None]] = {}
        for entry in part.entries:
            data: Any = entry.data
            if entry.kind == "call_begun":
                action = Action(**data["action"])
                begun[action.id] = action, None
            elif entry.kind == "call_finished":
                action = Action(**data["call"]["action"])
                begun[action.id] = action, Message(**data["call"]["result"])
        for action, result in begun.values():
            if result is None:
                self.line("begun", f"{self._call(action)}: it may have happened", "yellow")
            else:
                self.line("finished", f"{self._call(action)}: {result.content}", "green")

    def _requests(self, control: Mapping[str, Any]) -> None:
        asked = control.get("human_requests") or {}
        known = [*control.get("next_actions", []), *asked.get("calls", [])]
        calls = {call["id"]: call for call in known}
        for name in asked.get("approvals", []):
            call = Action(**calls[name]) if name in calls else Action(name="a tool", id=name)
            doubt = ": it may have happened" if name in asked.get("uncertain", []) else ""
            self.line("approval", f"{self._call(call)}{doubt}", "yellow")
        for question in asked.get("questions", {}).values():
            self.line("question", question, "yellow")


def _title(part: Part) -> str:
    step, before = part.step, part.before
    if step is None:
        after = "After the last step, which a resumed run begins with"
        return "Before the steps that are kept" if before is None else after
    state, came_from = step.state or "", "" if before is None else before.state or ""
    if part.begins_run:
        way = f"a run begins with {state}" if step.step == 0 else state
    elif step.status == "running" and came_from != state:
        way = f"{came_from} → {state}"
    else:
        way = state
    ended = {"ended": f"ended: {step.stop_reason}", "waiting": f"waits: {step.stop_reason}"}
    facts = [local_time(step.time), way, ended.get(step.status, ""), spent_text(part.spent)]
    return "  ".join([f"#{step.number}", *filter(None, facts)])


def _part_as_dict(part: Part) -> dict[str, Any]:
    names = ("time", "run_id", "state", "status", "stop_reason")
    return {
        "step": getattr(part.step, "number", None),
        **{name: getattr(part.step, name, None) for name in names},
        "spent": part.spent,
        "messages": [_message_as_dict(message) for message in part.messages],
    }


def _message_as_dict(message: Message) -> dict[str, Any]:
    return message.model_dump(mode="json", exclude_defaults=True)
