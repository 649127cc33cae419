"""A run of another process, told from what it records."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Mapping
from types import MappingProxyType

from agent_brain.errors import BrainUseError, SessionBusyError, SessionsClosedError
from agent_brain.limits import StopReason
from agent_brain.memories.message import Message, Role
from agent_brain.serving.event_log import SessionEvent
from agent_brain.serving.pending import Pending
from agent_brain.serving.session import Session
from agent_brain.serving.web.chat.threads import Path, current_path, waiting_calls
from agent_brain.states import events
from agent_brain.states.models.llm import provider_calls_of
from agent_brain.states.sources import CITATIONS, sources_of
from agent_brain.tools.action import Action


async def recorded_events(session: Session) -> AsyncGenerator[SessionEvent, None]:
    """Yield a run that another process has as events, from its beginning to its end.

    Each message comes whole, when it was recorded.

    Raises:
        SessionBusyError: Another run has begun in the session.
        BrainUseError: The run has failed, or its process has ended.
        SessionsClosedError: The sessions are closed.
    """
    memory, run_id = session.memory, session.memory.control.run_id or ""
    told: set[str] = set()
    calls: dict[str, tuple[Path, Action]] = {}
    yield _item(events.RunStarted(None, at=events.Position(run_id)))
    with session.events() as reader:
        while True:
            elsewhere, turn = session.elsewhere, await memory.turn()
            if memory.control.run_id != run_id:
                raise SessionBusyError("Another run has begun: load the conversation again")
            for message in turn:
                if message.id not in told:
                    told.add(message.id)
                    for event in told_by(message, calls, run_id, current_path(memory.control)):
                        yield _item(event)
            if not elsewhere:
                break
            if not await reader.batch():
                raise SessionsClosedError("The sessions were closed")
    result = await session.brain.stored_result()
    if result is None:
        raise BrainUseError("The run was interrupted, as its process has ended: it can be resumed")
    if result.stop_reason is StopReason.FAILED:
        raise BrainUseError("The run has failed")
    paths = {call.id: path for path, call in waiting_calls(session)}
    for event in asked_in(session.pending, run_id, paths):
        yield _item(event)
    reason, usage = result.stop_reason, result.usage
    at = events.Position(run_id, result.steps)
    yield _item(
        events.RunFinished(reason, result.answer, result.output, usage, result.finish_reason, at=at)
    )


def _item(event: events.AgentEvent) -> SessionEvent:
    return SessionEvent(event, "", 0)  # of no log: no reader comes back to it


def told_by(
    message: Message, calls: dict[str, tuple[Path, Action]], run_id: str, path: Path
) -> Iterator[events.AgentEvent]:
    """Yield what a message says; new calls are those of the net at ``path``."""
    if message.role is Role.ASSISTANT:
        at = events.Position(run_id)
        yield events.ResponseStarted(message.id, at=at)
        for call in provider_calls_of(message.metadata):
            told = call.id, call.name, call.args, call.result
            yield events.ProviderToolCalled(*told, message.id, at=at)
        thought = message.metadata.get("thought") is True
        yield events.TextDelta(message.content, thought=thought, response_id=message.id, at=at)
        for attachment in message.attachments:
            yield events.AttachmentReceived(attachment, message.id, at=at)
        metadata = message.metadata
        if sources := sources_of(metadata.get(CITATIONS) or metadata.get("sources")):
            yield events.SourcesCited(sources, message.id, at=at)
        for action in message.tool_calls:
            calls[action.id] = path, action
            yield events.ActionRequested(action, message.id, at=events.Position(run_id, path=path))
    elif message.role is Role.TOOL and message.tool_call_id in calls:
        path, action = calls[message.tool_call_id]
        yield events.ActionFinished(action, message, at=events.Position(run_id, path=path))


def asked_in(
    pending: Pending | None, run_id: str, paths: Mapping[str, Path] = MappingProxyType({})
) -> Iterator[events.AgentEvent]:
    """Yield what a run waits for; ``paths`` has those of the nets that ask."""
    if pending is None:
        return
    for call in pending.calls:
        yield events.ApprovalRequested(
            (call,), at=events.Position(run_id, path=paths.get(call.id, ()))
        )
    for key, prompt in pending.questions.items():
        at = events.Position(run_id, path=paths.get(key, ()))
        yield events.InputRequested(prompt, key, pending.schemas.get(key), at=at)
