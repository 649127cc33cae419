"""What a run's events tell: what the model said, what the tools returned, how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_brain.states.errors import LLMError
from agent_brain.states.events import Event, RunFailed
from agent_brain.testing.export.errors import ExportError
from agent_brain.testing.export.turns import Piece, read_turns

Data = dict[str, Any]


@dataclass(slots=True)
class Story:
    """One run, as a test needs it.

    Attributes:
        goal: What was asked for, as a message's JSON values.
        net: What the net is called.
        turns: What the model said, call by call.
        native: It called tools natively.
        metered: Its calls reported usage, so that what it said is told from what states say.
        replies: Results by tool, as (text, whether it is an error).
        calls: Arguments by tool, in order.
        path: The states entered, subnets left out.
        finished: The last event, if the run did not fail.
        failed: The last event, if it did.
        limits: The limit that ended the run, if one did, as ``run_net`` takes it.
    """

    goal: Data
    net: str
    turns: list[list[Piece]]
    native: bool
    metered: bool
    path: list[str]
    replies: dict[str, list[tuple[str, bool]]] = field(default_factory=dict)
    calls: dict[str, list[Data]] = field(default_factory=dict)
    finished: Data | None = None
    failed: Data | None = None
    limits: Data = field(default_factory=dict)


def read_story(events: Iterable[Event | Mapping[str, Any]]) -> Story:
    """Read the events of one run.

    Raises:
        ExportError: They are not those of one whole run from its beginning, or branches of it ran
            at once: then the order of model calls is chance.
    """
    data = [_to_data(event) for event in events]
    started = data[0] if data else {}
    if started.get("kind") != "run_started":
        raise ExportError("The events do not begin with the start of a run: keep all of them")
    if started.get("resumed") or not started.get("goal"):
        raise ExportError(
            "The run took up an earlier one, or was preloaded, and its events do not tell what was "
            "there before: export the run from its beginning"
        )
    end = data[-1]
    if end.get("kind") not in ("run_finished", "run_failed"):
        raise ExportError("The events do not go to the end of the run: its last one is missing")
    if end.get("stop_reason") in ("timeout", "cancelled"):
        raise ExportError(
            f"The run was ended by {end['stop_reason']}: when that comes is not in its events"
        )
    _refuse_branches(data)
    metered = any(event["kind"] == "usage_reported" for event in data)
    turns, native = read_turns(data, metered=metered)
    net = str(started.get("net"))
    story = Story(started["goal"], net, turns, native, metered, _path(data))
    for event in data:
        if event["kind"] == "action_finished":
            _add_result(story, event)
    if end["kind"] == "run_failed":
        story.failed = end
    else:
        story.finished = end
        story.limits = _limits(data, str(end["stop_reason"]))
    return story


def _to_data(event: Event | Mapping[str, Any]) -> Data:
    if not isinstance(event, Event):
        return dict(event)
    data = event.to_dict()
    if isinstance(event, RunFailed) and isinstance(event.error, LLMError):
        fields = ("message", "provider", "model")
        data["error"] |= {name: getattr(event.error, name) for name in fields}
        data["error"]["by_model"] = True
    return data


def _refuse_branches(data: Sequence[Data]) -> None:
    """A path that does not end in a state which was entered names a branch of several."""
    entered = {((), None)}
    for event in data:
        path = tuple(event.get("path") or ())
        if path and (path[:-1], path[-1]) not in entered:
            raise ExportError(
                f"Branches ran at once in this run ({'/'.join(path)}), and the order of their "
                "model calls is chance: record a cassette with match='request' instead"
            )
        if event["kind"] == "state_entered":
            entered.add((path, event["state"]))


def _path(data: Sequence[Data]) -> list[str]:
    return [e["state"] for e in data if e["kind"] == "state_entered" and not e.get("path")]


def _add_result(story: Story, event: Data) -> None:
    action, result = event["action"], event["result"]
    if action.get("unparsed") is not None:
        return  # such a call is answered by the library, and never reaches a tool
    story.calls.setdefault(action["name"], []).append(action["args"])
    reply = (str(result["content"]), bool(result.get("is_error")))
    story.replies.setdefault(action["name"], []).append(reply)


def _limits(data: Sequence[Data], reason: str) -> Data:
    """The limit, so that it ends the run at the same point again.

    A net's fallback runs after that point: it is the last step, and leads nowhere.
    """
    at = len(data) - 1
    exits = [event for event in data if event["kind"] == "state_exited" and not event.get("path")]
    if exits and exits[-1]["next"] is None:
        at = max(
            i for i, e in enumerate(data) if e["kind"] == "state_entered" and not e.get("path")
        )
    usages = [event["usage"] for event in data[:at] if event["kind"] == "usage_reported"]
    if reason == "max_steps":
        return {"max_steps": data[at]["step"]}
    if reason == "max_tokens":
        return {"max_tokens": sum(u["input_tokens"] + u["output_tokens"] for u in usages)}
    if reason == "max_cost":
        return {"max_cost": sum(usage["cost"] for usage in usages)}
    return {}
