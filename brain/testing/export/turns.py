"""From the events of a run to what the model said, call by call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from agent_brain.states.errors import LLMError
from agent_brain.states.models.llm import Finish, Thought
from agent_brain.states.parsing import parse_reasoning
from agent_brain.states.usage import Usage
from agent_brain.testing.cassettes.pieces import error_from_data
from agent_brain.tools.action import Action

Piece = str | Action | Usage | Finish | Exception
Data = dict[str, Any]


def read_turns(data: Sequence[Data], *, metered: bool) -> tuple[list[list[Piece]], bool]:
    """The turns of the model, and whether it called tools natively.

    A call of a model ends with its usage, which real models always report. Where a run is not
    metered, whatever a state says is taken to be one call.
    """
    steps = list(_steps(data))
    called = [step for step in steps if any(isinstance(_piece(e), Action) for e in step)]
    native = not any(_is_text_mode(step) for step in called or steps)
    turns: list[list[Piece]] = []
    for step in steps:
        turns += _turns_of(step, metered=metered)
    failed = data[-1] if data[-1]["kind"] == "run_failed" else None
    error = None if failed is None else _model_error(failed["error"])
    if error is not None and steps:
        broken = _rest_of(steps[-1])
        if broken and not metered:
            turns.pop()
        elif not broken and turns:  # a call that fails reports its usage, too
            broken = [piece for piece in turns.pop() if not isinstance(piece, Usage)]
        turns.append([*broken, error])
    return [_tidied(turn, native=native) for turn in turns], native


def _steps(data: Iterable[Data]) -> Iterator[list[Data]]:
    """The events of each state, from entering it; a subnet's are steps of their own."""
    step: list[Data] = []
    for event in data:
        if event["kind"] == "state_entered":
            if step:
                yield step
            step = []
        step.append(event)
    if step:
        yield step


def _turns_of(step: Sequence[Data], *, metered: bool) -> list[list[Piece]]:
    turns: list[list[Piece]] = []
    pieces: list[Piece] = []
    for event in step:
        piece = _piece(event)
        if isinstance(piece, Usage) and event.get("finish_reason"):
            pieces.append(Finish(event["finish_reason"]))
        if piece is not None:
            pieces.append(piece)
        if isinstance(piece, Usage):
            turns.append(pieces)
            pieces = []
    if not metered:
        return [pieces] if pieces else []
    if turns and pieces and not any(_speaks(piece) for piece in turns[-1]):
        turns[-1] = [*pieces, *turns[-1]]  # a state that shows the answer once it is checked
    return turns


def _speaks(piece: Piece) -> bool:
    return isinstance(piece, Action) or (isinstance(piece, str) and not isinstance(piece, Thought))


def _rest_of(step: Sequence[Data]) -> list[Piece]:
    """What came after the last call that was complete."""
    pieces: list[Piece] = []
    for event in step:
        piece = _piece(event)
        if isinstance(piece, Usage):
            pieces = []
        elif piece is not None:
            pieces.append(piece)
    return pieces


def _piece(event: Data) -> Piece | None:
    kind = event["kind"]
    if kind == "text_delta":
        return Thought(event["text"]) if event.get("thought") else str(event["text"])
    if kind == "action_requested":
        return Action.model_validate(event["action"])
    if kind == "usage_reported":
        return Usage(**event["usage"])
    return None


def _is_text_mode(step: Sequence[Data]) -> bool:
    """Whether the state's thoughts are the model's whole output, its action written into them."""
    pieces = [piece for piece in map(_piece, step) if piece is not None]
    thoughts = "".join(piece for piece in pieces if isinstance(piece, Thought))
    actions = [piece for piece in pieces if isinstance(piece, Action)]
    if not thoughts or any(isinstance(p, str) and not isinstance(p, Thought) for p in pieces):
        return False
    if not actions:
        return any(event["kind"] == "state_exited" for event in step)
    parsed = parse_reasoning(thoughts).action
    return parsed is not None and (parsed.name, parsed.args) == (actions[0].name, actions[0].args)


def _model_error(error: Data) -> Exception | None:
    """The error that the model raised, if it was the model: not that its output was no good."""
    raised = error_from_data(error)
    if error["type"] == "MalformedOutputError" or not isinstance(raised, LLMError):
        return None
    known = error.get("by_model") or type(raised).__name__ == error["type"]
    return raised if known else None


def _tidied(turn: Sequence[Piece], *, native: bool) -> list[Piece]:
    """Chunks joined; for a model without tools, only the text that it wrote."""
    tidy: list[Piece] = []
    for piece in turn:
        if isinstance(piece, Action) and not native:
            continue
        if isinstance(piece, str):
            kind = Thought if isinstance(piece, Thought) and native else str
            if tidy and isinstance(tidy[-1], str) and type(tidy[-1]) is kind:
                tidy[-1] = kind(tidy[-1] + piece)
                continue
            piece = kind(piece)
        tidy.append(piece)
    return tidy
