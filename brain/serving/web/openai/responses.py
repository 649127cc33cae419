"""The events of a run as events of the Responses API. Private."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, TypeAlias

from agent_brain.limits import StopReason
from agent_brain.serving.web.openai.chat import is_limit
from agent_brain.serving.web.openai.errors import ApiError, api_error, budget_error
from agent_brain.serving.web.openai.response_items import (
    CallItem,
    Item,
    ResponseEvent,
    TextItem,
    approval_item,
)
from agent_brain.serving.web.openai.shown import Shown
from agent_brain.serving.web.openai.token_limit import TokenLimit
from agent_brain.serving.web.openai.waiting import Waiting
from agent_brain.states.events import (
    ActionFinished,
    ActionStarted,
    AgentEvent,
    MessageReceived,
    ResponseStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    StateEntered,
    StateExited,
    TextDelta,
    UsageReported,
)
from agent_brain.states.usage import Usage

_Source: TypeAlias = tuple[tuple[str, ...], str | None, int, bool]  # path, response, step, thought
_BEFORE_OUTPUT = (
    MessageReceived,
    ResponseStarted,
    RunStarted,
    StateEntered,
    StateExited,
    UsageReported,
)


class ResponseStream:
    """Translates the events of a run into events of the Responses API, one at a time.

    The last event holds the whole response. The first one is returned when a model or a tool has
    begun to do something. A run that fails before raises its error as an
    :class:`~agent_brain.serving.web.openai.errors.ApiError`.

    Args:
        response_id: The ID of the response.
        model: The name of the model, as the client knows it.
        shown: What is shown beside the answer: tool calls as ``mcp_call`` items, reasoning as
            ``reasoning`` items.
        most_tokens: The limit on what the models write; None for no limit.
        session: The session, if the conversation is kept.
        approved: IDs of calls that a person has approved.
        fields: Fields of the request that the response repeats.

    Attributes:
        limit: The limit; once it is reached, the run should be cancelled.
        ended: Whether the last event was returned.
        failed: Whether the run failed.
    """

    def __init__(
        self,
        response_id: str,
        model: str,
        *,
        shown: Shown = Shown(),  # noqa: B008 - frozen
        most_tokens: int | None = None,
        session: str | None = None,
        approved: Iterable[str] = (),
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        self.limit = TokenLimit(most_tokens)
        self._model = model
        self._shown = shown
        self._session = session
        self._approved = frozenset(approved)
        self._response = _new_response(response_id, model, {**(fields or {})})
        self._response["max_output_tokens"] = most_tokens
        self.ended = False
        self.failed = False
        self._sequence = 0
        self._began = False
        self._waiting = Waiting()
        self._output: dict[int, Item] = {}
        self._places = 0
        self._texts: dict[_Source, TextItem] = {}
        self._calls: dict[str, CallItem] = {}
        self._said = False

    def take(self, event: AgentEvent) -> list[ResponseEvent]:
        """Return the events that ``event`` leads to.

        Raises:
            ApiError: The run failed, or a budget ended it, before there was any output.
        """
        events: list[ResponseEvent] = []
        if isinstance(event, RunFailed):
            events = self._fail(api_error(event.error))
        elif not self._began and not isinstance(event, _BEFORE_OUTPUT):
            events = self._begin(event)
        translate = self._TRANSLATORS.get(type(event))
        if translate is not None:
            events += translate(self, event)
        else:
            self._waiting.note(event)
        for each in events:
            each["sequence_number"] = self._sequence
            self._sequence += 1
        return events

    def _begin(self, event: AgentEvent) -> list[ResponseEvent]:
        if isinstance(event, RunFinished) and event.stop_reason == StopReason.BUDGET:
            return self._fail(budget_error())
        self._began = True
        return [self._status_event("created"), self._status_event("in_progress")]

    def _say(self, event: TextDelta) -> list[ResponseEvent]:
        text = self.limit.admit(event)
        if not text or (event.thought and not self._shown.thoughts):
            return []
        source = (event.path, event.response_id, event.step, event.thought)
        events: list[ResponseEvent] = []
        item = self._texts.get(source)
        if item is None:
            events = self._end_texts(event.path)
            item = self._texts[source] = TextItem(self._place(), thought=event.thought)
            events += item.begin()
        self._said = self._said or not event.thought
        return [*events, item.say(text)]

    def _report(self, event: UsageReported) -> list[ResponseEvent]:
        self.limit.report(event)
        return []

    def _begin_call(self, event: ActionStarted) -> list[ResponseEvent]:
        if not self._shown.tools:
            return []
        action = event.action
        events = self._end_texts(event.path)
        item = CallItem(self._place(), action, self._model, approved=action.id in self._approved)
        self._calls[action.id] = item
        return events + item.begin()

    def _end_call(self, event: ActionFinished) -> list[ResponseEvent]:
        if not self._shown.tools:
            return []
        events = (
            []
            if event.action.id in self._calls
            else self._begin_call(ActionStarted(event.action, at=event.at))
        )
        item = self._calls.pop(event.action.id)
        return events + self._keep(*item.end(event.result))

    def _finish(self, event: RunFinished) -> list[ResponseEvent]:
        status, reason = self._status(event)
        events = self._end_all(status)
        if event.stop_reason == StopReason.APPROVAL:
            for action in self._waiting.calls:
                events += self._whole(approval_item(action, self._model))
        for text in self._closing(event):
            item = TextItem(self._place(), thought=False)
            events += [*item.begin(), item.say(text), *self._keep(*item.end("completed"))]
        self._response |= {
            "status": status,
            "incomplete_details": {"reason": reason} if reason else None,
            "usage": usage_of(event.usage),
            "agent_brain": {"stop_reason": str(event.stop_reason), "run_id": event.run_id},
        }
        if self._session is not None:
            self._response["agent_brain"]["session"] = self._session
        if status == "completed":
            self._response["completed_at"] = int(time.time())
        self.ended = True
        return [*events, self._status_event(status)]

    def _closing(self, event: RunFinished) -> list[str]:
        """Return text that has not been streamed."""
        if event.stop_reason == StopReason.INPUT:
            return self._waiting.questions[:1]
        if event.stop_reason == StopReason.APPROVAL or self._said or self.limit.cut:
            return []
        return [event.answer] if event.answer else []

    def _status(self, event: RunFinished) -> tuple[str, str | None]:
        """Return the status of the response, and why it is incomplete."""
        reason = event.stop_reason
        if self.limit.reached and (self.limit.cut or reason == StopReason.CANCELLED):
            return "incomplete", "max_output_tokens"
        if is_limit(reason):
            return "incomplete", "max_output_tokens"
        if reason in (
            StopReason.CANCELLED,
            StopReason.STOPPED,
            StopReason.PAUSED,
            StopReason.SLEEPING,
        ):
            return "incomplete", None
        if reason == StopReason.DONE and event.finish_reason == "length":
            return "incomplete", "max_output_tokens"
        if reason == StopReason.DONE and event.finish_reason == "content_filter":
            return "incomplete", "content_filter"
        return "completed", None

    def _fail(self, error: ApiError) -> list[ResponseEvent]:
        self.ended = self.failed = True
        if not self._began:
            raise error
        events = self._end_all("incomplete")
        code = {"rate_limit_exceeded": "rate_limit_exceeded", "invalid_prompt": "invalid_prompt"}
        self._response["status"] = "failed"
        self._response["error"] = {
            "code": code.get(error.code or "", "server_error"),
            "message": error.message,
        }
        return [*events, self._status_event("failed")]

    def _end_texts(self, path: tuple[str, ...]) -> list[ResponseEvent]:
        """End the texts of a branch, as something else follows in it."""
        events: list[ResponseEvent] = []
        for source in [source for source in self._texts if source[0] == path]:
            events += self._keep(*self._texts.pop(source).end("completed"))
        return events

    def _end_all(self, status: str) -> list[ResponseEvent]:
        events: list[ResponseEvent] = []
        for text in self._texts.values():
            events += self._keep(*text.end(status))
        self._texts.clear()
        for call in self._calls.values():
            events += self._keep(*call.end(None))
        self._calls.clear()
        return events

    def _whole(self, item: Item) -> list[ResponseEvent]:
        place = self._place()
        added = {"type": "response.output_item.added", "output_index": place, "item": item}
        done = {"type": "response.output_item.done", "output_index": place, "item": item}
        return [added, *self._keep(item, [done])]

    def _place(self) -> int:
        self._places += 1
        return self._places - 1

    def _keep(self, item: Item, events: list[ResponseEvent]) -> list[ResponseEvent]:
        """Keep ``item`` for the whole response; return ``events``, the last of which has it."""
        self._output[events[-1]["output_index"]] = item
        return events

    def _status_event(self, name: str) -> ResponseEvent:
        output = [self._output[place] for place in sorted(self._output)]
        return {"type": f"response.{name}", "response": {**self._response, "output": output}}

    _TRANSLATORS: ClassVar[dict[type, Callable[[Any, Any], list[ResponseEvent]]]] = {
        TextDelta: _say,
        UsageReported: _report,
        ActionStarted: _begin_call,
        ActionFinished: _end_call,
        RunFinished: _finish,
    }


def _new_response(response_id: str, model: str, fields: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": model,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "store": True,
        "temperature": None,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None,
        **fields,
    }


def usage_of(usage: Usage) -> dict[str, Any]:
    """Return the usage of a run as the Responses API reports it."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }
