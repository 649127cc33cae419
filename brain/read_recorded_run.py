"""Reads a recorded run from a memory: where it began, what happened, how it ended. Private."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from agent_brain.memories.base import Memory
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message, Role
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.store.kinds import STEPS
from agent_brain.memories.store.session import below
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.trace.model_calls import ModelCallRecord
from agent_brain.memories.wrapper import offers
from agent_brain.recorded_entries import EntryReader, note_messages, note_traced
from agent_brain.recorded_run import RecordedRun, ReplayError

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory


async def read_run(memory: Memory, run_id: str | None) -> RecordedRun:
    """Return a run that ``memory`` has recorded.

    Args:
        memory: The memory.
        run_id: The run; None for the last one.

    Raises:
        ReplayError: There is no such run, or its beginning is gone.
    """
    await memory.open()
    wanted = run_id or memory.control.run_id
    if wanted is None:
        raise ReplayError("There is no run to replay: none was started on this memory")
    if not offers(memory, "steps") or not offers(memory, "model_calls"):
        raise ReplayError(
            f"{type(memory).__name__} does not record runs: use a built-in memory, and trace=True"
        )
    stored = cast("StoredMemory", memory)
    calls = await stored.model_calls(run_id=wanted)
    if getattr(memory, "journal", None) is None or getattr(memory, "shared", False):
        run = await _from_ram(stored, wanted, calls)
    else:
        run = await _from_journal(stored, wanted, calls)
    note_traced(run, await stored.tool_results(run_id=wanted))
    if not calls:
        run.calls = _calls_in(run)
    return run


async def _from_ram(memory: StoredMemory, run_id: str, calls: list[ModelCallRecord]) -> RecordedRun:
    control = memory.control
    if control.run_id != run_id:
        raise ReplayError(
            f"Without a journal only the last run can be replayed, {control.run_id!r}: give the "
            "memory journal= to replay earlier ones"
        )
    snapshot = await memory.snapshot()
    goals = {message.id for message in snapshot.goal}
    at = next((n for n, m in enumerate(snapshot.messages) if m.id in goals), None)
    if at is None:
        raise ReplayError("The goal of the run is not in the memory any more")
    before = Snapshot.trusted(
        goal=snapshot.goal,
        messages=snapshot.messages[: at + 1],
        control=control.model_copy(deep=True),
        views=snapshot.views,
    )
    start = await memory.fork()
    await start.restore(before)
    # the copy has the summary that the run has made
    calls = [call for call in calls if call.purpose in (None, EMBEDDING)]
    run = RecordedRun(run_id, start, calls)
    run.states = {c.move: c.state or "" for c in calls if not c.path and c.purpose is None}
    run.moves, run.status, run.knows_states = control.moves, control.status, False
    run.requests = control.spent.requests - control.spent.embeddings
    run.stop_reason, run.turn = control.stop_reason, await memory.turn()
    note_messages(run, snapshot.messages[at + 1 :])
    lost = {call.part for call in calls if call.error is not None or call.cut}
    run.waits = {call.part for call in calls} - lost
    return run


async def _from_journal(
    memory: StoredMemory, run_id: str, calls: list[ModelCallRecord]
) -> RecordedRun:
    session = _session_of(memory)
    entries: list[Entry] = []
    async for page in session.journal.pages(session.key, history=True):
        entries += page
    mine = [e for e in entries if e.kind in STEPS and _data(e).get("run_id") == run_id]
    if not mine:
        raise ReplayError(f"The session has no run {run_id!r}, or its steps are not kept any more")
    first = _data(mine[0])
    if first.get("step", 0) != 0 or first.get("moves", 0) != 0:
        if any(call.step == 0 for call in calls):
            raise ReplayError(
                f"The session has the model calls of the run {run_id!r}, but not its first steps: "
                "it is a copy that fork() made later in the run. Replay the run in the session "
                "that was copied"
            )
        raise ReplayError(
            f"The beginning of the run {run_id!r} is not kept any more: history= of the memory "
            "sets how many steps are"
        )
    _check_traced(run_id, mine, calls)
    start = await memory.as_of(mine[0].seq)
    await _drop_branches(start)
    run = RecordedRun(run_id, start, calls)
    EntryReader(run).read([e for e in entries if mine[0].seq <= e.seq], mine)
    last = _data(mine[-1])
    run.moves, run.status = last.get("moves", 0), last.get("status", "running")
    run.stop_reason = last.get("stop_reason")
    run.requests = _requests(last)
    at_end = await memory.as_of(mine[-1].seq)
    run.turn = await at_end.turn()
    return run


def _check_traced(run_id: str, steps: Sequence[Entry], calls: Sequence[ModelCallRecord]) -> None:
    """Check that a run was traced as a whole, or not at all.

    Raises:
        ReplayError: Some of its model calls were not recorded.
    """
    numbers = [call.number for call in calls if call.purpose != EMBEDDING]
    before, last = 0, steps[0].seq
    for step in steps if calls else ():
        data = _data(step)
        requests = _requests(data)
        if requests > before and not any(last < number <= step.seq for number in numbers):
            raise ReplayError(
                f"The run {run_id!r} was traced in part: the model calls before its step "
                f"{data.get('step', 0)} were not recorded. Resume a run with trace=True if it "
                "was started so"
            )
        before, last = requests, step.seq


async def _drop_branches(start: Memory) -> None:
    """Drop the branches that the first step was interrupted in: there were none when it began."""
    session = _session_of(start)
    for key in await session.journal.sessions(below(session.key)):
        await session.journal.delete(key, scrub=False)


def _session_of(memory: Any) -> Any:
    while (store := getattr(memory, "store", None)) is None:
        memory = memory.inner
    return store.session


def _requests(control: Mapping[str, Any]) -> int:
    """Return how many model calls a run has made, without embeddings."""
    spent = control.get("spent", {})
    made: int = spent.get("requests", 0) - spent.get("embeddings", 0)
    return made


def _data(entry: Entry) -> dict[str, Any]:
    return cast("dict[str, Any]", entry.data)


def _calls_in(run: RecordedRun) -> list[ModelCallRecord]:
    """Return the model calls of a run that was not traced: each response became a message.

    Raises:
        ReplayError: The messages do not tell all of them.
    """
    if not run.requests:
        return []
    run.traced = False
    said = [message for message in run.turn if message.role is Role.ASSISTANT]
    if len(said) != run.requests:
        raise ReplayError(
            f"The run {run.run_id!r} was not traced, and its messages do not tell what each model "
            f"call returned: it made {run.requests}, and there are {len(said)} messages of models. "
            "Run the brain with trace=True to record model calls"
        )
    return [
        ModelCallRecord(
            number=number,
            run_id=run.run_id,
            time=message.created_at,
            model="",
            messages=(),
            request_hash="",
            move=number,
            response=tuple(_pieces(message)),
        )
        for number, message in enumerate(said)
    ]


def _pieces(message: Message) -> Iterator[dict[str, Any]]:
    if message.content:
        yield {"text": message.content}
    for call in message.tool_calls:
        yield {"action": call.model_dump(mode="json", exclude_none=True)}
    if (reason := message.metadata.get("finish_reason")) is not None:
        yield {"finish": {"reason": reason}}
