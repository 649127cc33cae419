"""What a memory has of a run that was recorded: where it began, what happened, how it ended."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agent_brain.errors import BrainUseError
from agent_brain.memories.base import Memory
from agent_brain.memories.control import Decision
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Attachment, Message, Role
from agent_brain.memories.store.events import MESSAGES
from agent_brain.memories.store.kinds import STEPS
from agent_brain.memories.store.log import decode
from agent_brain.memories.store.model_calls import ModelCallRecord, ToolResultRecord
from agent_brain.memories.store.session import below
from agent_brain.memories.store.snapshot import Snapshot
from agent_brain.memories.views.truncated_results import FULL_RESULT
from agent_brain.memories.wrapper import offers
from agent_brain.tools.result import Media

if TYPE_CHECKING:
    from agent_brain.memories.stored import StoredMemory

EDITED = "[A person changed the arguments of this call first]\n"
CUT = "\n[Shortened from "
WITHOUT_END = ("cancelled", "timeout", "stopped", "budget", "paused", "sleeping")
"""Why a run stopped that did not come to an end of its net."""


CallKey: TypeAlias = tuple[str, str, int]


class ReplayError(BrainUseError):
    """Raised when a run cannot be replayed: what it needs was not recorded, or is gone."""


@dataclass(frozen=True, slots=True)
class RecordedResult:
    """What a tool returned.

    Attributes:
        name: The tool.
        args: Its arguments.
        content: The whole text; None if it is not known.
        is_error: Whether the call failed.
        media: Images and files.
    """

    name: str
    args: dict[str, Any]
    content: str | None = None
    is_error: bool = False
    media: tuple[Media, ...] = ()


@dataclass(slots=True)
class RecordedRun:
    """A run as a memory has it.

    Attributes:
        run_id: The run.
        start: A copy in RAM of the memory as it was when the run began.
        calls: Its model calls, if it was traced.
        states: The state that begins after so many moves.
        results: What tools returned, by branch, the ID of the call, and how many calls before it
            had that ID.
        asked: The messages that asked for the calls of a branch and an ID, and their numbers.
        questions: What tools asked a person, by the IDs of the calls.
        decisions: What a person decided, by moves, then by the IDs of the calls, in order.
        decided: The decisions that the results of calls tell, by the IDs of the calls.
        answers: What a person answered, by moves, then by the IDs of the questions.
        sent: Messages that were sent to the run, by moves.
        waits: The parts of the run that ended with waiting for a person.
        moves: How many moves it had made in the end.
        status: Its status in the end.
        stop_reason: Why it had ended.
        turn: The messages of its turn in the end.
        requests: How many model calls it had made.
        traced: Whether it was traced; otherwise ``calls`` tells only the responses.
        knows_states: Whether ``states`` has all of them.
    """

    run_id: str
    start: Memory
    calls: list[ModelCallRecord]
    states: dict[int, str] = field(default_factory=dict)
    results: dict[CallKey, RecordedResult] = field(default_factory=dict)
    asked: dict[tuple[str, str], list[tuple[str, int]]] = field(
        default_factory=lambda: defaultdict(list)
    )
    questions: dict[str, str] = field(default_factory=dict)
    decisions: dict[int, dict[str, Decision]] = field(default_factory=lambda: defaultdict(dict))
    decided: dict[str, Decision] = field(default_factory=dict)
    answers: dict[int, dict[str, str]] = field(default_factory=lambda: defaultdict(dict))
    sent: dict[int, list[Message]] = field(default_factory=lambda: defaultdict(list))
    waits: set[str] = field(default_factory=set)
    moves: int = 0
    status: str = "running"
    stop_reason: str | None = None
    turn: Sequence[Message] = ()
    requests: int = 0
    traced: bool = True
    knows_states: bool = True

    @property
    def goal(self) -> Message | None:
        """The goal of the run; None if it is not in the memory any more."""
        return next((message for message in self.turn if message.role is Role.USER), None)

    @property
    def was_cut(self) -> bool:
        """Whether something other than the net has ended the run, or nothing has."""
        return self.status == "running" or self.stop_reason in WITHOUT_END

    @property
    def ended(self) -> bool:
        """Whether the net has ended the run."""
        return self.status == "ended" and not self.was_cut


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
    _note_traced(run, await stored.tool_results(run_id=wanted))
    if not calls:
        run.calls = _calls_in(run)
    return run


def _note_traced(run: RecordedRun, results: Iterable[ToolResultRecord]) -> None:
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
            _note_messages(run, [message], call.branch)  # such as that a call is in doubt


def _shows(message: Message, result: RecordedResult) -> bool:
    """Return whether a model saw ``result``, whole or shortened."""
    return message.content == result.content or CUT in message.content


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
    run = RecordedRun(run_id, start, calls)
    run.states = {call.move: call.state or "" for call in calls if not call.path}
    run.moves, run.status, run.knows_states = control.moves, control.status, False
    run.requests = control.spent.requests
    run.stop_reason, run.turn = control.stop_reason, await memory.turn()
    _note_messages(run, snapshot.messages[at + 1 :])
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
    _Reader(run).read([e for e in entries if mine[0].seq <= e.seq], mine)
    last = _data(mine[-1])
    run.moves, run.status = last.get("moves", 0), last.get("status", "running")
    run.stop_reason = last.get("stop_reason")
    run.requests = last.get("spent", {}).get("requests", 0)
    at_end = await memory.as_of(mine[-1].seq)
    run.turn = await at_end.turn()
    return run


def _check_traced(run_id: str, steps: Sequence[Entry], calls: Sequence[ModelCallRecord]) -> None:
    """Check that a run was traced as a whole, or not at all.

    Raises:
        ReplayError: Some of its model calls were not recorded.
    """
    numbers, before, last = [call.number for call in calls], 0, steps[0].seq
    for step in steps if calls else ():
        data = _data(step)
        requests = data.get("spent", {}).get("requests", 0)
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


def _data(entry: Entry) -> dict[str, Any]:
    return cast("dict[str, Any]", entry.data)


class _Reader:
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
                _note_messages(self._run, [Message.model_validate(data["call"]["result"])])
                self._note_args(data["call"]["action"])
            elif entry.kind in MESSAGES:
                message = decode(json.dumps(data), entry.seq)
                _note_messages(self._run, [message], seq=entry.seq)
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


def _note_messages(
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
