"""Replay: a recorded run again, with its recorded responses and results, and the net as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import zip_longest
from typing import Any

from agent_brain.human_input import Decisions
from agent_brain.limits import WAITING, Limits
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.memories.tool_search import ToolSearch
from agent_brain.nets.net import Net
from agent_brain.recording.player import Difference, Player, written
from agent_brain.recording.run import RecordedRun, read_run
from agent_brain.result import Result
from agent_brain.run import Run, RunPlan
from agent_brain.states.events import Event, Position, RunStarted
from agent_brain.states.models.call_data import RequestReader, describe_request, hide_secrets
from agent_brain.states.models.interception import without_real_calls
from agent_brain.tools.wake import ahead_of_time

OF_CALLS = ("action_started", "action_finished", "tool_progress")
ASKING = ("approval_requested", "input_requested")
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
        names = ("run_id", "equal", "requests", "complete", "traced")
        found = self.difference
        return {name: getattr(self, name) for name in names} | {
            "states": [*self.states],
            "difference": None if found is None else {**asdict(found), "path": [*found.path]},
        }


async def replay_run(plan: RunPlan, run_id: str | None) -> Replay:
    """Replay a run of the memory of ``plan``; see :meth:`Brain.replay`."""
    recorded, start = await read_run(plan.memory, run_id)
    async with start as memory:
        replaying = _Replaying(plan, recorded, memory)
        with without_real_calls("no model is asked in a replay: only calls of states are recorded"):
            difference = await replaying.run()
    return Replay(
        recorded.run_id,
        difference,
        replaying.player.made,
        replaying.states,
        recorded.ended,
        recorded.traced,
        replaying.events_of_one_run(),
    )


class _Replaying:
    """A replay in progress."""

    def __init__(self, plan: RunPlan, recorded: RecordedRun, memory: Memory) -> None:
        self._recorded = recorded
        self._net: Net = plan.net
        self._memory = memory
        self.player = Player(recorded)
        self.states: list[str] = []
        own = dict(memory.available_tools)
        memory.available_tools.clear()  # a model is offered them in this order
        for name, tool in plan.memory.available_tools.items():
            is_own = own.get(name, tool) is not tool  # such as the tools of a to-do list
            is_own = is_own or isinstance(tool, ToolSearch)  # decides what is offered
            memory.available_tools[name] = own[name] if is_own else self.player.tool(tool)
        self._plan = replace(
            plan,
            memory=memory,
            limits=replace(plan.limits, timeout=None),
            sources=(),
            dry_run=memory.control.dry_run,
            last_result=[None],
            trace=lambda _: self.player,
            tools=(*self.player.tools(plan.tools),),
        )
        self._events: list[Event] = []
        self._step = 0  # where those of the current step begin
        self._error: Exception | None = None
        self._at = Position()  # of the state that was entered last

    async def run(self) -> Difference | None:
        """Run to the end; return the first difference."""
        player, control = self.player, self._memory.control
        known = control.state if self._recorded.knows_states else self._net.initial.name
        began = self._recorded.states.get(0, known)
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
                self._drop_end(result)
                ahead.to = result.wake_at
                result = await self._drive(*following)
        if player.difference is not None or player.at_end:
            return player.difference
        return self._end(result)

    async def _drive(self, decisions: Decisions, plan: RunPlan) -> Result[Any] | None:
        """Run until the run stops, or differs; return its result, if it has one."""
        run = Run[Any](plan, None, decisions)
        self._send(run, self._memory.control.moves)
        try:
            async with run:
                async for event in run:
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
        moves, recorded = self._memory.control.moves, self._recorded
        if event.kind == "state_entered" and not event.path:
            self._step = len(self._events)
        if event.kind != "run_started":
            self._events.append(event)
        if event.kind == "state_exited" and not event.path:
            self._send(run, moves)
        if event.kind != "state_entered":
            return
        if event.path:
            self.player.visited.add(event.path)
            return
        self._at = event.at
        expected = recorded.states.get(moves)
        if expected is None and recorded.knows_states and moves >= recorded.control.moves:
            expected = f"the end ({recorded.control.stop_reason})"
        if moves > recorded.control.moves and recorded.was_cut:
            self.player.at_end = True
        elif expected not in (None, event.state):
            before = self.states[-1] if self.states else None
            self.player.differs(
                Difference("state", str(expected), str(event.state), event.step, before)
            )
        else:
            self.states.append(str(event.state))

    def _following(self, result: Result[Any]) -> tuple[Decisions, RunPlan] | None:
        """Return how the recorded run went on after a stop; None if it did not."""
        recorded, control = self._recorded, self._memory.control
        if result.stop_reason in WAITING:
            asked, known = control.human_requests, recorded.answers[control.moves]
            questions = [] if asked is None else asked.questions
            answers = {key: known[key] for key in questions if key in known}
            return (Decisions(input=answers), self._plan) if answers else None
        over = control.done or control.moves >= recorded.control.moves
        if over or result.stop_reason == recorded.control.stop_reason:
            return None
        return Decisions(), replace(self._plan, limits=UNLIMITED)  # it was resumed with others

    def _drop_end(self, result: Result[Any]) -> None:
        """Drop the event that the run has stopped, and what its last step did in vain.

        A step that waited for a person is repeated when the run is resumed: of what happened
        before, only the calls count.
        """
        del self._events[-1]
        if result.stop_reason in WAITING:
            step = self._events[self._step :]
            self._events[self._step :] = [event for event in step if event.kind in OF_CALLS]

    def events_of_one_run(self) -> list[Event]:
        """Return the events as those of a run that did not stop in between."""
        if not self._events:
            return []
        goal, at = self._recorded.goal, Position(self._events[0].at.run_id, 0)
        start = RunStarted(goal, self._net.name, resumed=False, at=at)
        return [start, *(event for event in self._events if event.kind not in ASKING)]

    def _end(self, result: Result[Any] | None) -> Difference | None:
        """Compare how both runs have ended."""
        recorded, control = self._recorded, self._memory.control
        end = recorded.control
        differ = partial(Difference, step=self._at.step, state=self._at.state)
        expected = f"it {_ending(end.status, end.stop_reason)}"
        if result is None:
            error = f"{type(self._error).__name__}: {self._error}"
            return None if end.stop_reason == "failed" else differ("end", expected, error)
        both_wait = control.status == end.status == "waiting"
        if recorded.was_cut or (both_wait and control.moves == end.moves):
            return None
        if result.stop_reason != end.stop_reason:
            return differ("end", expected, f"it {_ending(control.status, result.stop_reason)}")
        if (left := self.player.left()) is not None:
            asked, place = f"a model call: {describe_request(left)}", (left.step, left.state)
            return Difference("request", asked, "no model call", *place, left.path)
        scrubber = RequestReader().scrubber_of(None)
        for before, now in zip_longest(recorded.turn, result.messages):
            was, came = (_brief(m and hide_secrets(m, scrubber)) for m in (before, now))
            if was != came:
                return differ("message", was, came)
        return None


def _brief(message: Message | None) -> str:
    if message is None:
        return "no message"
    calls = ", ".join(map(written, message.tool_calls))
    return ": ".join(filter(None, (message.role.value, message.content, calls)))


def _ending(status: str, stop_reason: object) -> str:
    if status == "waiting":
        return f"waits ({stop_reason})"
    return f"ended ({stop_reason})" if status == "ended" else "was interrupted"
