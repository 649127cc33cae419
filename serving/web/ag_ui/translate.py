"""Translates the events of a run into those of AG-UI."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, TypeVar

from ag_ui import core
from ag_ui.encoder import EventEncoder

from agent_brain.common.ids import new_id
from agent_brain.common.text import clean, to_compact_json
from agent_brain.limits import WAITING
from agent_brain.memories.control import SUSPENDED
from agent_brain.memories.message import CUT_REASONS, PARTIAL
from agent_brain.serving.pending import approval_question
from agent_brain.serving.web.ag_ui.ending import Ending, OwnedIds, Subagents
from agent_brain.serving.web.ag_ui.read import content_of
from agent_brain.serving.web.chat.threads import Path
from agent_brain.serving.web.chat.translator import NOT_RUN, ChatTranslator, Text
from agent_brain.states import events
from agent_brain.tools.action import Action
from agent_brain.tools.answers import fields_of

EventT = TypeVar("EventT", bound=core.BaseEvent)

DECISION: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean"},
        "editedArgs": {
            "type": "object",
            "description": "Arguments to call the tool with, in place of the model's.",
        },
        "reason": {"type": "string", "description": "Why it is not approved, for the model."},
    },
    "required": ["approved"],
}
TEXT = {"type": "string"}


def _payload(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a payload: that of a form, or of an object with the answer."""
    if fields_of(schema) is not None:
        return schema
    definitions = {"$defs": schema["$defs"]} if "$defs" in schema else {}
    answer = {key: part for key, part in schema.items() if key != "$defs"}
    return {
        "type": "object",
        "properties": {"answer": answer},
        "required": ["answer"],
        **definitions,
    }


def encode(event: core.BaseEvent) -> bytes:
    """Return an event as a server-sent event."""
    return _encoder.encode(event).encode()


_encoder = EventEncoder()


class AgUiTranslator(ChatTranslator[core.BaseEvent]):
    """Translates the events of one run.

    Args:
        thread_id: The conversation, as the client names it.
        run_id: The run, as the client names it.
        session: The ID of the session.
        sent: IDs of messages that the client has sent, and knows.
        front_end: Names of the tools that the client runs.
        options: As for :class:`ChatTranslator`.
    """

    def __init__(
        self,
        thread_id: str,
        run_id: str,
        *,
        session: str,
        sent: Iterable[str] = (),
        front_end: Collection[str] = (),
        **options: Any,
    ) -> None:
        super().__init__(session, **options)
        self._thread_id = thread_id
        self._run_id = run_id
        self._front_end = front_end
        self._sent = frozenset(sent)
        self._call_ids, self._message_ids = OwnedIds(), OwnedIds()
        self._steps: dict[Path, str] = {}
        self._subagents = Subagents(run_id)
        self._ending = Ending(thread_id, run_id)

    def encode(self, part: core.BaseEvent) -> bytes:
        """Return an event as a server-sent event."""
        return encode(part)

    def _inside_run(self, event: events.AgentEvent) -> list[core.BaseEvent]:
        return [*self._subagents.enter(event.path), *super()._inside_run(event)]

    def _tell(self, event: events.AgentEvent) -> list[core.BaseEvent]:
        match event:
            case events.RunStarted():
                run: dict[str, Any] = {"thread_id": self._thread_id, "run_id": self._run_id}
                return [core.RunStartedEvent(**run, protocol_version=core.PROTOCOL_VERSION)]
            case events.MessageReceived(message=message):
                if message.id in self._sent:
                    return []
                return [
                    core.TextMessageStartEvent(message_id=message.id, role="user"),
                    core.TextMessageContentEvent(message_id=message.id, delta=message.content),
                    core.TextMessageEndEvent(message_id=message.id),
                ]
            case events.ToolProgress():
                value = {
                    "toolCallId": self._call_id(event.path, event.action),
                    "done": event.done,
                    "total": event.total,
                    "message": None if event.message is None else clean(event.message),
                }
                return [self._at(event.path, core.CustomEvent, name="tool_progress", value=value)]
            case events.PartialOutput(thought=False):
                return self._own_event(event)
            case events.AttachmentReceived() | events.SourcesCited():
                return self._own_event(event)
            case _:
                return self._own_event(event) if self._is_own(event) else self._tell_net(event)

    def _at(self, path: Path, kind: Callable[..., EventT], **fields: Any) -> EventT:
        """Return an event of the agent, or of the subagent at ``path``."""
        return kind(subagent_run_id=self._subagents.id_of(path), **fields)

    # States

    def _tell_net(self, event: events.AgentEvent) -> list[core.BaseEvent]:
        """Tell of states and of model calls."""
        path, state = event.path, event.state or ""
        match event:
            case events.StateEntered():
                known = self._steps.get(path)
                parts = [] if known is None else self._leave_state(path, known)
                self._steps[path] = state
                return [*parts, self._at(path, core.StepStartedEvent, step_name=state)]
            case events.StateExited():
                parts = self._leave_state(path, state)
                ends = event.next is None and path
                return [*parts, *(self._leave(path) if ends else [])]
            case events.ResponseStarted():
                self._ending.models[event.response_id] = event.model
            case events.UsageReported():  # the state ends a text that is whole
                self._ending.count(event)
                if event.finish_reason in CUT_REASONS:
                    return self._end_response(event, event.response_id, cut_off=True)
        return []

    def _leave_state(self, path: Path, state: str) -> list[core.BaseEvent]:
        parts = [*self._leave((*path, state)), *self._end_state(path, state)]
        if self._steps.get(path) == state:
            parts += self._end_step(path)
        return parts

    def _end_step(self, path: Path) -> list[core.BaseEvent]:
        step = self._steps.pop(path, None)
        return [] if step is None else [self._at(path, core.StepFinishedEvent, step_name=step)]

    def _leave(
        self, path: Path, *, error: str | None = None, waits: bool = False
    ) -> list[core.BaseEvent]:
        """End everything at ``path`` and inside it, innermost first; not the run."""
        parts: list[core.BaseEvent] = []
        for inner in [*self._subagents.inside(path), path]:
            parts += self._end_path(inner, cut_off=error is not None)
            parts += self._end_calls(inner, waits=waits)
            parts += self._end_step(inner)
            if (subagent := self._subagents.id_of(inner)) is not None:
                interrupts = self._ending.interrupts_of(subagent) if waits else None
                parts.append(self._subagents.finish(inner, error=error, interrupts=interrupts))
        return parts

    # Texts

    def _text_id(self, event: events.TextDelta) -> str:
        if event.thought or event.response_id is None:
            return new_id("reasoning" if event.thought else "msg")
        return self._message_ids.get(event.response_id, self._subagents.id_of(event.path))

    def _begin_text(self, text: Text) -> list[core.BaseEvent]:
        if not text.thought:
            return [
                self._at(
                    text.path, core.TextMessageStartEvent, message_id=text.id, role="assistant"
                )
            ]
        return [
            self._at(text.path, core.ReasoningStartEvent, message_id=text.id),
            self._at(text.path, core.ReasoningMessageStartEvent, message_id=text.id),
        ]

    def _delta(self, text: Text, piece: str) -> core.BaseEvent:
        kind = core.ReasoningMessageContentEvent if text.thought else core.TextMessageContentEvent
        return self._at(text.path, kind, message_id=text.id, delta=piece)

    def _end_text(self, text: Text, *, cut_off: bool) -> list[core.BaseEvent]:
        if not text.thought:
            mark = {PARTIAL: True} if cut_off else None
            return [
                self._at(text.path, core.TextMessageEndEvent, message_id=text.id, metadata=mark)
            ]
        return [
            self._at(text.path, core.ReasoningMessageEndEvent, message_id=text.id),
            self._at(text.path, core.ReasoningEndEvent, message_id=text.id),
        ]

    def _own_event(self, event: events.Event) -> list[core.BaseEvent]:
        return [self._at(event.path, core.CustomEvent, name=event.kind, value=event.fields())]

    # Calls

    def _needs_client(self, action: Action) -> bool:
        return action.name in self._front_end

    def _call_id(self, path: Path, action: Action) -> str:
        """Return the ID of a call for the client: unique, and of a front-end call answerable."""
        own = self._needs_client(action)
        wanted = self._wait_id(action.id) if own else "/".join([*path, action.id])
        return self._call_ids.get(clean(wanted), self._subagents.id_of(path))

    def _show(
        self, path: Path, action: Action, response_id: str | None = None
    ) -> list[core.BaseEvent]:
        arguments = to_compact_json(action.args) if action.unparsed is None else action.unparsed
        return [
            *self._begin_arguments(path, action, response_id),
            self._arguments(path, action, arguments),
            *self._end_arguments(path, action),
        ]

    def _begin_arguments(
        self, path: Path, action: Action, response_id: str | None
    ) -> list[core.BaseEvent]:
        parent = response_id and self._message_ids.get(response_id, self._subagents.id_of(path))
        named = {"tool_call_name": action.name, "parent_message_id": parent}
        call_id = self._call_id(path, action)
        return [self._at(path, core.ToolCallStartEvent, tool_call_id=call_id, **named)]

    def _arguments(self, path: Path, action: Action, piece: str) -> core.BaseEvent:
        call_id = self._call_id(path, action)
        return self._at(path, core.ToolCallArgsEvent, tool_call_id=call_id, delta=piece)

    def _end_arguments(self, path: Path, action: Action) -> list[core.BaseEvent]:
        return [self._at(path, core.ToolCallEndEvent, tool_call_id=self._call_id(path, action))]

    def _drop(self, path: Path, action: Action) -> list[core.BaseEvent]:
        return [*self._end_arguments(path, action), self._not_run(path, action)]

    def _result(self, event: events.ActionFinished) -> list[core.BaseEvent]:
        result = self._at(
            event.path,
            core.ToolCallResultEvent,
            message_id=event.result.id,
            tool_call_id=self._call_id(event.path, event.action),
            content=content_of(event.result),
            role="tool",
            metadata={"isError": True} if event.result.is_error else None,
        )
        return [result]

    def _not_run(self, path: Path, action: Action) -> core.BaseEvent:
        return self._at(
            path,
            core.ToolCallResultEvent,
            message_id=new_id("msg"),
            tool_call_id=self._call_id(path, action),
            content=NOT_RUN,
            role="tool",
        )

    def _approval(self, path: Path, action: Action) -> list[core.BaseEvent]:
        self._ending.interrupts.append(
            core.Interrupt(
                id=self._wait_id(action.id),
                reason="tool_call",
                message=approval_question(action),
                tool_call_id=self._call_id(path, action),
                response_schema=DECISION,
                subagent_run_id=self._subagents.id_of(path),
            )
        )
        return []

    def _question(self, event: events.InputRequested, call: Action | None) -> list[core.BaseEvent]:
        call_id = None if call is None else self._call_id(event.path, call)
        if call is not None and call_id and self._needs_client(call):
            self._ending.pending.append(call_id)
            return []
        self._ending.interrupts.append(
            core.Interrupt(
                id=self._wait_id(event.id),
                reason="input_required",
                message=clean(event.prompt),
                tool_call_id=call_id,
                response_schema=_payload(event.schema or TEXT),
                subagent_run_id=self._subagents.id_of(event.path),
            )
        )
        return []

    # The end

    def _fail(self, error: Exception) -> list[core.BaseEvent]:
        failed = self._ending.failed(error)
        return [*self._leave((), error=failed.message), failed]

    def _finish(self, event: events.RunFinished) -> list[core.BaseEvent]:
        wrong = event.stop_reason != "done" and event.stop_reason not in SUSPENDED
        error = f"The run ended: {event.stop_reason}" if wrong else None
        parts = self._leave((), error=error, waits=event.stop_reason in WAITING)
        return [*parts, *self._unsaid(event), self._ending.finished(event)]
