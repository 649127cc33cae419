"""The kept steps of sessions as JSON: what happened in a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from agent_brain.common.text import clean_json
from agent_brain.memories.control import Control
from agent_brain.memories.journal.base import Journal
from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message
from agent_brain.memories.sessions.timeline import Part, message_of
from agent_brain.memories.store.events import MESSAGES
from agent_brain.memories.store.session import Session as StoredSession
from agent_brain.memories.store.session import below, branch_key, branch_place
from agent_brain.recording.places import Place, Places, kind_of, parts_of_run, place_of
from agent_brain.recording.run import waiting_calls

BRIEF = 300  # characters of a text in a list
LATEST = 5  # messages as of a step
UNTOLD = {"spent", "fingerprints", "moves"}  # registers that change with every step
_UNUSED = Control().model_dump(mode="json")


def describe_part(part: Part, places: Places) -> dict[str, Any]:
    """Return a part of a session for a list; long texts are cut."""
    step, control = part.step, part.control
    calls = [
        {**call, "result": None if call["result"] is None else cut(call["result"])}
        for call in calls_of(part)
    ]
    shown: dict[str, Any] = clean_json(
        {
            "number": None if step is None else step.number,
            "kind": kind_of(part),
            "time": _time(part),
            "seconds": _seconds(part),
            "run_id": control.get("run_id") if step is None else step.run_id,
            "begins_run": part.begins_run,
            "ran": _place(places.of(part)),
            "next": None if step is None else _place(place_of(control)),
            "status": None if step is None else step.status,
            "stop_reason": None if step is None else step.stop_reason,
            "failure": control.get("failure"),
            "error": control.get("error"),
            "spent": part.spent,
            "summary": cut(_summary(part)),
            "calls": calls,
            "waits_for": _waits_for(control) if kind_of(part) == "wait" else None,
            "branches": [
                {"name": name, "result": cut(result), "status": "ended"}
                for name, result in _ended_branches(part)
            ],
        }
    )
    return shown


def describe_happened(part: Part, places: Places) -> dict[str, Any]:
    """Return all that happened in a part of a session."""
    undone = part.undone
    said = [(entry.seq in undone, message_of(entry)) for entry in _said(part)]
    branches = [
        {"name": name, "result": result, "status": "ended", "messages": []}
        for name, result in _ended_branches(part)
    ]
    return {
        **describe_part(part, places),
        "previous": None if part.before is None else part.before.number,
        "messages": [describe_message(message) for gone, message in said if not gone],
        "undone": [describe_message(message) for gone, message in said if gone],
        "calls": clean_json([*calls_of(part)]),
        "removed": [*_removals(part)],
        "values": clean_json([*_values(part)]),
        "control": clean_json([*_changes(part)]),
        "next_calls": clean_json(part.control.get("next_actions") or []),
        "branches": clean_json(branches),
    }


async def describe_details(part: Part, places: Places, stored: StoredSession) -> dict[str, Any]:
    """Return all of a part of a session, and the latest messages as of its end."""
    found = describe_happened(part, places)
    under_way = found["kind"] in ("open", "wait")
    live = await _live_branches(stored.journal, stored.key, part) if under_way else []
    latest = [describe_message(message) for message in await _latest(part, stored)]
    return {**found, "latest": latest, "branches": found["branches"] + live}


def describe_message(message: Message) -> dict[str, Any]:
    """Return a message as JSON."""
    data: dict[str, Any] = clean_json(message.model_dump(mode="json"))
    return data


def cut(text: str) -> str:
    """Return the beginning of a text."""
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 1]}…"


def _said(part: Part) -> Iterator[Entry]:
    return (entry for entry in part.entries if entry.kind in MESSAGES)


def _kept_messages(part: Part) -> list[Message]:
    undone = part.undone
    return [message_of(entry) for entry in _said(part) if entry.seq not in undone]


async def _latest(part: Part, stored: StoredSession) -> list[Message]:
    """Return the goal of the run and the newest messages as of the end of a part."""
    step = part.step
    if step is None:
        return []
    parts = await parts_of_run(stored.journal, stored.key, step.number)
    found: dict[str, Entry] = {}
    gone: set[str] = set()
    for each in parts:
        undone = each.undone
        found |= {_data(entry)["id"]: entry for entry in _said(each) if entry.seq not in undone}
        for entry in each.entries:
            removed = entry.data if entry.kind in ("delete", "forget") else None
            for name in removed if isinstance(removed, list) else ():
                gone.add(str(name))
    # a message is decoded only if it is shown
    entries = [entry for name, entry in found.items() if name not in gone]
    goal = [entry for entry in entries if _data(entry).get("role") == "user"][:1]
    newest = [entry for entry in entries[-LATEST:] if entry not in goal]
    return [message_of(entry) for entry in (*goal, *newest)]


def _data(entry: Entry) -> dict[str, Any]:
    return cast("dict[str, Any]", entry.data)


def _time(part: Part) -> str | None:
    time = part.entries[-1].time if part.entries else None
    return None if time is None else time.isoformat()


def _seconds(part: Part) -> float | None:
    """Return how long a step took; None if it is not known, or was none."""
    step, before = part.step, part.before
    if step is None or before is None or step.run_id != before.run_id:
        return None
    if before.status != "running" or step.time is None or before.time is None:
        return None
    return (step.time - before.time).total_seconds()


def _place(place: Place | None) -> dict[str, Any] | None:
    if place is None or place.state is None:
        return None
    return {"path": [*place.path], "state": place.state}


def _summary(part: Part) -> str:
    """Return what happened, in one text."""
    if failure := part.control.get("failure"):
        return str(failure)
    messages = _kept_messages(part)
    if kind_of(part) == "begin":
        asked = [message.content for message in messages if message.role == "user"]
        return asked[-1] if asked else ""
    spoken = [m.content for m in messages if m.role == "assistant" and m.content]
    if spoken:
        return spoken[-1]
    called = [call.name for message in messages for call in message.tool_calls]
    if called:
        return f"Calls {', '.join(called)}"
    results = [m for m in messages if m.role == "tool"]
    if results:
        return "; ".join(f"{m.name or 'tool'}: {m.content}" for m in results)
    return messages[-1].content if messages else ""


def calls_of(part: Part) -> Iterator[dict[str, Any]]:
    """Yield the calls that were requested or run in a part, with their results."""
    known: dict[str, dict[str, Any]] = {}

    def note(action: Mapping[str, Any]) -> dict[str, Any]:
        args = action.get("args", {}) if action.get("unparsed") is None else action["unparsed"]
        fresh = {"id": action["id"], "name": action["name"], "args": args, "state": "requested"}
        return known.setdefault(action["id"], {**fresh, "result": None, "seconds": None})

    began: dict[str, Any] = {}
    for entry in part.entries:
        data: Any = entry.data
        if entry.kind == "call_begun":
            note(data["action"])["state"] = "begun"
            began[data["action"]["id"]] = entry.time
        elif entry.kind == "call_finished":
            action, result = data["call"]["action"], data["call"]["result"]
            call = note(action)
            if began.get(action["id"]) is not None and entry.time is not None:
                call["seconds"] = (entry.time - began[action["id"]]).total_seconds()
            _finish(call, result)
    for message in _kept_messages(part):
        for action in message.tool_calls:
            note(action.model_dump(mode="json"))
        if message.tool_call_id is not None:
            name = message.name or "tool"
            result = message.model_dump(mode="json")
            _finish(note({"id": message.tool_call_id, "name": name}), result)
    yield from known.values()


def _finish(call: dict[str, Any], result: Mapping[str, Any]) -> None:
    refused = result.get("metadata", {}).get("decision", {}).get("approved") is False
    failed = result.get("is_error", False)
    call["state"] = "refused" if refused else "failed" if failed else "done"
    call["result"] = result.get("content", "")


def _waits_for(control: Mapping[str, Any]) -> dict[str, Any] | None:
    asked = control.get("human_requests") or {}
    names = {call["id"]: call["name"] for call in waiting_calls(control)}
    calls = [names.get(call, call) for call in asked.get("approvals", ())]
    return {"calls": calls, "questions": [*asked.get("questions", {}).values()]}


def _ended_branches(part: Part) -> Iterator[tuple[str, str]]:
    for entry in part.entries:
        if entry.kind == "part_finished":
            data: Any = entry.data
            yield data["key"], data["value"]


async def _live_branches(journal: Journal, key: str, part: Part) -> list[dict[str, Any]]:
    """Return the branches of the step under way."""
    control = part.start
    place = branch_key(key, control.get("run_id") or "", str(control.get("moves", 0)))
    found = []
    for branch in await journal.sessions(below(place)):
        entries = await journal.read(branch)
        messages = [message_of(entry) for entry in entries if entry.kind in MESSAGES]
        name = "/".join(branch_place(key, branch)[2:])
        shown = [describe_message(message) for message in messages]
        found.append({"name": name, "result": "", "status": "running", "messages": shown})
    return found


def _removals(part: Part) -> Iterator[dict[str, Any]]:
    words = {"delete": "deleted", "forget": "forgotten", "clear": "cleared"}
    for entry in part.entries:
        if entry.kind in words:
            count = len(entry.data) if isinstance(entry.data, list) else None
            yield {"how": words[entry.kind], "messages": count}


def _values(part: Part) -> Iterator[dict[str, Any]]:
    for entry in part.entries:
        if entry.kind == "view" and isinstance(entry.data, dict):
            yield {"name": entry.data.get("name"), "value": entry.data.get("value")}


def _changes(part: Part) -> Iterator[dict[str, Any]]:
    """Yield the registers of the run that changed: each with its value before and after."""
    if part.step is None:
        return
    before = _flat(part.start or _UNUSED)
    after = _flat(part.control)
    for name in {**before, **after}:
        values = before.get(name), after.get(name)
        if values[0] != values[1]:
            yield {"name": name, "before": values[0], "after": values[1]}


def _flat(control: Mapping[str, Any]) -> dict[str, Any]:
    """Return the registers; what states have noted is apart, one by one."""
    found: dict[str, Any] = {}
    for name, value in control.items():
        if name in ("scratch", "session") and isinstance(value, dict):
            found |= {f"{name}.{key}": item for key, item in value.items()}
        elif name not in UNTOLD:
            found[name] = value
    return found
