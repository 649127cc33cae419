"""Replay: a recorded run again, with its recorded responses and results, and the net of today."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agent_brain.human_input import Decisions
from agent_brain.limits import WAITING, Limits
from agent_brain.memories.base import Memory
from agent_brain.memories.control import HumanRequests
from agent_brain.memories.message import Message
from agent_brain.nets.net import Net
from agent_brain.read_recorded_run import read_run
from agent_brain.recorded_run import RecordedRun
from agent_brain.replay_player import Difference, Player, RecordedTool, Results
from agent_brain.replayed_events import ReplayedEvents
from agent_brain.result import Result
from agent_brain.run import Run, RunPlan
from agent_brain.states.events import Event, StateEntered
from agent_brain.states.models.interception import without_real_calls
from agent_brain.states.request_diff import describe_request
from agent_brain.states.sent_request import RequestReader, data_of, hide_secrets
from agent_brain.tools.text import to_compact_json
from agent_brain.tools.wake import ahead_of_time

if TYPE_CHECKING:
    from agent_brain.brain import Brain

UNLIMITED = Limits(
    max_steps=None, max_tokens=None, max_cost=None, max_tool_calls=None, timeout=None
)


@dataclass(frozen=True, slots=True)
class Replay:
    """How a replayed run compares with the recorded one.

    Attributes:
        run_id: The run.
        difference: Where it first differs; None if it does not.
        requests: How many requests to models were equal.
        states: The states that were entered, without those of subnets and branches.
        complete: Whether the recorded run had come to its end; otherwise the replay ends where the
            recorded run was cut off, or still waits.
        traced: Whether requests were recorded; if not, only responses were, and requests are not
            compared.
        events: The events of the replay, as those of one run that did not stop in between:
            :func:`agent_brain.testing.export_test` makes a test of them.
    """

    run_id: str
    difference: Difference | None
    requests: int
    states: Sequence[str]
    complete: bool
    traced: bool = True
    events: Sequence[Event] = ()

    @property
    def equal(self) -> bool:
        """Whether nothing differs."""
        return self.difference is None

    def __str__(self) -> str:
        if self.difference is not None:
            return str(self.difference)
        what = "requests are equal" if self.traced else "responses were used; it was not traced"
        cut = "" if self.complete else ", as far as the run was recorded"
        return f"No difference in {len(self.states)} states{cut}: {self.requests} {what}"

    def to_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        found = self.difference
        return {
            "run_id": self.run_id,
            "equal": self.equal,
            "requests": self.requests,
            "states": [*self.states],
            "complete": self.complete,
            "traced": self.traced,
            "difference": None
            if found is None
            else {
                "kind": found.kind,
                "expected": found.expected,
                "found": found.found,
                "step": found.step,
                "state": found.state,
                "path": [*found.path],
                "diff": found.diff,
            },
        }


async def replay_run(brain: Brain[Any], run_id: str | None, deps: object) -> Replay:
    """Replay a run of the memory of ``brain``; see :meth:`Brain.replay`."""
    recorded = await read_run(brain.memory, run_id)
    async with recorded.start as memory:
        replaying = _Replaying(brain, recorded, memory, deps)
        with without_real_calls("no model is asked in a replay: only calls of states are recorded"):
            difference = await replaying.run()
    return Replay(
        recorded.run_id,
        difference,
        replaying.player.made,
        replaying.states,
        recorded.ended,
        recorded.traced,
        replaying.events.as_one_run(recorded.goal, brain.net.name),
    )


class _Replaying:
    """A replay in progress."""

    def __init__(
        self, brain: Brain[Any], recorded: RecordedRun, memory: Memory, deps: object
    ) -> None:
        self._recorded = recorded
        self._net: Net = brain.net
        self._memory = memory
        self._deps = deps
        self.player = Player(recorded)
        self.states: list[str] = []
        results = Results(recorded)
        own = dict(memory.available_tools)
        memory.available_tools.clear()  # a model is offered them in this order
        for name, tool in brain.memory.available_tools.items():
            is_own = own.get(name, tool) is not tool  # such as the tools of a to-do list
            recorded_tool = RecordedTool(tool, results, self.player)
            memory.available_tools[name] = own[name] if is_own else recorded_tool
        self._plan = RunPlan(
            brain.net,
            memory,
            _timeless(brain.limits),
            brain.stuck,
            dry_run=memory.control.dry_run,
            hooks=brain.hooks,
            pauses=brain.on_uncertain == "pause",
            trace=lambda _: self.player,
        )
        self.events = ReplayedEvents()
        self._used: set[tuple[int, str]] = set()  # decisions and answers, by moves and ID
        self._error: Exception | None = None
        self._at: StateEntered | None = None

    async def run(self) -> Difference | None:
        """Run to the end; return the first difference."""
        player, control = self.player, self._memory.control
        began = self._recorded.states.get(0, control.state)
        if began != self._net.initial.name:
            return Difference("state", str(began), self._net.initial.name)
        if control.run_id != self._recorded.run_id or control.status != "running":
            control.begin(self._recorded.run_id, self._net.initial.name)
        with ahead_of_time() as ahead:
            result = await self._drive(Decisions(), self._plan)
            while result is not None and not player.stopped:
                following = self._following(result)
                if following is None:
                    break
                ahead.to = result.wake_at
                result = await self._drive(*following)
        if player.difference is not None or player.at_end:
            return player.difference
        return await self._end(result)

    async def _drive(self, decisions: Decisions, plan: RunPlan) -> Result[Any] | None:
        """Run until the run stops, or differs; return its result, if it has one."""
        run = Run[Any](plan, None, decisions, deps=self._deps)
        self._send(run, self._memory.control.moves)
        try:
            async with run:
                async for event in run:
                    self.events.add(event)
                    self._check(event, run)
                    if self.player.stopped:
                        return None
        except Exception as error:
            self._error = error
            return None
        return run.result

    def _send(self, run: Run[Any], moves: int) -> None:
        """Send the run what it was sent before it made another move."""
        for message in self._recorded.sent.pop(moves, ()):
            run.send(message)

    def _check(self, event: Event, run: Run[Any]) -> None:
        if event.kind == "state_exited" and not event.path:
            self._send(run, self._memory.control.moves)
        if event.kind != "state_entered":
            return
        if event.path:
            self.player.visited.add(event.path)
            return
        assert isinstance(event, StateEntered)
        self._at = event
        state, moves = str(event.state), self._memory.control.moves
        recorded = self._recorded
        expected = recorded.states.get(moves)
        known = recorded.knows_states
        if moves > recorded.moves and recorded.was_cut:
            self.player.at_end = True
        elif (expected is not None and expected != state) or (
            expected is None and known and moves >= recorded.moves
        ):
            end = f"the end ({recorded.stop_reason})"
            self.player.differs(
                Difference("state", expected or end, state, event.step, self._before, ())
            )
        else:
            self.states.append(state)

    @property
    def _before(self) -> str | None:
        return self.states[-1] if self.states else None

    def _following(self, result: Result[Any]) -> tuple[Decisions, RunPlan] | None:
        """Return how the recorded run went on after a stop; None if it did not."""
        recorded, control = self._recorded, self._memory.control
        if result.stop_reason in WAITING:
            found = self._decisions(control.human_requests or HumanRequests(), control.moves)
            return None if found is None else (found, self._plan)
        over = control.done or control.moves >= recorded.moves
        if over or result.stop_reason == recorded.stop_reason:
            return None
        return Decisions(), _without_limits(self._plan)  # it was resumed with other limits

    def _decisions(self, asked: HumanRequests, moves: int) -> Decisions | None:
        """Return what a person had decided; None if nobody has."""
        recorded = self._recorded
        known, answers = recorded.decisions[moves] or recorded.decided, recorded.answers[moves]
        decided = self._matched(asked.approvals, known, moves)
        answered = self._matched([*asked.questions], answers, moves)
        if not decided and not answered:
            return None
        return Decisions(
            approve=[i for i, d in decided.items() if d.approved and d.args is None] or None,
            deny={i: d.reason for i, d in decided.items() if not d.approved} or None,
            edit={i: d.args for i, d in decided.items() if d.approved and d.args is not None}
            or None,
            input=answered or None,
        )

    def _matched(self, ids: Sequence[str], known: dict[str, Any], moves: int) -> dict[str, Any]:
        """Return what is known by ID, or else, where IDs differ from run to run, by order."""
        found = {i: i for i in ids if i in known}
        if not found:
            found = dict(zip(ids, (i for i in known if (moves, i) not in self._used), strict=False))
        self._used.update((moves, i) for i in found.values())
        return {i: known[of] for i, of in found.items()}

    async def _end(self, result: Result[Any] | None) -> Difference | None:
        """Compare how both runs have ended."""
        recorded = self._recorded
        expected = f"it {_ending(recorded.status, recorded.stop_reason)}"
        step, state = (0, None) if self._at is None else (self._at.step, self._at.state)
        if result is None:
            if recorded.stop_reason == "failed":
                return None
            error = self._error
            return Difference("end", expected, f"{type(error).__name__}: {error}", step, state)
        if recorded.was_cut:
            return None
        if result.stop_reason != recorded.stop_reason:
            found = f"it {_ending(self._memory.control.status, result.stop_reason)}"
            return Difference("end", expected, found, step, state)
        if (left := self.player.left()) is not None:
            asked = describe_request(data_of(left))
            return Difference(
                "request", f"a model call: {asked}", "no model call", left.step, left.state,
                left.path,
            )  # fmt: skip
        return self._compare_messages(result, step, state)

    def _compare_messages(
        self, result: Result[Any], step: int, state: str | None
    ) -> Difference | None:
        reader = RequestReader()

        def said(messages: Sequence[Message]) -> list[str]:
            hidden = [hide_secrets(m, reader.scrubber_of(None)) for m in messages]
            return [_brief(message) for message in hidden]

        before, now = said(self._recorded.turn), said(result.messages)
        for index in range(max(len(before), len(now))):
            expected = before[index] if index < len(before) else "no message"
            found = now[index] if index < len(now) else "no message"
            if expected != found:
                return Difference("message", expected, found, step, state)
        return None


def _brief(message: Message) -> str:
    calls = ", ".join(f"{call.name}({to_compact_json(call.args)})" for call in message.tool_calls)
    return ": ".join(filter(None, (message.role.value, message.content, calls)))


def _ending(status: str, stop_reason: object) -> str:
    if status == "waiting":
        return f"waits ({stop_reason})"
    return f"ended ({stop_reason})" if status == "ended" else "was interrupted"


def _timeless(limits: Limits) -> Limits:
    return replace(limits, timeout=None)


def _without_limits(plan: RunPlan) -> RunPlan:
    return replace(plan, limits=UNLIMITED)
