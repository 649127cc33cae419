"""What the events of a run say about its model, its tools and its end. Private."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agent_brain.states.errors import LLMError
from agent_brain.states.events import Event, RunFailed
from agent_brain.states.models.call_data import error_from_data
from agent_brain.states.models.llm import Finish, Thought
from agent_brain.states.parsing import parse_reasoning
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.errors import AgentBrainError

Data: TypeAlias = dict[str, Any]
Piece: TypeAlias = str | Action | Usage | Finish | Exception


class ExportError(AgentBrainError, ValueError):
    """Raised when the events are not enough to make a test of them."""


@dataclass(slots=True)
class RecordedRun:
    """One run, as a test needs it.

    Attributes:
        goal: The goal, as a message's JSON values.
        net: The name of the net.
        end: The last event.
        path: The states entered, without those of subnets.
        metered: Whether model calls reported usage, which separates them from what states say.
        turns: What the model said, call by call.
        native: Whether it called tools natively.
        limits: The limit that ended the run, if any, as ``run_net`` takes it.
        replies: Results by tool, as (text, whether it is an error).
        calls: Arguments by tool, in order.
    """

    goal: Data
    net: str
    end: Data
    path: list[str]
    metered: bool
    turns: list[list[Piece]]
    native: bool
    limits: Data
    replies: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    calls: dict[str, list[Data]] = field(default_factory=dict)


def read_run(events: Iterable[Event | Mapping[str, Any]]) -> RecordedRun:
    """Read the events of one run.

    Raises:
        ExportError: They are not those of one whole run, or branches of it ran concurrently, so
            that the order of model calls is arbitrary.
    """
    data = [item for item in map(_to_data, events) if not item.get("purpose")]  # no memory's calls
    _check_whole(data)
    _refuse_branches(data)
    metered = any(event["kind"] == "usage_reported" for event in data)
    turns, native = _read_turns(data, metered=metered)
    goal, net = data[0]["goal"], str(data[0].get("net"))
    path = [e["state"] for e in data if _in_net(e, "state_entered")]
    recorded = RecordedRun(goal, net, data[-1], path, metered, turns, native, _limits(data))
    for event in _finished_calls(data):
        action, result = event["action"], event["result"]
        reply = (str(result["content"]), bool(result.get("is_error")))
        recorded.calls.setdefault(action["name"], []).append(action["args"])
        recorded.replies.setdefault(action["name"], []).append(reply)
    return recorded


def _finished_calls(data: Iterable[Data]) -> list[Data]:
    """Return the ends of calls in the order in which the model asked for the calls."""
    asked: dict[Any, list[int]] = {}
    found: list[tuple[int, Data]] = []
    for index, event in enumerate(data):
        if event["kind"] == "action_requested":
            asked.setdefault(event["action"].get("id"), []).append(index)
        # a call whose arguments cannot be parsed never reaches a tool
        elif event["kind"] == "action_finished" and event["action"].get("unparsed") is None:
            places = asked.get(event["action"].get("id"))
            found.append((places.pop(0) if places else index, event))
    return [event for _, event in sorted(found, key=lambda item: item[0])]


def _to_data(event: Event | Mapping[str, Any]) -> Data:
    if not isinstance(event, Event):
        return dict(event)
    data = event.to_dict()
    if isinstance(event, RunFailed) and isinstance(event.error, LLMError):
        fields = ("message", "provider", "model")
        data["error"] |= {name: getattr(event.error, name) for name in fields}
        data["error"]["by_model"] = True
    return data


def _in_net(event: Data, kind: str) -> bool:
    return bool(event["kind"] == kind and not event.get("path"))


def _check_whole(data: Sequence[Data]) -> None:
    started: Data = data[0] if data else {}
    end: Data = data[-1] if data else {}
    if started.get("kind") != "run_started":
        raise ExportError("The events do not begin with the start of a run: keep all of them")
    if started.get("resumed") or not started.get("goal"):
        raise ExportError(
            "The run resumed an earlier one, or its memory was preloaded, and the events do not "
            "include what happened before: export the run from its beginning"
        )
    if end.get("kind") not in ("run_finished", "run_failed"):
        raise ExportError("The events do not reach the end of the run: its last one is missing")
    if end.get("stop_reason") in ("timeout", "cancelled"):
        raise ExportError(
            f"The run was ended by {end['stop_reason']}: the events do not say at which point"
        )


def _refuse_branches(data: Sequence[Data]) -> None:
    """Refuse a path that does not end in an entered state: it names one of several branches."""
    entered: set[tuple[tuple[str, ...], str]] = set()
    for event in data:
        path = tuple(event.get("path") or ())
        if path and (path[:-1], path[-1]) not in entered:
            raise ExportError(
                f"Branches ran concurrently in this run ({'/'.join(path)}), and the order of their "
                "model calls is arbitrary: record a cassette with match='request' instead"
            )
        if event["kind"] == "state_entered":
            entered.add((path, event["state"]))


def _limits(data: Sequence[Data]) -> Data:
    """Return the limit that ends the run at the same point again.

    A net's fallback runs after that point: it is the last step, and leads nowhere.
    """
    at = len(data) - 1
    exits = [event for event in data if _in_net(event, "state_exited")]
    if exits and exits[-1]["next"] is None:
        at = max(index for index, event in enumerate(data) if _in_net(event, "state_entered"))
    usages = [event["usage"] for event in data[:at] if event["kind"] == "usage_reported"]
    match data[-1].get("stop_reason"):
        case "max_steps":
            return {"max_steps": data[at]["step"]}
        case "max_tokens":
            return {"max_tokens": sum(u["input_tokens"] + u["output_tokens"] for u in usages)}
        case "max_cost":
            return {"max_cost": sum(usage["cost"] for usage in usages)}
    return {}


# --- what the model said ---


def _read_turns(data: Sequence[Data], *, metered: bool) -> tuple[list[list[Piece]], bool]:
    """Return the turns of the model, and whether it called tools natively.

    A model call ends with its usage, which real models always report. If a run is not metered,
    everything a state says is taken as one call.
    """
    steps = _steps(data)
    spoken = [[*_pieces(step)] for step in steps]
    called = [n for n, pieces in enumerate(spoken) if any(isinstance(p, Action) for p in pieces)]
    native = not any(_is_text_mode(steps[n], spoken[n]) for n in called or range(len(steps)))
    turns = [turn for pieces in spoken for turn in _turns(pieces, metered=metered)]
    error = _model_error(data[-1])
    if error is not None and steps:
        broken = _split(spoken[-1])[1]
        if broken and not metered:
            turns.pop()
        elif not broken and turns:  # a call that fails reports its usage, too
            broken = [piece for piece in turns.pop() if not isinstance(piece, Usage)]
        turns.append([*broken, error])
    return [tidied(turn, native=native) for turn in turns], native


def _steps(data: Iterable[Data]) -> list[list[Data]]:
    """Split the events where a state is entered; the states of subnets are steps, too."""
    steps: list[list[Data]] = [[]]
    for event in data:
        if event["kind"] == "state_entered" and steps[-1]:
            steps.append([])
        steps[-1].append(event)
    return steps


def _pieces(step: Iterable[Data]) -> Iterable[Piece]:
    for event in step:
        match event["kind"]:
            case "text_delta":
                yield Thought(event["text"]) if event.get("thought") else str(event["text"])
            case "action_requested":
                yield Action.model_validate(event["action"])
            case "usage_reported":
                if event.get("finish_reason"):
                    yield Finish(event["finish_reason"])
                yield Usage(**event["usage"])


def _split(pieces: Iterable[Piece]) -> tuple[list[list[Piece]], list[Piece]]:
    """Return the calls that reported their usage, and the pieces after the last of them."""
    calls: list[list[Piece]] = []
    rest: list[Piece] = []
    for piece in pieces:
        rest.append(piece)
        if isinstance(piece, Usage):
            calls.append(rest)
            rest = []
    return calls, rest


def _turns(pieces: list[Piece], *, metered: bool) -> list[list[Piece]]:
    if not metered:
        return [pieces] if pieces else []
    calls, rest = _split(pieces)
    if calls and not any(isinstance(p, Action) or _is_text(p) for p in calls[-1]):
        calls[-1] = [*rest, *calls[-1]]  # a state that shows the answer once it is checked
    return calls


def _is_text(piece: Piece) -> bool:
    return isinstance(piece, str) and not isinstance(piece, Thought)


def _is_text_mode(step: Sequence[Data], pieces: Sequence[Piece]) -> bool:
    """Whether the thoughts of a state are the model's whole output, with the action as JSON."""
    thoughts = "".join(piece for piece in pieces if isinstance(piece, Thought))
    actions = [piece for piece in pieces if isinstance(piece, Action)]
    if not thoughts or any(map(_is_text, pieces)):
        return False
    if not actions:
        return any(event["kind"] == "state_exited" for event in step)
    parsed = parse_reasoning(thoughts).action
    return parsed is not None and (parsed.name, parsed.args) == (actions[0].name, actions[0].args)


def _model_error(end: Data) -> Exception | None:
    """Return the error that the model raised, unless it is about what the model said."""
    if end["kind"] != "run_failed" or end["error"]["type"] == "MalformedOutputError":
        return None
    error = end["error"]
    raised = error_from_data(error)
    known = error.get("by_model") or type(raised).__name__ == error["type"]
    return raised if known and isinstance(raised, LLMError) else None


def tidied(turn: Iterable[Piece], *, native: bool) -> list[Piece]:
    """Join chunks; for a model without tools, keep only the text that it wrote."""
    tidy: list[Piece] = []
    for piece in turn:
        if isinstance(piece, Action) and not native:
            continue
        if isinstance(piece, str):
            kind = Thought if isinstance(piece, Thought) and native else str
            joined = tidy.pop() if tidy and type(tidy[-1]) is kind else ""
            piece = kind(f"{joined}{piece}")
        tidy.append(piece)
    return tidy
