"""A recorded run as a test needs it: what its model said, its tools returned, and how it ended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agent_brain.common.errors import AgentBrainError
from agent_brain.memories.control import Control
from agent_brain.memories.message import Message
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.recording.run import RecordedRun, calls_tools_natively
from agent_brain.states.errors import LLMError
from agent_brain.states.events import Event, RunFailed
from agent_brain.states.models.call_data import error_from_data, joined, piece_from_data
from agent_brain.states.reasoning import parse_reasoning
from agent_brain.tools.action import Action

Data: TypeAlias = dict[str, Any]
CUT_OFF = ("timeout", "cancelled", "stopped", "sleeping", "paused", "waiting", "approval", "input")


class ExportError(AgentBrainError, ValueError):
    """Raised when the events are not enough to make a test of them."""


@dataclass(slots=True)
class ExportedRun:
    """One run, as a test needs it.

    Attributes:
        goal: The goal.
        net: The name of the net.
        path: The states entered, without those of subnets.
        turns: What the model returned, call by call.
        native: Whether it called tools natively.
        tools: The calls by tool, in order.
        limits: The limit that ended the run, if any, as ``run_net`` takes it.
        stop_reason: Why it ended.
        answer: Its answer.
        error: The type of the error that it failed with; None if it did not.
    """

    goal: Message
    net: str
    path: list[str]
    turns: list[list[object]]
    native: bool
    tools: dict[str, list[RecordedCall]]
    limits: Data
    stop_reason: str
    answer: str
    error: str | None


def export_run(run: RecordedRun, *, net: str, answer: str) -> ExportedRun:
    """Return a traced run as a test needs it.

    Args:
        run: The run.
        net: The name of its net.
        answer: Its answer; empty if it failed.

    Raises:
        ExportError: It was resumed, cut off or not traced, or branches of it ran concurrently.
    """
    if run.control.status != "ended" or run.control.stop_reason in CUT_OFF:
        reason = "" if run.control.stop_reason is None else f": {run.control.stop_reason}"
        raise ExportError(f"The run did not come to an end of its own{reason}")
    if run.goal is None:
        raise ExportError("What the user said when the run began is not kept")
    calls = [call for call in run.calls if call.purpose is None]  # without those of the memory
    if any(call.branch for call in calls):
        raise ExportError("Branches ran concurrently, and the order of their calls is arbitrary")
    if len({call.part for call in calls}) > 1:
        raise ExportError("The run was interrupted and resumed")
    if any(call.cut for call in calls):
        raise ExportError("A model call was cut off")
    if run.control.output is not None:
        raise ExportError("The run has an output of a type, which the session does not keep")
    spent = run.control.spent
    if spent.requests > spent.embeddings and not calls:
        raise ExportError("The run was not traced: its model calls are not kept")
    return _exported(run, run.goal, net, answer, native=calls_tools_natively(calls))


def export_events(events: Iterable[Event | Mapping[str, Any]]) -> ExportedRun:
    """Return the run that events tell of as a test needs it.

    Raises:
        ExportError: They are not those of one whole run, or branches of it ran concurrently, so
            that the order of model calls is arbitrary.
    """
    data = [item for item in map(_to_data, events) if not item.get("purpose")]  # no memory's calls
    _check_whole(data)
    _refuse_branches(data)
    models = _model_calls(data)
    native = not _writes_calls(models, data[-1])
    if not native:
        models = [_as_text(call) for call in models]
    path = [event["state"] for event in data if _in_net(event, "state_entered")]
    goal, end = Message.model_validate(data[0]["goal"]), data[-1]
    exits = [event for event in data if _in_net(event, "state_exited")]
    control = Control(
        moves=len(path),
        status="ended",
        stop_reason=end["stop_reason"],
        failure=end["error"]["type"] if end["kind"] == "run_failed" else None,
        done=bool(exits) and exits[-1]["next"] is None,
        step=end["step"],
    )
    states = dict(enumerate(path))
    run = RecordedRun(end["run_id"], [*models, *_tool_calls(data)], [goal], control, states)
    return _exported(run, goal, str(data[0].get("net")), end.get("answer", ""), native=native)


def _exported(
    run: RecordedRun, goal: Message, net: str, answer: str, *, native: bool
) -> ExportedRun:
    models = [call for call in run.calls if call.action is None and call.purpose is None]
    tools: dict[str, list[RecordedCall]] = {}
    for call in run.calls:
        # a call whose arguments cannot be parsed never reaches a tool
        if call.action is not None and call.action.unparsed is None:
            tools.setdefault(call.action.name, []).append(call)
    control = run.control
    failed = control.stop_reason == "failed"
    path = [run.states[at] for at in sorted(run.states) if at < control.moves + failed]
    error = (control.failure or "Exception").partition(":")[0] if failed else None
    turns = [[*_pieces(call)] for call in models]
    reason = str(control.stop_reason)
    return ExportedRun(
        goal, net, path, turns, native, tools, _limits(run, models), reason, answer, error
    )


def _pieces(call: RecordedCall) -> Iterator[object]:
    yield from map(piece_from_data, joined(call.response))
    if call.error is not None:
        error = error_from_data(call.error)
        if not isinstance(error, LLMError):
            raise ExportError(f"The model raised a {type(error).__name__}")
        yield error


def _limits(run: RecordedRun, models: Iterable[RecordedCall]) -> Data:
    """Return the limit that ends the run at the same point again.

    A net's fallback runs after that point: it is the last step, and leads nowhere.
    """
    fallback = run.control.done
    step = run.control.step - fallback
    usages = [call.usage or {} for call in models if call.step < step or not fallback]
    match run.control.stop_reason:
        case "max_steps":
            return {"max_steps": step}
        case "max_tokens":
            return {"max_tokens": sum(u["input_tokens"] + u["output_tokens"] for u in usages)}
        case "max_cost":
            return {"max_cost": sum(usage["cost"] for usage in usages)}
    return {}


# --- events ---


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


def _model_calls(data: Sequence[Data]) -> list[RecordedCall]:
    """Return the model calls: the events with the ID of a response are what it consisted of."""
    known: dict[str, list[Data]] = {}
    for event in data:
        if (response := event.get("response_id")) is not None:
            known.setdefault(response, []).append(event)
    calls = []
    for response, events in known.items():
        pieces = tuple(piece for event in events for piece in _piece(event))
        calls.append(RecordedCall(response_id=response, step=events[0]["step"], response=pieces))
    if (error := _model_error(data[-1])) is not None and calls:
        said = tuple(piece for piece in calls[-1].response if "usage" not in piece)
        calls[-1] = calls[-1].model_copy(update={"response": said, "error": error})
    return calls


def _piece(event: Data) -> Iterator[Data]:
    match event["kind"]:
        case "text_delta":
            yield {"thought" if event.get("thought") else "text": event["text"]}
        case "action_requested":
            yield {"action": event["action"]}
        case "usage_reported":
            if event.get("finish_reason"):
                yield {"finish": {"reason": event["finish_reason"]}}
            yield {"usage": event["usage"]}


def _model_error(end: Data) -> Data | None:
    """Return the error that the model raised, unless it is about what the model said."""
    if end["kind"] != "run_failed" or end["error"]["type"] == "MalformedOutputError":
        return None
    error: Data = end["error"]
    raised = error_from_data(error)
    known = error.get("by_model") or type(raised).__name__ == error["type"]
    return error if known and isinstance(raised, LLMError) else None


def _writes_calls(models: Sequence[RecordedCall], end: Data) -> bool:
    """Return whether a model writes its calls as text, which is streamed as thoughts."""
    asking = [call for call in models if call.actions]
    for call in asking or models:
        if not call.thoughts or call.text:
            continue
        if not call.actions and (end["kind"] == "run_finished" or call.step < end["step"]):
            return True
        found = parse_reasoning(call.thoughts).action if call.actions else None
        if found and (found.name, found.args) == (call.actions[0].name, call.actions[0].args):
            return True
    return False


def _as_text(call: RecordedCall) -> RecordedCall:
    """Return a call with the text that the model wrote, without what was read from it."""
    said = ({"text": p["thought"]} if "thought" in p else p for p in call.response)
    return call.model_copy(update={"response": tuple(p for p in said if "action" not in p)})


def _tool_calls(data: Iterable[Data]) -> list[RecordedCall]:
    """Return the calls of tools in the order in which the model asked for them."""
    asked: dict[Any, list[int]] = {}
    found: list[tuple[int, RecordedCall]] = []
    for index, event in enumerate(data):
        if event["kind"] == "action_requested":
            asked.setdefault(event["action"].get("id"), []).append(index)
        elif event["kind"] == "action_finished":
            action = Action.model_validate(event["action"])
            places = asked.get(action.id)
            result = Message.model_validate(event["result"])
            call = RecordedCall(action=action, messages=(result,))
            found.append((places.pop(0) if places else index, call))
    return [call for _, call in sorted(found, key=lambda item: item[0])]
