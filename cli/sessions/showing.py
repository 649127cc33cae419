"""Look at sessions: list them, show what happened in one, and compare two."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from agent_brain.cli.exit_codes import ExitCode, UserError, notify
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import brief, call_text
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.places import (
    describe,
    entries,
    find_record,
    find_session,
    find_step,
    make_key,
    memory_at,
    opened,
    opened_session,
)
from agent_brain.cli.sessions.tables import (
    how_long_ago,
    local_time,
    print_found,
    print_json,
    print_table,
    spent_text,
)
from agent_brain.common.text import count_of
from agent_brain.memories import Message
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import text_for_model
from agent_brain.memories.sessions.listing import SessionInfo, list_sessions
from agent_brain.memories.sessions.reading import Side, compare, side_of
from agent_brain.memories.sessions.timeline import Part, SavedStep, read_parts, saved_steps
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.tools import Action

SAID = {"system": ("system", "dim"), "user": ("you", "bold"), "assistant": ("said", "")}
REMOVALS = {"delete": "deleted", "forget": "forgotten"}


async def show_sessions(options: Options, limit: int | None) -> None:
    """Print the sessions of the journal, those that were written to last first."""
    tenant = ... if options.tenant is None else options.tenant
    async with opened(options) as journal:
        found = await list_sessions(journal, tenant=tenant, limit=limit)
    if print_found(options, [*map(asdict, found)], "There are no sessions"):
        return
    if any(info.status == "damaged" for info in found):
        notify("Save what is left of damaged sessions: agent-brain sessions salvage", kind="Note")
    columns = ("session", "tenant", "title", "status", "state", "updated", "", "entries")
    print_table(columns, map(_session_row, found), long="title")


def _session_row(info: SessionInfo) -> tuple[str, ...]:
    when = local_time(info.updated)[: len("2000-01-01 00:00")], how_long_ago(info.updated)
    status = "ended early" if info.status == "ended" and info.resumable else info.status
    about = info.session, info.tenant or "", info.title, status, info.state or ""
    return (*about, *when, f"{info.entries:,}")


async def show_steps(options: Options) -> None:
    """Print the steps of a session."""
    async with opened_session(options) as (journal, record):
        found = await saved_steps(journal, record.key)
    if print_found(options, [*map(asdict, found)], "No steps are kept"):
        return
    columns = ("number", "time", "run", "step", "state", "status", "spent")
    print_table(columns, map(_step_row, found), long="run")


def _step_row(step: SavedStep) -> tuple[str, ...]:
    status = step.status if step.stop_reason is None else f"{step.status}: {step.stop_reason}"
    about = local_time(step.time), step.run_id or "", str(step.step), step.state or ""
    return str(step.number), *about, status, spent_text(step.spent)


async def show_session(options: Options, number: int | None, *, full: bool) -> None:
    """Print what happened in a session step by step, or with ``number`` the memory as of a step."""
    printer = Printer(Screen(sys.stdout), full=full)
    async with opened_session(options) as (journal, record):
        if number is not None:
            memory = await memory_at(journal, record.key, number)
            await _show_memory(printer, record.key, number, memory, as_json=options.as_json)
            return
        if not options.as_json:
            printer.screen.line(f"{describe(record.key)}, {entries(record.entries)}", "bold")
        async for part in read_parts(journal, record.key):
            if options.as_json:
                print_json(_part_as_dict(part))
            else:
                printer.part(part)


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


async def show_calls(
    options: Options, number: int | None, run_id: str | None, *, full: bool
) -> None:
    """Print the recorded model calls of a session, or of one of its steps or runs."""
    async with opened_session(options) as (journal, record):
        step = None if number is None else await find_step(journal, record.key, number)
        memory = await memory_at(journal, record.key, None)
        calls = await memory.model_calls(run_id=run_id, step=step)
        await check_run(memory, calls, run_id)
    if options.as_json:
        for call in calls:
            print_json(call.to_dict())
        return
    if not calls:
        raise UserError(
            f"There are no recorded model calls of {describe(record.key)}: record runs with --trace"
        )
    printer = Printer(Screen(sys.stdout), full=full)
    for call in calls:
        show_call(printer, call)


async def check_run(
    memory: StoredMemory, calls: Sequence[RecordedCall], run_id: str | None
) -> None:
    """Check that a run without model calls is one of the session.

    Raises:
        UserError: The session has no such run.
    """
    if run_id is None or calls or run_id == memory.control.run_id:
        return
    if run_id not in {step.run_id for step in await memory.steps()}:
        raise UserError(f"The session has no run {run_id!r}, or its steps are not kept any more")


def show_call(printer: Printer, call: RecordedCall) -> None:
    """Print one model call: its request and its response."""
    printer.screen.line()
    printer.screen.line(_call_title(call), "bold")
    for message in call.messages:
        printer.message(message)
    if call.tools:
        printer.line("offered", ", ".join(str(told["name"]) for told in call.tools), "dim")
    if call.output_schema is not None:
        printer.line("schema", json.dumps(call.output_schema, ensure_ascii=False), "dim")
    printer.screen.line("response", "bold")
    if call.thoughts:
        printer.line("thought", call.thoughts, "dim")
    if call.text or call.actions:
        printer.message(Message.assistant(call.text, call.actions))
    for attempt in call.attempts:
        if (failed := attempt.get("error")) is not None:
            printer.line("attempt", f"{attempt['model']}: {failed['message']}", "yellow")
    if call.error is not None:
        printer.line("error", f"{call.error['type']}: {call.error['message']}", "red")
    if call.cut:
        printer.line("cut off", "before the response was complete", "yellow")


def _call_title(call: RecordedCall) -> str:
    usage = call.usage or {}
    spent = {name: usage.get(name) or 0 for name in ("input_tokens", "output_tokens", "cost")}
    facts = [
        local_time(call.time),
        "/".join((*call.path, call.state or "")),
        call.model,
        call.purpose or "",
        count_of(len(call.messages), "message"),
        spent_text(spent),
        f"{call.seconds:.1f} s",
        "" if call.finish_reason in (None, "stop", "tool_calls") else str(call.finish_reason),
    ]
    return "  ".join([f"#{call.number}", *filter(None, facts)])


async def diff_sessions(options: Options, first: str, second: str, *, full: bool) -> ExitCode:
    """Print where two conversations part, both sides from there, and how their states differ."""
    async with opened(options) as journal:
        sides = [await _side(journal, name, options.tenant) for name in (first, second)]
    difference = compare(*sides)
    screen = Screen(sys.stdout)
    messages = count_of(difference.common, "message")
    if not difference:
        screen.line(f"No difference: {messages}, and the same state")
        return ExitCode.ANSWERED
    screen.line(f"{messages} in common")
    for name, rest in zip((first, second), difference.rests, strict=True):
        screen.line(f"{name}: {count_of(len(rest), 'message')} more", "bold")
        for message in rest:
            Printer(screen, full=full).message(message)
    if difference.state:
        screen.line("state", "bold")
    for name, values in difference.state:
        texts = (json.dumps(value, ensure_ascii=False) for value in values)
        Printer(screen, full=full).line("", f"{name}: {' → '.join(texts)}")
    return ExitCode.FAILED


async def _side(journal: Journal, name: str, tenant: str | None) -> Side:
    """Return what a name means: a session, or with ``@`` and a number, a session at a step."""
    session, number = name, None
    before, at, step = name.rpartition("@")
    if at and step.isdecimal() and await find_record(journal, make_key(name, tenant)) is None:
        session, number = before, int(step)
    record = await find_session(journal, session, tenant)
    return await side_of(await memory_at(journal, record.key, number))
