"""Replay a run of a session, and make tests of it."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterator, Sequence, Set
from pathlib import Path
from typing import Any

from agent_brain.brain import Brain
from agent_brain.cli.exit_codes import ExitCode, UserError, notify
from agent_brain.cli.nets import is_file, load_net, load_tools
from agent_brain.cli.options import DEFAULT_MEMORY, Options, window_options
from agent_brain.cli.screen import Screen
from agent_brain.cli.sessions.places import opened_session
from agent_brain.cli.sessions.showing import check_run
from agent_brain.cli.sessions.tables import print_json
from agent_brain.default_model import resolve_llm
from agent_brain.memories import Message
from agent_brain.memories.journal.base import Journal, SessionRecord
from agent_brain.memories.registry import create_memory
from agent_brain.memories.store.session import read_session_key
from agent_brain.memories.stored import StoredMemory
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.nets.net import Net, subnets_of
from agent_brain.recording.replay import Replay
from agent_brain.recording.run import calls_tools_natively
from agent_brain.states import prompts
from agent_brain.states.models.llm import LLM, Piece
from agent_brain.testing import ExportError, export_cassette, export_test
from agent_brain.tools import BaseTool


class StandInModel(LLM):
    """Stands for the model of a recorded run, which is not asked again."""

    def __init__(self, calls: Sequence[RecordedCall]) -> None:
        told = "\n".join(m.content for call in calls for m in call.messages if m.role == "system")
        self.model = calls[0].model if calls else "unknown"
        self.supports_tools = calls_tools_natively(calls)
        self.sends_schema = prompts.OUTPUT_KNOWN in told

    async def stream(self, messages: Sequence[Message], **options: Any) -> AsyncIterator[Piece]:
        """Refuse."""
        if messages:
            raise UserError("The model of a replay is not asked")
        yield ""


class StandInTool(BaseTool):
    """Stands for a tool of a recorded run, which does not run again."""

    async def execute(self, **kwargs: Any) -> str:
        """Refuse."""
        raise UserError("The tools of a replay do not run")


async def replay_session(options: Options, run_id: str | None) -> ExitCode:
    """Replay a run, print where it differs; the exit code says if it does."""
    report = await _replay(options, run_id)
    if options.as_json:
        print_json(report.to_dict())
    else:
        screen = Screen(sys.stdout)
        for line in str(report).splitlines():
            screen.line(line)
    return ExitCode.ANSWERED if report.equal else ExitCode.FAILED


async def write_test(options: Options, run_id: str | None, output: Path) -> None:
    """Write a run as a pytest file."""
    report = await _replay(options, run_id)
    if not report.equal:
        notify(f"The test repeats the run as far as the net does it today. {report}", kind="Note")
    named = options.net if ":" in options.net else None
    try:
        export_test(report.events, output, net=named)
    except ExportError as error:
        raise UserError(str(error)) from error


async def write_cassette(options: Options, run_id: str | None, output: Path) -> None:
    """Write the model calls of a session, or of a run, as a cassette."""
    async with opened_session(options) as found:
        memory = await _memory(*found, "messages")
        calls = await memory.model_calls(run_id=run_id)
        await check_run(memory, calls, run_id)
    export_cassette(calls, output)


async def _memory(journal: Journal, record: SessionRecord, kind: str, **more: Any) -> StoredMemory:
    session, tenant = read_session_key(record.key)
    made: Any = create_memory(
        kind, (), journal=journal, session=session, tenant=tenant, readonly=True, **more
    )
    await made.open()
    memory: StoredMemory = made
    return memory


async def _replay(options: Options, run_id: str | None) -> Replay:
    async with opened_session(options) as (journal, record):
        memory = await _memory(journal, record, "messages")
        calls = await memory.model_calls(run_id=run_id or memory.control.run_id)
        kind = options.memory or ("messages" if is_file(options.net) else DEFAULT_MEMORY)
        if kind != "messages":
            reads = window_options(kind, calls[0].model) if calls else {}
            memory = await _memory(journal, record, kind, **reads)
        await check_run(memory, calls, run_id)
        llm = StandInModel(calls) if options.model is None else resolve_llm(options.model)
        net = load_net(options.net, llm)
        known = {*memory.available_tools, *_names_of_tools(net)}
        tools = load_tools(options.tools) or _stand_ins(calls, known)
        if not calls and not options.tools:
            await _check_no_tools(memory, known)
        return await Brain(net, memory, tools).replay(run_id)


def _names_of_tools(net: Net) -> Iterator[str]:
    """Yield the names of the tools that a net and the nets in it bring."""
    yield from (tool.name for tool in net.tools)
    for state in net.states.values():
        for inner in subnets_of(state).values():
            yield from _names_of_tools(inner)


async def _check_no_tools(memory: StoredMemory, known: Set[str]) -> None:
    """Check that a run without recorded model calls used no tools but those that are known.

    Raises:
        UserError: It used others, of which the session does not tell what a model was told.
    """
    used = {call.name for message in await memory.turn() for call in message.tool_calls}
    if missing := sorted(used - known):
        raise UserError(
            f"The run was not traced, so its tools are not known: name {', '.join(missing)} with "
            "--tool FILE:NAME"
        )


def _stand_ins(calls: Sequence[RecordedCall], known: Set[str]) -> list[BaseTool]:
    """Return tools as models were told of them."""
    found: dict[str, BaseTool] = {}
    for call in calls:
        for told in call.tools:
            name = str(told["name"])
            if name not in known and name not in found:
                schema = dict(told["input_schema"])
                found[name] = StandInTool(name, str(told["description"]), schema)
    return [*found.values()]
