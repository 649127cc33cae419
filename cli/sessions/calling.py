"""What models were sent and what they returned."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence

from agent_brain.cli.exit_codes import UserError
from agent_brain.cli.options import Options
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.places import (
    describe,
    find_step,
    memory_at,
    use_session,
)
from agent_brain.cli.sessions.showing import Printer
from agent_brain.cli.sessions.tables import local_time, print_json, spent_text
from agent_brain.common.text import count_of
from agent_brain.memories import Message
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.trace.recorded_call import RecordedCall


def show_calls(options: Options, number: int | None, run_id: str | None, *, full: bool) -> None:
    """Print the recorded model calls of a session, or of one of its steps or runs."""

    async def read(journal: Journal, record: SessionRecord) -> tuple[str, list[RecordedCall]]:
        step = None if number is None else await find_step(journal, record.key, number)
        memory = await memory_at(journal, record.key, None)
        calls = await memory.model_calls(run_id=run_id, step=step)
        await check_run(memory, calls, run_id)
        return record.key, calls

    key, calls = use_session(options, read)
    if options.as_json:
        for call in calls:
            print_json(call.to_dict())
        return
    if not calls:
        raise UserError(
            f"There are no recorded model calls of {describe(key)}: record runs with --trace"
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
    printer.screen.line(_title(call), "bold")
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


def _title(call: RecordedCall) -> str:
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
