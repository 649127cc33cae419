"""Where a run stands: the part of a memory that the Brain and the states write, as plain data."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue

from agent_brain.memories.errors import ScratchError
from agent_brain.memories.message import Message
from agent_brain.memories.store.scratch import JsonDict, Scratch
from agent_brain.tools.action import Action
from agent_brain.tools.models import maker_of_defaults


@dataclass(slots=True)
class Spent:
    """What a run has used so far; limits go on counting from it after a resume.

    Attributes:
        input_tokens: Tokens read by models.
        output_tokens: Tokens written by models.
        cost: US dollars, for the calls whose price is known.
        unpriced: Model calls whose price is unknown.
        estimated: Model calls whose tokens are an estimate.
        cached_tokens: Those of the input tokens that were read from a provider's cache.
        reasoning_tokens: Those of the output tokens that were spent on reasoning.
        requests: Model calls.
        tool_calls: Tool calls that were answered, whatever came of them.
        seconds: Wall clock, without the time between a stop and a resume.
    """

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    unpriced: int = 0
    estimated: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    seconds: float = 0.0


@dataclass(slots=True)
class Call:
    """A tool call that has begun: kept so that a crash can neither lose nor repeat it unseen.

    Attributes:
        action: The call.
        result: Its result, once it has finished.
        reported: Whether the event of its end has been streamed.
    """

    action: Action
    result: Message | None = None
    reported: bool = False


class ToolScope(BaseModel, defer_build=True):
    """Which of the memory's tools a run may see, by names and patterns such as ``"fs_*"``."""

    allow: list[str] | None = None
    deny: list[str] = Field(default_factory=list)

    def allows(self, name: str) -> bool:
        """Whether the tool of that name may be seen."""
        if self.allow is not None and not any(fnmatchcase(name, p) for p in self.allow):
            return False
        return not any(fnmatchcase(name, p) for p in self.deny)


class Decision(BaseModel, defer_build=True):
    """What a person decided about one call.

    Attributes:
        approved: It may run.
        reason: Why not; goes to the model.
        args: Run it with these arguments instead of the model's.
    """

    approved: bool
    reason: str = ""
    args: dict[str, JsonValue] | None = None


class Asked(BaseModel, defer_build=True):
    """What a person is asked in this step of the run, and what they have said so far.

    Attributes:
        approvals: Ids of calls that wait for a decision.
        questions: Questions that wait for an answer, by the id of the call that asks; a state's own
            is under ``""``.
        decisions: Decisions by the id of the call.
        answers: Answers by the id of the question.
    """

    approvals: list[str] = Field(default_factory=list)
    questions: dict[str, str] = Field(default_factory=dict)
    decisions: dict[str, Decision] = Field(default_factory=dict)
    answers: dict[str, str] = Field(default_factory=dict)


class Control(BaseModel, defer_build=True):
    """The state machine's own registers.

    Attributes:
        run_id: The run under way, or the last one.
        branch: Which branch of the run this memory serves; empty for the run's own memory. Nobody
            can be asked anything from a branch.
        status: Whether a run is under way, waits for a person, or has ended.
        state: Name of the state entered now or next (a member's name in the net's Enum).
        step: States left so far in this run.
        done: A state has said that the goal is reached.
        stop_reason: Why the last run ended.
        next_actions: Calls that were asked for and are not answered yet.
        frames: The current state of each net inside the state, by its path.
        ended: Answers of the nets inside the state that have ended, by their paths.
        pending: Begun calls by id, with the results that are already in.
        output: The validated output of the run, if the net makes one.
        spent: Tokens, cost and time of this run.
        hint: Shown to the model once by the next state that asks one; never stored.
        recent: Fingerprints of the last steps, by which a stuck run is noticed.
        hints: How often in a row the run was told that it is stuck.
        scratch: Room for states to keep what they must know between steps, as JSON values; emptied
            when a run begins.
        session: The same for what lasts from run to run, until the memory is cleared.
        asked: What a person is asked in this step, if anything.
        tool_scope: Which tools are offered; None: all. Stays from run to run.
        results_cut: A result was cut and kept aside, so the tool that reads the rest is offered.
        dry_run: Calls are checked and not run.
    """

    run_id: str | None = None
    branch: str = ""
    status: Literal["idle", "running", "waiting", "ended"] = "idle"
    state: str | None = None
    step: int = 0
    done: bool = False
    stop_reason: str | None = None
    next_actions: list[Action] = Field(default_factory=list)
    frames: dict[str, str] = Field(default_factory=dict)
    ended: dict[str, str] = Field(default_factory=dict)
    pending: dict[str, Call] = Field(default_factory=dict)
    output: Any = None
    spent: Spent = Field(default_factory=Spent)
    hint: str | None = Field(default=None, exclude=True)
    recent: list[str] = Field(default_factory=list)
    hints: int = 0
    scratch: JsonDict = Field(default_factory=Scratch)
    session: JsonDict = Field(default_factory=Scratch)
    asked: Asked | None = None
    tool_scope: ToolScope | None = None
    results_cut: bool = False
    dry_run: bool = False

    @property
    def input(self) -> str | None:
        """What a person answered to the question of the state that is running, if they have."""
        return None if self.asked is None else self.asked.answers.get("")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in ("scratch", "session") and type(value) is not Scratch:
            value = Scratch(value)
        super().__setattr__(name, value)

    @classmethod
    def fresh(cls) -> Control:
        """Return what ``Control()`` returns, without validation and the schema it needs."""
        return _fresh()

    def begin(self, run_id: str, state: str) -> None:
        """Set every register for a new run; ``scratch`` is emptied too.

        What belongs to the session stays: ``session``, which tools are offered, what is kept aside.
        """
        vars(self).update(
            run_id=run_id,
            branch="",
            status="running",
            state=state,
            step=0,
            done=False,
            stop_reason=None,
            next_actions=[],
            frames={},
            ended={},
            pending={},
            output=None,
            spent=Spent(),
            hint=None,
            recent=[],
            hints=0,
            scratch=Scratch(),
            asked=None,
        )

    def result_of(self, call: Action, why: str) -> Message:
        """Return the result to record for a call of a run that does not continue with it.

        The result that the call has, if it finished; otherwise an error for the model. It never
        says of a call that had begun that it was not run.

        Args:
            call: The call.
            why: What keeps it from running, as a clause: "the run was cancelled".
        """
        begun = self.pending.get(call.id)
        if begun is None:
            return Message.tool(f"The call was not run: {why}", call, is_error=True)
        return begun.result or Message.tool(uncertain(call), call, is_error=True)

    def close_calls(self) -> None:
        """Clear the registers of a round of calls, once every call has its result."""
        vars(self).update(next_actions=[], pending={}, asked=None)

    def advance_subnet(self, path: str, state: str | None, answer: str) -> None:
        """Record that a net inside the current state left a state.

        Args:
            path: Its path: the names of the states and branches around it, joined by ``/``.
            state: The state that comes next; None at its end.
            answer: What it has said, for its end.
        """
        self.hint = None
        inside = f"{path}/"
        for ended in [key for key in self.ended if key.startswith(inside)]:
            del self.ended[ended]
        if state is not None:
            self.frames[path] = state
            return
        self.frames.pop(path, None)
        self.ended[path] = answer
        self.done = False  # it was set by the net that has ended, not by the net around it

    def check_notes(self, state: str) -> None:
        """Check what ``state`` put into lists and dicts of ``scratch`` and ``session``.

        Raises:
            ScratchError: JSON does not hold it; it is taken out.
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

    def advance(self, state: str | None) -> None:
        """One step is over; ``state`` comes next, or nothing if the run has reached its end."""
        registers = vars(self)  # one write instead of four validated ones: this is the hot path
        registers["hint"] = None
        registers["step"] += 1
        if registers["ended"]:
            registers["ended"] = {}
        if state is None:
            registers["done"] = True
        else:
            registers["state"] = state


_fresh = maker_of_defaults(Control)


def uncertain(call: Action) -> str:
    """Return what the model reads about a call that had begun and has no result."""
    return (
        f"{call.name!r} was interrupted while it was running. It may or may not have taken effect, "
        "and was not run again"
    )
