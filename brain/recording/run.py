"""A run as a memory has recorded it, and how it is read: where it began, what happened, its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agent_brain.errors import BrainUseError
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Control
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message, Role
from agent_brain.memories.runs.work import EMBEDDING
from agent_brain.memories.sessions.timeline import Part, message_of
from agent_brain.memories.store.events import MESSAGES
from agent_brain.memories.store.session import below, entries_of
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.tool_search import SEARCH_TOOLS, found_in
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.memories.wrapper import offers
from agent_brain.states.models.call_data import tool_result
from agent_brain.tools.action import Action

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory

WITHOUT_END = ("cancelled", "timeout", "stopped", "budget", "paused", "sleeping")
"""Why a run stopped that did not come to an end of its net."""


class ReplayError(BrainUseError):
    """Raised when a run cannot be replayed: what it needs was not recorded, or is gone."""


@dataclass(slots=True)
class RecordedRun:
    """A run as a memory has it.

    Attributes:
        run_id: The run.
        calls: Its calls of models and tools, in order, also those of steps that ran again.
        turn: The messages of its turn in the end.
        control: The registers of the run in the end.
        states: The state that begins after each number of moves.
        answers: What a person answered to states, by moves, then by the IDs of the questions.
        sent: Messages that were sent to the run, by moves.
        waits: The parts of the run that ended with a state waiting.
        cached: Responses that a cache of calls gave to states, in order: nothing was recorded.
        traced: Whether it was traced; otherwise the calls tell only the responses.
        knows_states: Whether ``states`` has all of them.
    """

    run_id: str
    calls: list[RecordedCall]
    turn: Sequence[Message]
    control: Control
    states: dict[int, str] = field(default_factory=dict)
    answers: dict[int, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    sent: dict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    waits: set[str] = field(default_factory=set)
    cached: list[RecordedCall] = field(default_factory=list)
    traced: bool = True
    knows_states: bool = True

    @property
    def goal(self) -> Message | None:
        """The goal of the run; None if it is not in the memory any more."""
        return next((message for message in self.turn if message.role is Role.USER), None)

    @property
    def open_calls(self) -> list[Action]:
        """The calls of tools that it waited with in the end, also those of branches."""
        if self.control.status != "waiting":
            return []
        asked = self.control.human_requests
        return [*self.control.next_actions, *(() if asked is None else asked.calls)]

    @property
    def was_cut(self) -> bool:
        """Whether something other than the net has ended the run, or nothing has."""
        return self.control.status == "running" or self.control.stop_reason in WITHOUT_END

    @property
    def ended(self) -> bool:
        """Whether the net has ended the run."""
        return self.control.status == "ended" and not self.was_cut


def waiting_calls(control: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls of tools that the registers of a run name, also those of branches."""
    asked = control.get("human_requests") or {}
    return [*control.get("next_actions", ()), *asked.get("calls", ())]


def without_repeated(
    calls: Iterable[RecordedCall], waits: Collection[str] = ()
) -> list[RecordedCall]:
    """Return the calls without those of steps that were interrupted and run again later.

    Args:
        calls: The calls of a run, or of several.
        waits: The parts of the run whose last step is not undone when it runs again.
    """

    def step(call: RecordedCall) -> tuple[object, ...]:
        kind = call.purpose, call.action is None
        return call.run_id, call.branch, call.path, call.move, kind

    known = [call for call in calls if call.purpose != EMBEDDING]
    last = {step(call): call.part for call in known}
    return [call for call in known if call.part == last[step(call)] or call.part in waits]


def calls_tools_natively(calls: Iterable[RecordedCall]) -> bool:
    """Return whether the model of recorded calls calls tools itself, instead of writing JSON."""
    known = [*calls]
    told = "\n".join(m.content for c in known for m in c.messages if m.role is Role.SYSTEM)
    return any(call.tools for call in known) or "Tools, as JSON" not in told


async def read_run(memory: Memory, run_id: str | None) -> tuple[RecordedRun, Memory]:
    """Return a run that ``memory`` has recorded, and a copy in RAM of it as the run began.

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
    if not offers(memory, "steps") or not offers(memory, "recorded_calls"):
        raise ReplayError(
            f"{type(memory).__name__} does not record runs: use a built-in memory, and trace=True"
        )
    stored = cast("StoredMemory", memory)
    calls = await stored.recorded_calls(run_id=wanted)
    in_ram = getattr(memory, "journal", None) is None or getattr(memory, "shared", False)
    run, start = await (_from_ram if in_ram else _from_journal)(stored, wanted, calls)
    if not calls:
        cached = [n for n, message in enumerate(run.turn) if message.metadata.get("cached")]
        run.cached = [_as_call(run, n) for n in cached if run.turn[n].role is Role.ASSISTANT]
        run.calls = _calls_in(run)
    return run, start


async def _from_ram(
    memory: StoredMemory, run_id: str, calls: list[RecordedCall]
) -> tuple[RecordedRun, Memory]:
    control = memory.control
    if control.run_id != run_id:
        raise ReplayError(
            f"Without a journal only the last run can be replayed, {control.run_id!r}: give the "
            "memory journal= to replay earlier ones"
        )
    kept = await memory.recorded_calls()
    if kept and kept[0].number > 1 and kept[0].run_id == run_id and kept[0].step > 0:
        raise ReplayError(
            f"The beginning of the run {run_id!r} is not kept any more: give the memory journal= "
            "to keep the calls of more steps"
        )
    snapshot = await memory.snapshot()
    goals = {message.id for message in snapshot.goal}
    at = next((n for n, m in enumerate(snapshot.messages) if m.id in goals), None)
    if at is None:
        raise ReplayError("The goal of the run is not in the memory any more")
    turn = await memory.turn()
    results = [message.content for message in turn if message.name == SEARCH_TOOLS]
    found = {name for text in results for name in found_in(text, control.found_tools)}
    began = control.model_copy(deep=True)
    began.found_tools = [name for name in control.found_tools if name not in found]
    before = Snapshot.trusted(
        goal=snapshot.goal,
        messages=snapshot.messages[: at + 1],
        control=began,
        views=snapshot.views,
    )
    start = await memory.fork()
    await start.restore(before)
    # the copy has the summary that the run has made
    calls = [call for call in calls if call.purpose in (None, EMBEDDING)]
    states = {
        call.move: call.state or ""
        for call in calls
        if not call.path and call.purpose is None and call.action is None
    }
    at_end = control.model_copy(deep=True)
    run = RecordedRun(run_id, calls, turn, at_end, states, knows_states=False)
    return run, start


async def _from_journal(
    memory: StoredMemory, run_id: str, calls: list[RecordedCall]
) -> tuple[RecordedRun, Memory]:
    session = _session_of(memory)
    entries = [entry async for entry in entries_of(session.journal, session.key)]
    steps = [e for e in entries if e.kind == "step" and _data(e).get("run_id") == run_id]
    if not steps:
        raise ReplayError(f"The session has no run {run_id!r}, or its steps are not kept any more")
    first = _data(steps[0])
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
    _check_traced(run_id, steps, calls)
    start = await memory.as_of(steps[0].seq)
    begun = _session_of(start)  # there were no branches when it began
    for key in await begun.journal.sessions(below(begun.key)):
        await begun.journal.delete(key, scrub=False)
    at_end = await memory.as_of(steps[-1].seq)
    run = RecordedRun(run_id, calls, await at_end.turn(), at_end.control)
    read_entries(run, (entry for entry in entries if steps[0].seq <= entry.seq <= steps[-1].seq))
    return run, start


def run_of_parts(parts: Sequence[Part], calls: Iterable[RecordedCall]) -> RecordedRun:
    """Return a traced run that was begun and ended in one go.

    Args:
        parts: The parts of its session from its begin to its end.
        calls: Its calls.
    """
    data = {**parts[-1].control} if parts else {}
    data["pending"] = data["ended"] = {}  # a step may have their keys only
    control = Control.model_validate(data)
    messages = [message for part in parts for message in part.messages]
    run = RecordedRun(str(control.run_id), [*calls], messages, control)
    read_entries(run, (entry for part in parts for entry in part.entries))
    return run


def read_entries(run: RecordedRun, entries: Iterable[Entry]) -> None:
    """Read into ``run`` what the entries of a session from its first to its last step tell."""
    said: list[tuple[int, Message]] = []  # by a user, since the last step
    moves = 0
    for entry in entries:
        data = _data(entry)
        if entry.kind == "step":
            before, moves = moves, data.get("moves", 0)
            inside = data.get("subnets") or {*data.get("ended", ())} - {""}
            if not (data.get("done") or inside):
                run.states[moves] = data.get("state") or ""
            if moves == before and data.get("status") == "running":
                run.sent[moves] += [message for _, message in said]
            said = []
            _note_answers(run, data, moves)
            # calls of tools that wait are recorded when they have their results
            if data.get("status") == "waiting" and not waiting_calls(data):
                parts = [call.part for call in run.calls if call.number < entry.seq]
                run.waits.update(parts[-1:])
        elif entry.kind == "amend":
            _note_answers(run, data["control"], moves)
        elif entry.kind == "rollback":
            said = [item for item in said if item[0] <= data["to"]]
        elif entry.kind in MESSAGES and data.get("role") == Role.USER:
            said.append((entry.seq, message_of(entry)))


def _note_answers(run: RecordedRun, control: Mapping[str, Any], moves: int) -> None:
    if asked := control.get("human_requests"):
        run.answers[moves].update(asked["answers"])


def _check_traced(run_id: str, steps: Sequence[Entry], calls: Sequence[RecordedCall]) -> None:
    """Check that a run was traced as a whole, or not at all.

    Raises:
        ReplayError: Some of its model calls were not recorded.
    """
    numbers = [c.number for c in calls if c.action is None and c.purpose != EMBEDDING]
    before, last = 0, steps[0].seq
    for step in steps if calls else ():
        data = _data(step)
        spent = data.get("spent", {})
        requests = spent.get("requests", 0) - spent.get("embeddings", 0)
        if requests > before and not any(last < number <= step.seq for number in numbers):
            raise ReplayError(
                f"The run {run_id!r} was traced in part: the model calls before its step "
                f"{data.get('step', 0)} were not recorded. Resume a run with trace=True if it "
                "was started so"
            )
        before, last = requests, step.seq


def _session_of(memory: Any) -> Any:
    while (store := getattr(memory, "store", None)) is None:
        memory = memory.inner
    return store.session


def _data(entry: Entry) -> dict[str, Any]:
    return cast("dict[str, Any]", entry.data)


def _calls_in(run: RecordedRun) -> list[RecordedCall]:
    """Return the calls of a run that was not traced, as its messages tell them.

    Raises:
        ReplayError: They do not tell the response of each model call.
    """
    requests = run.control.spent.requests - run.control.spent.embeddings
    said = sum(message.role is Role.ASSISTANT for message in run.turn)
    run.traced = not requests
    if requests not in (0, said - len(run.cached)):
        raise ReplayError(
            f"The run {run.run_id!r} was not traced, and its messages do not tell what each model "
            f"call returned: it made {requests}, and there are {said} messages of models. "
            "Run the brain with trace=True to record model calls"
        )
    if requests:
        run.cached = []  # they are among the calls
    calls: list[RecordedCall] = []
    asked: dict[str, Action] = {}
    for number, message in enumerate(run.turn):
        if requests and message.role is Role.ASSISTANT:
            calls.append(_as_call(run, number))
        asked |= {call.id: call for call in message.tool_calls}
        if (action := asked.get(message.tool_call_id or "")) is not None:
            result = tool_result(message)
            calls.append(RecordedCall(run_id=run.run_id, action=action, messages=(result,)))
    return calls


def _as_call(run: RecordedRun, number: int) -> RecordedCall:
    """Return the model call whose response is a message of the turn."""
    response = tuple(_pieces(run.turn[number]))
    return RecordedCall(run_id=run.run_id, move=number, response=response)


def _pieces(message: Message) -> Iterator[dict[str, Any]]:
    if message.content:
        yield {"text": message.content}
    for call in message.tool_calls:
        yield {"action": call.model_dump(mode="json", exclude_none=True)}
    if (reason := message.metadata.get("finish_reason")) is not None:
        yield {"finish": {"reason": reason}}
