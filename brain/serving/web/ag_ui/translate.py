"""Translates the events of a run into those of AG-UI."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ag_ui.core import (
    PROTOCOL_VERSION,
    BaseEvent,
    CustomEvent,
    RunStartedEvent,
    StepFinishedEvent,
    StepStartedEvent,
    ToolCallArgsEvent,
    ToolCallEndEvent,
    ToolCallResultEvent,
    ToolCallStartEvent,
)

from agent_brain.limits import WAITING
from agent_brain.memories.control import SUSPENDED
from agent_brain.serving.web.ag_ui.content import content_of
from agent_brain.serving.web.ag_ui.ending import Ending
from agent_brain.serving.web.ag_ui.owned_ids import OwnedIds
from agent_brain.serving.web.ag_ui.subagents import Subagents
from agent_brain.serving.web.ag_ui.texts import Texts, user_message, whole_text
from agent_brain.serving.web.chat.calls import NOT_RUN, ShownCalls
from agent_brain.serving.web.chat.parts import Path
from agent_brain.serving.web.chat.wait_ids import wait_id
from agent_brain.states.events import (
    KINDS,
    ActionFinished,
    ActionRequested,
    ActionStarted,
    AgentEvent,
    ApprovalRequested,
    Event,
    InputRequested,
    MessageReceived,
    ResponseStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    StateEntered,
    StateExited,
    TextDelta,
    ToolProgress,
    UsageReported,
)
from agent_brain.tools.action import Action
from agent_brain.tools.ids import new_id
from agent_brain.tools.text import clean, to_compact_json


class AgUiTranslator:
    """Translates the events of one run.

    Whatever comes in, what goes out is well-formed: everything that is started is finished, in the
    right order, also if the run fails or is cut off (:meth:`fail`).

    Args:
        thread_id: The conversation, as the client names it.
        run_id: The run, as the client names it.
        session: The ID of the session.
        sent: IDs of messages that the client has sent, and knows.
        known: Calls without a result that the client knows from the run that this one continues,
            with their paths.
        answered: Calls of that run whose results the client has given itself.
        front_end: Names of the tools that the client runs.
        show_tools: Whether calls of other tools are shown, unless they wait for a person.
    """

    def __init__(
        self,
        thread_id: str,
        run_id: str,
        *,
        session: str,
        sent: Iterable[str] = (),
        known: Iterable[tuple[Path, Action]] = (),
        answered: Iterable[tuple[Path, Action]] = (),
        front_end: Collection[str] = (),
        show_tools: bool = True,
    ) -> None:
        self._thread_id = thread_id
        self._run_id = run_id
        self._session = session
        self._front_end = front_end
        self._sent = frozenset(sent)
        self._calls = ShownCalls(known, answered=answered, visible=show_tools)
        self._call_ids = OwnedIds()
        self._steps: dict[Path, str] = {}
        self._subagents = Subagents(run_id)
        self._texts = Texts(self._subagents)
        self._ending = Ending(thread_id, run_id, session)
        self._started = self._ended = False

    def translate(self, event: AgentEvent) -> list[BaseEvent]:
        """Return the events of AG-UI for an event of the run; none before it starts."""
        if isinstance(event, RunStarted):
            self._started = True
            return [
                RunStartedEvent(
                    thread_id=self._thread_id,
                    run_id=self._run_id,
                    protocol_version=PROTOCOL_VERSION,
                )
            ]
        if self._ended or not self._started:
            return []
        if isinstance(event, RunFailed):
            return self.fail(event.error)
        if isinstance(event, RunFinished):
            return self._end(event)
        return [*self._subagents.enter(event.path), *self._inside_run(event)]

    def fail(self, error: Exception) -> list[BaseEvent]:
        """Return the events that end a stream with an error, which the run did not report."""
        if self._ended:
            return []
        self._ended = True
        failed = self._ending.failed(error)
        return [*self._leave((), error=failed.message), failed]

    def _inside_run(self, event: AgentEvent) -> list[BaseEvent]:
        match event:
            case TextDelta():
                return self._texts.add(event)
            case StateEntered() | StateExited():
                return self._state(event)
            case ActionRequested():
                return self._request(event)
            case ActionStarted(action=action):
                return self._show(event, action) if self._calls.begin(event, action) else []
            case ToolProgress():
                return self._progress(event)
            case ActionFinished():
                return self._result(event)
            case ApprovalRequested() | InputRequested():
                return self._wait(event)
            case ResponseStarted(response_id=response_id, model=model):
                self._ending.models[response_id] = model
                return []
            case UsageReported():
                self._ending.count(event)
                return self._texts.close_response(event, event.response_id)
            case MessageReceived(message=message):
                return [] if message.id in self._sent else user_message(message)
            case _:
                return [] if event.kind in KINDS else self._other(event)

    def _state(self, event: StateEntered | StateExited) -> list[BaseEvent]:
        path, state = event.path, event.state or ""
        if isinstance(event, StateExited):
            events = self._leave_state(path, state)
            if event.next is None and path:
                events += self._leave(path)
            return events
        events = self._leave_state(path, self._steps[path]) if path in self._steps else []
        self._steps[path] = state
        subagent = self._subagents.id_of(path)
        return [*events, StepStartedEvent(step_name=state, subagent_run_id=subagent)]

    def _leave_state(self, path: Path, state: str) -> list[BaseEvent]:
        events = self._leave((*path, state))
        events += self._texts.close_state(path, state)
        if self._steps.get(path) == state:
            del self._steps[path]
            subagent = self._subagents.id_of(path)
            events.append(StepFinishedEvent(step_name=state, subagent_run_id=subagent))
        return events

    def _leave(
        self, path: Path, *, error: str | None = None, waits: bool = False
    ) -> list[BaseEvent]:
        """End everything at ``path`` and inside it, innermost first; not the run."""
        events: list[BaseEvent] = []
        for inner in [*self._subagents.inside(path), path]:
            events += self._texts.close_path(inner)
            if not waits:
                events += self._close_calls(inner)
            subagent = self._subagents.id_of(inner)
            if (step := self._steps.pop(inner, None)) is not None:
                events.append(StepFinishedEvent(step_name=step, subagent_run_id=subagent))
            if subagent is not None:
                interrupts = self._ending.interrupts_of(subagent) if waits else None
                events.append(self._subagents.finish(inner, error=error, interrupts=interrupts))
        return events

    def _close_calls(self, path: Path) -> list[BaseEvent]:
        return [
            ToolCallResultEvent(
                message_id=new_id("msg"),
                tool_call_id=self._call_id(call_path, action),
                content=NOT_RUN,
                role="tool",
                subagent_run_id=self._subagents.id_of(call_path),
            )
            for call_path, action in self._calls.close_path(path)
        ]

    def _call_id(self, path: Path, action: Action) -> str:
        """Return the ID of a call for the client: unique, and of a front-end call answerable."""
        own = action.name in self._front_end
        wanted = wait_id(self._session, action.id) if own else "/".join([*path, action.id])
        return self._call_ids.get(clean(wanted), self._subagents.id_of(path))

    def _request(self, event: ActionRequested) -> list[BaseEvent]:
        action = event.action
        events = self._texts.close_response(event, event.response_id)
        visible = self._calls.request(event, action)
        if visible or action.name in self._front_end:
            self._calls.need(event, action)
            events += self._show(event, action, event.response_id)
        return events

    def _show(
        self, event: AgentEvent, action: Action, parent: str | None = None
    ) -> list[BaseEvent]:
        call_id = self._call_id(event.path, action)
        subagent = self._subagents.id_of(event.path)
        if parent is not None:
            parent = self._texts.message_id(parent, subagent)
        arguments = to_compact_json(action.args) if action.unparsed is None else action.unparsed
        return [
            ToolCallStartEvent(
                tool_call_id=call_id,
                tool_call_name=action.name,
                parent_message_id=parent,
                subagent_run_id=subagent,
            ),
            ToolCallArgsEvent(tool_call_id=call_id, delta=arguments, subagent_run_id=subagent),
            ToolCallEndEvent(tool_call_id=call_id, subagent_run_id=subagent),
        ]

    def _progress(self, event: ToolProgress) -> list[BaseEvent]:
        if self._calls.is_hidden(event, event.action):
            return []
        value = {
            "toolCallId": self._call_id(event.path, event.action),
            "done": event.done,
            "total": event.total,
            "message": None if event.message is None else clean(event.message),
        }
        subagent = self._subagents.id_of(event.path)
        return [CustomEvent(name="tool_progress", value=value, subagent_run_id=subagent)]

    def _other(self, event: Event) -> list[BaseEvent]:
        """Return an event of the program's own class as it is."""
        subagent = self._subagents.id_of(event.path)
        return [CustomEvent(name=event.kind, value=event.fields(), subagent_run_id=subagent)]

    def _result(self, event: ActionFinished) -> list[BaseEvent]:
        events = []
        if self._calls.begin(event, event.action):
            events = self._show(event, event.action)
        if self._calls.finish(event, event.action):
            result = ToolCallResultEvent(
                message_id=event.result.id,
                tool_call_id=self._call_id(event.path, event.action),
                content=content_of(event.result),
                role="tool",
                subagent_run_id=self._subagents.id_of(event.path),
            )
            if event.result.is_error:
                result.metadata = {"isError": True}
            events.append(result)
        return events

    def _wait(self, event: ApprovalRequested | InputRequested) -> list[BaseEvent]:
        subagent = self._subagents.id_of(event.path)
        if isinstance(event, InputRequested):
            action = self._calls.open_call(event, event.id)
            call_id = None if action is None else self._call_id(event.path, action)
            if action is not None and call_id and action.name in self._front_end:
                self._ending.wait_for_call(call_id)
            else:
                self._ending.wait_for_answer(event, call_id, subagent)
            return []
        events: list[BaseEvent] = []
        for action in event.actions:
            if self._calls.need(event, action):
                events += self._show(event, action)
            self._ending.wait_for_approval(action, self._call_id(event.path, action), subagent)
        return events

    def _end(self, event: RunFinished) -> list[BaseEvent]:
        self._ended = True
        waits = event.stop_reason in WAITING
        done = event.stop_reason == "done"
        suspended = event.stop_reason in SUSPENDED
        error = None if done or suspended else f"The run ended: {event.stop_reason}"
        events = self._leave((), error=error, waits=waits)
        if done and event.answer and not self._texts.said:
            events += whole_text(new_id("msg"), event.answer)
        return [*events, self._ending.finished(event)]
