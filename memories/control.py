"""Where a run stands: the part of a memory that the Brain and the states write, as plain data."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field, JsonValue

from agent_brain.memories.message import Message
from agent_brain.tools.action import Action


class Spent(BaseModel):
    """What a run has used so far; limits go on counting from it after a resume."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0
    requests: int = 0
    seconds: float = 0.0


class Call(BaseModel):
    """One begun tool call: kept so that a crash can neither lose nor repeat it unseen."""

    action: Action
    result: Message | None = None


class Control(BaseModel):
    """The state machine's own registers.

    Attributes:
        run_id: The run under way, or the last one.
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
        scratch: Room for states to keep what they must know between steps, as JSON values.
    """

    run_id: str | None = None
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
    scratch: dict[str, JsonValue] = Field(default_factory=dict)

    def begin(self, run_id: str, state: str) -> None:
        """Set every register for a new run; ``scratch`` is emptied too."""
        vars(self).update(
            run_id=run_id,
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
            scratch={},
        )

    def advance(self, state: str | None) -> None:
        """One step is over; ``state`` comes next, or nothing if the run has reached its end."""
        registers = vars(self)  # one write instead of four validated ones: this is the hot path
        registers["hint"] = None
        registers["step"] += 1
        if state is None:
            registers["done"] = True
        else:
            registers["state"] = state
