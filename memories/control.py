"""The state of a run: the part of a memory that the Brain and the states write, as plain data."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from enum import Enum
from fnmatch import fnmatchcase
from functools import cached_property
from typing import Any, Literal, cast

from pydantic import BaseModel, Field, JsonValue

from agent_brain.common.ids import new_id
from agent_brain.common.models import assembler, maker_of_defaults
from agent_brain.common.text import to_text
from agent_brain.memories.errors import ScratchError
from agent_brain.memories.message import Message
from agent_brain.memories.runs.calls import Call, forgotten, uncertain
from agent_brain.memories.runs.counts import SPENT, Counts, Spent, values_of
from agent_brain.memories.runs.human_requests import Decision, HumanRequests, key_of_branch
from agent_brain.memories.runs.scratch import JsonDict, Scratch
from agent_brain.tools.action import Action

_OUTPUT = "?output"
"""Behind the path of a net in ``Control.ended``: it has made an output."""
_SAID = "?said"
"""Behind the path of a net in ``Control.ended``: what it has said, and no message holds."""

_UNSTORED = ("hint", "proposed", "uncounted", "asked", "has_new_output")
"""What ``vars`` of a control may have besides its fields."""

READ_RESULT = "read_result"
"""The tool that reads the rest of a result that was shortened."""

SUSPENDED = ("approval", "input", "paused", "sleeping")
"""Why a run has stopped that waits: it can be continued as it is."""


class ToolScope(BaseModel, defer_build=True):
    """Which of the memory's tools a run may see, by names and patterns such as ``"fs_*"``."""

    allow: list[str] | None = None
    deny: list[str] = Field(default_factory=list)

    def allows(self, name: str) -> bool:
        """Whether the tool of that name may be seen."""
        if self.allow is not None and not any(fnmatchcase(name, p) for p in self.allow):
            return False
        return not any(fnmatchcase(name, p) for p in self.deny)


class Control(BaseModel, defer_build=True):
    """The registers of the state machine.

    Attributes:
        run_id: The current run, or the last one.
        branch: The branch of the run that this memory belongs to; empty for the run's own memory.
        status: Whether a run is in progress, or was when its process was killed; waits, for a
            person, for a time or to be resumed after a pause; or has ended. ``"idle"`` before the
            first.
        state: Name of the current or next state (a member's name in the net's Enum).
        step: Number of steps completed in this run, with those of its branches.
        moves: Number of steps completed on this memory in this run.
        done: A state has reported that the goal is reached.
        stop_reason: Why the last run ended.
        next_actions: Requested tool calls that have no result yet.
        subnets: The current state of each net inside the state, by its path.
        ended: Answers of the nets inside the state that have ended, by their paths; which of the
            nets have set ``output``; and what nets have said that no message holds, for the run's
            own net under ``""``.
        pending: Calls that have begun, by ID, with the results that are available.
        output: The validated output of the run, if the net makes one.
        output_class: The name of its class, for where it is stored as JSON.
        finish_reason: Why the model response that gave the answer of the run ended.
        spent: Tokens, cost and time of this run, with those of its branches.
        counted: What ``step`` and ``spent`` have of each branch of the current step, by its name.
        fingerprints: Fingerprints of the last steps, which show that a run repeats itself.
        hint_count: How many hints in a row the run was given because it repeated itself.
        scratch: Data that states keep between steps, as JSON values; emptied when a run begins.
        session: The same for data that lasts from run to run, until the memory is cleared.
        human_requests: What a person is asked in this step, if anything, also by its branches.
        error: Why the last state with an ``on_error`` edge failed: the text of its error. None
            after a step that succeeded.
        failure: Why the run has failed: the text of its error. None unless it has.
        tool_scope: Which tools are offered; None for all. Kept from run to run.
        found_tools: Names of the tools that a model has searched for and found, in that order, and
            of the one that reads the rest of a result, once one was shortened. Kept from run to
            run.
        wake_at: When a run that sleeps must be resumed.
        entered: The nets, by their paths, whose current state was entered before the run waited in
            it: its ``on_enter`` is not called again.
        dry_run: Calls are validated but not executed.
    """

    run_id: str | None = None
    branch: str = ""
    status: Literal["idle", "running", "waiting", "ended"] = "idle"
    state: str | None = None
    step: int = 0
    moves: int = 0
    done: bool = False
    stop_reason: str | None = None
    next_actions: list[Action] = Field(default_factory=list)
    subnets: dict[str, str] = Field(default_factory=dict)
    ended: dict[str, str] = Field(default_factory=dict)
    pending: dict[str, Call] = Field(default_factory=dict)
    output: Any = None
    output_class: str | None = None
    finish_reason: str | None = None
    spent: Spent = Field(default_factory=Spent)
    counted: dict[str, Counts] = Field(default_factory=dict)
    fingerprints: list[str] = Field(default_factory=list)
    hint_count: int = 0
    scratch: JsonDict = Field(default_factory=Scratch)
    session: JsonDict = Field(default_factory=Scratch)
    human_requests: HumanRequests | None = None
    error: str | None = None
    failure: str | None = None
    wake_at: datetime | None = None
    entered: list[str] = Field(default_factory=list)
    tool_scope: ToolScope | None = None
    found_tools: list[str] = Field(default_factory=list)
    dry_run: bool = False

    # No more fields: a dict of 30 names does not share its table of them. What is not stored is not
    # a field either; a name that is added here is added to _UNSTORED too.

    @property
    def results_cut(self) -> bool:
        """A result was shortened, so the tool that reads the rest is offered."""
        return READ_RESULT in self.found_tools

    @results_cut.setter
    def results_cut(self, cut: bool) -> None:
        others = [name for name in self.found_tools if name != READ_RESULT]
        self.found_tools = [*others, READ_RESULT] if cut else others

    @property
    def hint(self) -> str | None:
        """Shown to the model once, by the next state that calls one; never stored."""
        return cast("str | None", vars(self).get("hint"))

    @hint.setter
    def hint(self, hint: str | None) -> None:
        vars(self)["hint"] = hint

    @property
    def proposed(self) -> Enum | None:
        """What a function that is a state has chosen to come next; not stored."""
        return cast("Enum | None", vars(self).get("proposed"))

    @proposed.setter
    def proposed(self, state: Enum | None) -> None:
        vars(self)["proposed"] = state

    @cached_property
    def uncounted(self) -> dict[str, Counts]:
        """What the branches have besides ``counted``; not stored, as a branch stores its own."""
        return {}

    @property
    def asked(self) -> Mapping[str, int]:
        """How many questions each state has asked since it began to run; not stored."""
        return cast("Mapping[str, int]", vars(self).get("asked", {}))

    @asked.setter
    def asked(self, asked: Mapping[str, int]) -> None:
        vars(self)["asked"] = asked

    @property
    def input(self) -> str | None:
        """The person's answer to the question of the current state; None if there is none."""
        answer = self.answer_to("")
        return None if answer is None else to_text(answer)

    @property
    def resumable(self) -> bool:
        """Whether there is a run to resume, if none is in progress.

        It waits, was interrupted with its process, or has ended before its net did.
        """
        if self.run_id is None or self.state is None:
            return False
        return self.status in ("running", "waiting") or (self.status == "ended" and not self.done)

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("scratch", "session") and type(value) is not Scratch:
            value = Scratch(value)
        elif name == "output":
            vars(self).update(
                output_class=None if value is None else type(value).__name__, has_new_output=True
            )
        super().__setattr__(name, value)

    @classmethod
    def fresh(cls) -> Control:
        """Return what ``Control()`` returns, without validation and the schema it needs."""
        return _assemble(_defaults())

    # -- the run ----------------------------------------------------------------------------------

    def begin(self, run_id: str, state: str) -> None:
        """Set all registers for a new run and empty ``scratch``.

        What belongs to the session stays: ``session``, which tools are offered, shortened results.
        """
        registers = vars(self)
        for name in _UNSTORED:
            registers.pop(name, None)
        registers.update(_defaults_of_run(), run_id=run_id, status="running", state=state)

    def branch_name(self, key: str) -> str:
        """Return what identifies a branch of the current step in the run, also after a crash.

        Args:
            key: The names of the states and branches around the branch, and its own.
        """
        outer = self.branch.rpartition("@")[2]
        return f"{key}@{outer}.{self.moves}" if outer else f"{key}@{self.moves}"

    def begin_branch(self, run_id: str, main: Control, name: str, state: str) -> None:
        """Begin as the registers of a branch of the run that ``main`` belongs to.

        Args:
            run_id: The ID of the run.
            main: The registers of the run's own memory.
            name: What :meth:`branch_name` of the net around it returned.
            state: The name of the state that it begins in.
        """
        self.begin(run_id, state)
        self.branch = name
        self.dry_run = main.dry_run

    def is_branch(self, run_id: str, name: str) -> bool:
        """Return whether these are the registers of a branch that the run was interrupted in."""
        return self.run_id == run_id and self.branch == name

    def resume(self) -> None:
        """Continue a run that has stopped."""
        self.count_rest()
        vars(self).update(status="running", stop_reason=None, failure=None, wake_at=None)
        vars(self).pop("asked", None)
        if self.human_requests is not None:
            self.human_requests.reopen()

    def sleep(self, until: datetime) -> None:
        """Record that the run waits for a time; the earliest counts."""
        self.wake_at = until if self.wake_at is None else min(self.wake_at, until)

    def stop(self, reason: str, *, seconds: float, reached_end: bool) -> None:
        """Record that the run stops.

        Args:
            reason: Why. Those of ``SUSPENDED`` leave the run waiting.
            seconds: How long it took so far.
            reached_end: The net has come to its end. Otherwise ``done`` is reset, as the step that
                may have set it was interrupted and is repeated on resume.
        """
        status = "waiting" if reason in SUSPENDED else "ended"
        vars(self).update(status=status, stop_reason=reason)
        if self.pending or "uncounted" in vars(self):
            self.count_rest()
        if reason == "paused":  # until somebody resumes it
            self.wake_at = None
        if not reached_end:
            self.done = False
        self.spent.seconds = seconds

    def abort(self) -> None:
        """End a run that cannot continue, as something that it held was deleted."""
        self.empty()
        vars(self).update(status="ended", state=None, stop_reason="cancelled", subnets={})

    def empty(self) -> None:
        """Remove the data of the run: output, scratch, calls and requests."""
        registers = vars(self)
        for name in _UNSTORED:
            registers.pop(name, None)
        registers.update(
            output=None,
            output_class=None,
            scratch=Scratch(),
            next_actions=[],
            pending={},
            ended={},
            counted={},
            human_requests=None,
            error=None,
            failure=None,
        )

    def advance(self, state: str | None, *, left: str = "", error: str | None = None) -> None:
        """Complete a step. ``state`` comes next; None if the net has ended.

        Args:
            state: The name of the next state.
            left: The state that is left.
            error: The text of the error that the state raised, if it failed.

        Raises:
            ScratchError: As :meth:`check_notes`.
        """
        registers = vars(self)  # no validated writes: this is the hot path
        if registers["scratch"].nested is not None or registers["session"].nested is not None:
            self.check_notes(left)
        registers.pop("hint", None)
        registers.pop("has_new_output", None)
        registers["error"] = error
        registers["step"] += 1
        registers["moves"] += 1
        if ended := registers["ended"]:
            registers["ended"] = {"": ended[""]} if "" in ended else {}
            registers.pop("asked", None)
        if registers["counted"] or "uncounted" in registers:
            registers["counted"] = {}
            registers.pop("uncounted", None)
        if registers["human_requests"] is not None:  # they belonged to the step
            registers["human_requests"] = None
            registers.pop("asked", None)
        if state is None:
            registers["done"] = True
        else:
            registers["state"] = state

    def advance_subnet(
        self,
        path: str,
        state: str | None,
        answer: str,
        *,
        error: str | None = None,
    ) -> None:
        """Complete a step of a net inside the current state; the budget of the run counts it.

        Args:
            path: Its path: the names of the states and branches around it, joined by ``/``.
            state: The state that comes next; None at its end.
            answer: What it has said, for its end.
            error: The text of the error that the state raised, if it failed.
        """
        vars(self)["moves"] += 1
        vars(self).update(error=error, human_requests=None, counted={})
        for name in ("hint", "uncounted"):
            vars(self).pop(name, None)
        inside = f"{path}/"
        made = vars(self).pop("has_new_output", False)
        for ended in [key for key in self.ended if key.startswith(inside)]:
            made = made or ended.endswith(_OUTPUT)
            del self.ended[ended]
        if made:
            self.ended[path + _OUTPUT] = ""
        if self.asked:
            self.asked = {k: n for k, n in self.asked.items() if not k.startswith(inside)}
        if state is not None:
            self.subnets[path] = state
            return
        self.subnets.pop(path, None)
        self.ended[path] = answer
        self.done = False  # it was set by the net that has ended, not by the net around it

    def note_said(self, path: str, text: str | None) -> None:
        """Keep the last text that a net has said, for a run that continues.

        Args:
            path: As for :meth:`advance_subnet`; empty for the run's own net.
            text: The text; None if a message holds it.
        """
        key = path + _SAID if path else ""
        if text is not None:
            self.ended[key] = text
        elif key in self.ended:
            del self.ended[key]

    def said_in(self, path: str) -> str | None:
        """Return what :meth:`note_said` keeps for a net inside; None if a message holds it."""
        return self.ended.get(path + _SAID)

    def has_output_of(self, path: str) -> bool:
        """Return whether a net inside the current state has set ``output``, be it to None."""
        return path + _OUTPUT in self.ended

    def check_notes(self, state: str) -> None:
        """Check what ``state`` put into lists and dicts of ``scratch`` and ``session``.

        Raises:
            ScratchError: It is not a JSON value; it is removed.
        """
        registers = vars(self)  # the hot path
        scratch, session = registers["scratch"], registers["session"]
        if scratch.nested is session.nested is None:
            return
        try:
            scratch.check()
            session.check()
        except ScratchError as error:
            error.state = state
            raise

    def give_hint(self, hint: str, *, keep: int) -> None:
        """Set the hint for the next model call, and keep the last ``keep`` fingerprints only."""
        vars(self).update(hint=hint, hint_count=self.hint_count + 1)
        del self.fingerprints[:-keep]

    # -- counts -----------------------------------------------------------------------------------

    def inside(self, branch: str) -> Counts:
        """Return what is counted of a branch and not stored here; it is added to that."""
        return self.uncounted.setdefault(branch, Counts())

    def count_branch(self, branch: str) -> None:
        """Take what a branch has used as counted: it has ended, or what is left of it is lost."""
        if (more := self.uncounted.pop(branch, None)) is not None:
            self.counted[branch] = self.counted.get(branch, Counts()).plus(more)

    def count_rest(self) -> None:
        """Take everything as counted: the run stops, or continues from what is stored."""
        for branch in [*self.uncounted]:
            self.count_branch(branch)
        self._count_due()

    def _count_due(self) -> None:
        for call in self.pending.values():
            if call.uncounted:
                self.spent.tool_calls += 1
                call.uncounted = False

    def take_counts(self, branches: dict[str, Counts]) -> None:
        """Add what branches have used before they were interrupted, as far as it is not counted.

        Args:
            branches: What they have stored, by name.
        """
        for name, counts in branches.items():
            if self.status == "running" or name in self.counted:
                more = counts.beyond(self.counted.get(name, Counts()))
                self.step += more.step
                self.spent = self.spent.plus(Spent(**more.as_data()))
        self.counted = dict(branches)
        self.uncounted.clear()

    def counts(self) -> dict[str, Any]:
        """Return ``step`` and ``spent`` as data to store: without what branches store."""
        step, spent = self.step, dict(zip(SPENT, values_of(self.spent), strict=True))
        for inside in vars(self).get("uncounted", {}).values():
            step -= inside.step
            for name in spent:
                spent[name] -= getattr(inside, name)
        for call in self.pending.values():
            spent["tool_calls"] += call.uncounted
        return {"step": step, "spent": spent}

    # -- tool calls -------------------------------------------------------------------------------

    def request_calls(self, actions: Iterable[Action]) -> None:
        """Record the tool calls to run next, in place of all others."""
        vars(self)["next_actions"] = list(actions)

    def begin_calls(self, actions: Iterable[Action], *, continue_: bool = False) -> None:
        """Record that calls begin.

        Args:
            actions: The calls.
            continue_: They run on memories that are kept, and continue there if they are cut off.
        """
        for action in actions:
            self.pending[action.id] = Call(action=action, continues=continue_)
            if self.human_requests is not None and action.id in self.human_requests.uncertain:
                self.human_requests.uncertain.remove(action.id)  # asked again, if need be

    def finish_call(self, action: Action, result: Message, *, reported: bool = False) -> None:
        """Record the result of a call.

        Args:
            action: The call.
            result: Its result.
            reported: The event of its end was streamed.
        """
        known = self.pending.get(action.id)
        uncounted = known is not None and known.uncounted
        self.pending[action.id] = Call(action, result, reported=reported, uncounted=uncounted)

    def note_results(self, results: Iterable[Message]) -> None:
        """Record results of calls of which it was only recorded that they had begun."""
        for result in results:
            call = self.pending.get(result.tool_call_id or "")
            if call is not None and call.result is None:
                self.finish_call(call.action, result, reported=True)

    def withdraw_call(self, action: Action) -> None:
        """Remove the record that a call has begun: it had no effect, and will run again."""
        self.pending.pop(action.id, None)

    def close_calls(self) -> None:
        """Remove the calls of a round, once every call has its result."""
        if self.pending:
            self._count_due()
        vars(self).update(next_actions=[], pending={}, human_requests=None)

    def forget_calls(self, calls: Collection[str]) -> bool:
        """Remove the calls of these IDs; return whether any of them was open."""
        begun = self.pending.keys() & set(calls)
        for call_id in begun:
            del self.pending[call_id]
        left = [action for action in self.next_actions if action.id not in calls]
        was_open = bool(begun) or len(left) < len(self.next_actions)
        self.request_calls(left)
        if self.human_requests is not None:
            self.human_requests.forget(calls)
        return was_open

    def result_of(self, call: Action, why: str) -> Message:
        """Return the result to record for a call of a run that does not continue with it.

        That is the result of a call that has finished, and an error for the model otherwise. The
        error of a call that had begun never says that it was not run.

        Args:
            call: The call.
            why: What keeps it from running, as a clause: "the run was cancelled".
        """
        begun = self.pending.get(call.id)
        if begun is None and self.status == "ended" and self.state is None:  # by abort()
            return Message.tool(forgotten(call), call, is_error=True)
        if begun is None:
            return Message.tool(f"The call was not run: {why}", call, is_error=True)
        return begun.result or Message.tool(uncertain(call), call, is_error=True)

    # -- people -----------------------------------------------------------------------------------

    def request_approval(self, actions: Iterable[Action], uncertain: Iterable[str] = ()) -> None:
        """Record that calls wait for a person's decision.

        Args:
            actions: The calls, perhaps with other arguments than the model's: those are run then.
            uncertain: IDs of those that may have taken effect; earlier decisions about them do not
                count.
        """
        actions, known = [*actions], {action.id: action.args for action in self.next_actions}
        changed = {a.id: dict(a.args) for a in actions if known.get(a.id, a.args) != a.args}
        self._requests().ask_approval(actions, uncertain, changed)

    def request_input(
        self, question_id: str, prompt: str, schema: dict[str, Any] | None = None
    ) -> None:
        """Record that a question waits for a person's answer, which fits the schema."""
        calls = [action for action in self.next_actions if action.id == question_id]
        self._requests().ask(question_id, prompt, schema, calls)

    def run_again(self, action: Action, answers: list[JsonValue]) -> None:
        """Record that a call, whose question waits, runs again with its answers."""
        self._requests().again[action.id] = answers

    def wait_in_branch(self, reason: str) -> None:
        """Record that a branch waits for a person."""
        self.stop(reason, seconds=self.spent.seconds, reached_end=False)
        self._requests().wait = new_id("wait")

    def collect_requests(self, branch: Control, *, foreign: Collection[str] = ()) -> None:
        """Record what a branch of the current step waits for.

        Args:
            branch: The registers of the branch.
            foreign: Names of the tools of the branch that this memory does not have.
        """
        if branch.human_requests is not None:
            key = key_of_branch(branch.branch)
            self._requests().add_branch(
                branch.branch,
                branch.human_requests,
                path=max(branch.subnets, key=len, default=key).split("/"),
                taken=[action.id for action in self.next_actions],
                foreign=foreign,
            )

    def take_answers(self, outer: Control) -> bool:
        """Take what was decided about this branch, which waits; return whether anything was.

        Args:
            outer: The registers of the net around it.
        """
        own, asked = self.human_requests, outer.human_requests
        if own is None or asked is None:
            return False
        decisions, answers = asked.of_branch(self.branch, own.wait)
        own.record(decisions, answers)
        return bool(decisions or answers)

    def waiting_calls(self) -> list[Action]:
        """Return the calls that wait for a person's decision, in branches too."""
        requests = self.human_requests
        if requests is None:
            return []
        known = {action.id: action for action in (*self.next_actions, *requests.calls)}
        return [known.get(i) or Action(name="a tool", id=i) for i in requests.approvals]

    def decision_on(self, action: Action) -> Decision | None:
        """Return what a person decided about a call; None if they have not."""
        requests = self.human_requests
        return None if requests is None else requests.decisions.get(action.id)

    def is_uncertain(self, action: Action) -> bool:
        """Return whether a person is asked, or was asked, if a call runs again."""
        requests = self.human_requests
        return requests is not None and action.id in requests.uncertain

    def answer_to(self, question_id: str) -> JsonValue:
        """Return a person's answer to a question; None if they have not answered."""
        requests = self.human_requests
        return None if requests is None else requests.answers.get(question_id)

    def has_answer(self, question_id: str) -> bool:
        """Return whether a person has answered a question; the answer may be null."""
        requests = self.human_requests
        return requests is not None and question_id in requests.answers

    def _requests(self) -> HumanRequests:
        if self.human_requests is None:
            self.human_requests = HumanRequests()
        return self.human_requests


_OF_SESSION = ("session", "tool_scope", "found_tools", "dry_run")
_assemble, _defaults = assembler(Control), maker_of_defaults(Control)
_defaults_of_run = maker_of_defaults(Control, without=_OF_SESSION)
