"""Where a run stands: the part of a memory that the Brain and the states write, as plain data."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue

from agent_brain.memories.errors import ScratchError
from agent_brain.memories.message import Message
from agent_brain.memories.scratch import JsonDict, Scratch
from agent_brain.tools.action import Action


class Spent(BaseModel):
    """What a run has used so far; limits go on counting from it after a resume.

    Attributes:
        input_tokens: Tokens read by models.
        output_tokens: Tokens written by models.
        cost: US dollars, for the calls whose price is known.
        unpriced: Model calls whose price is unknown.
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
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    seconds: float = 0.0


class Call(BaseModel):
    """One begun tool call: kept so that a crash can neither lose nor repeat it unseen."""

    action: Action
    result: Message | None = None


class ToolScope(BaseModel):
    """Which of the memory's tools a run may see, by names and patterns such as ``"fs_*"``."""

    allow: list[str] | None = None
    deny: list[str] = Field(default_factory=list)

    def allows(self, name: str) -> bool:
        """Whether the tool of that name may be seen."""
        if self.allow is not None and not any(fnmatchcase(name, p) for p in self.allow):
            return False
        return not any(fnmatchcase(name, p) for p in self.deny)


class Decision(BaseModel):
    """What a person decided about one call.

    Attributes:
        approved: It may run.
        reason: Why not; goes to the model.
        args: Run it with these arguments instead of the model's.
    """

    approved: bool
    reason: str = ""
    args: dict[str, JsonValue] | None = None


class Asked(BaseModel):
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


class Control(BaseModel):
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
        frames: Where the nets inside the state stand, by their paths.
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
            pending={},
            output=None,
            spent=Spent(),
            hint=None,
            recent=[],
            hints=0,
            scratch=Scratch(),
            asked=None,
        )

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
        if state is None:
            registers["done"] = True
        else:
            registers["state"] = state
