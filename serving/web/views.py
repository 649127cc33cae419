"""Sessions and results as JSON."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from agent_brain.common.text import clean_json, to_json_data
from agent_brain.memories.message import Message
from agent_brain.memories.sessions.reading import Difference
from agent_brain.recording.step_data import describe_message
from agent_brain.result import Result
from agent_brain.serving.catalog import SessionInfo, info_data
from agent_brain.serving.forking import Chat
from agent_brain.serving.pending import Pending, pending_in
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.states.usage import Usage

_CHAT = TypeAdapter(Chat)


def describe_origin(info: SessionInfo | None) -> Any:
    """Return what a session was copied from; None if it was not."""
    return None if info is None else info_data(info)["origin"]


async def describe_session(session: Session, chat: Chat) -> dict[str, Any]:
    """Return the messages of a session, and where the events of its current run begin."""
    run, last_event_id = session.run, session.log.last_id
    messages, goal_at = await _messages(session)
    complete = run is not None and session.log.keeps_after(run.after)
    return {
        "id": session.id,
        "title": session.info.title if session.info is not None else None,
        "status": session.status,
        "failed": session.failed,
        "failure": session.memory.control.failure if session.failed else None,
        "resumable": session.resumable,
        "keeps_steps": session.kept is not None,
        "origin": describe_origin(session.info),
        "chat": _CHAT.dump_python(chat, mode="json"),
        "run_id": None if run is None else run.run_id,
        "messages": [describe_message(message) for message in messages],
        "pending": _pending(session.pending),
        "usage": describe_usage(session.usage),
        "last_event_id": last_event_id,
        "run_started_after": run.after if run is not None and complete else None,
        "turn_start": _turn_start(session, run, messages, goal_at) if run and complete else None,
    }


def _turn_start(
    session: Session, run: SessionRun, messages: list[Message], goal_at: int | None
) -> int:
    """Return how many of ``messages`` were recorded before ``run``; its events tell the others."""
    if run.recorded is not None:
        return min(run.recorded, len(messages))
    if goal_at is None or session.log.last_id == run.after:  # its goal is not recorded yet
        return len(messages)
    return goal_at


async def _messages(session: Session) -> tuple[list[Message], int | None]:
    """Return all messages in order, and the index of the current goal."""
    goal = await session.memory.goal()
    said = await session.memory.dump()
    if not goal:
        return said, None
    turn = {message.id for message in await session.memory.turn()}
    earlier = [message for message in said if message.id not in turn]
    later = [message for message in said if message.id in turn]
    return [*earlier, *goal, *later], len(earlier)


def describe_result(session: Session, result: Result[Any]) -> dict[str, Any]:
    """Return a result as JSON."""
    return {
        "session": session.id,
        "run_id": result.run_id,
        "answer": clean_json(result.answer),
        "output": to_json_data(result.output),
        "stop_reason": result.stop_reason.value,
        "finish_reason": result.finish_reason,
        "steps": result.steps,
        "usage": describe_usage(result.usage),
        "pending": _pending(pending_in(session.memory)),
    }


def describe_usage(usage: Usage) -> dict[str, Any]:
    """Return usage as JSON."""
    return {
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_tokens": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
        "cost": usage.cost,
        "estimated": usage.estimated,
    }


def describe_difference(difference: Difference, names: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how two sessions differ; ``names`` tell which they are."""
    sides = zip(names, difference.rests, strict=True)
    return {
        "common": difference.common,
        "sides": [
            {**name, "messages": [describe_message(message) for message in rest]}
            for name, rest in sides
        ],
        "state": clean_json(
            [{"name": name, "values": values} for name, values in difference.state]
        ),
    }


def _pending(pending: Pending | None) -> dict[str, Any] | None:
    if pending is None:
        return None
    return {
        "calls": [clean_json(call.model_dump(mode="json")) for call in pending.calls],
        "questions": dict(pending.questions),
        "schemas": dict(pending.schemas),
    }
