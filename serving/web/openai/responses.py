"""The events of a run as events of the Responses API."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from agent_brain.limits import StopReason
from agent_brain.memories.message import Attachment
from agent_brain.serving.web.openai.errors import ApiError, api_error, log_failure
from agent_brain.serving.web.openai.response_items import (
    CallItem,
    TextItem,
    approval_item,
    picture_data,
    picture_item,
)
from agent_brain.serving.web.openai.response_request import ResponseRequest
from agent_brain.serving.web.openai.translate import CITED, CUT_OFF, Json, OpenAITranslator, frame
from agent_brain.states import events
from agent_brain.states.usage import Usage

_Source: TypeAlias = tuple[tuple[str, ...], str | None, int, bool]  # path, response, step, thought
_CUT = {"length": "max_output_tokens", "content_filter": "content_filter"}
_CODES = ("rate_limit_exceeded", "invalid_prompt")  # beside server_error


class ResponseStream(OpenAITranslator):
    """Translates the events of a run into events of the Responses API.

    The last event holds the whole response. A run that fails before there was any output raises its
    error as an :class:`~agent_brain.serving.web.openai.errors.ApiError`. Tool calls are shown as
    ``mcp_call`` items, reasoning as ``reasoning`` items.

    Args:
        response_id: The ID of the response.
        model: The name of the model, as the client knows it.
        approved: IDs of calls that a person has approved.
        fields: Fields of the request that the response repeats.
        options: As for :class:`OpenAITranslator`.

    Attributes:
        ended: Whether the last event was returned.
        failed_run: Whether the run failed.
    """

    def __init__(
        self,
        response_id: str,
        model: str,
        *,
        approved: Iterable[str] = (),
        fields: Mapping[str, Any] | None = None,
        most_tokens: int | None = None,
        **options: Any,
    ) -> None:
        super().__init__(model, most_tokens=most_tokens, **options)
        self.ended = False
        self.failed_run = False
        self._approved = frozenset(approved)
        self._response = _new_response(response_id, model, {**(fields or {})})
        if most_tokens is not None:
            self._response["max_output_tokens"] = most_tokens
        self._sequence = 0
        self._output: dict[int, Json] = {}
        self._places = 0
        self._texts: dict[_Source, TextItem] = {}
        self._whole_texts: set[_Source] = set()  # a call has followed, which is not shown
        self._calls: dict[str, CallItem] = {}

    def encode(self, part: Json) -> bytes:
        """Return an event as a server-sent event."""
        return frame(part, part["type"])

    def translate(self, event: events.AgentEvent) -> list[Json]:
        """Return the events that ``event`` leads to.

        Raises:
            ApiError: The run failed, or a budget ended it, before there was any output.
        """
        if isinstance(event, events.RunFailed):
            return self._numbered(self._fail(api_error(event.error)))
        return self._numbered(super().translate(event))

    def fail(self, error: Exception) -> list[Json]:
        """Return the events that end a stream, unless ``response.failed`` has."""
        log_failure(error)
        return [] if self.ended else self._numbered(self._fail(api_error(error)))

    def _numbered(self, parts: list[Json]) -> list[Json]:
        for each in parts:
            each["sequence_number"] = self._sequence
            self._sequence += 1
        return parts

    def _begin(self) -> list[Json]:
        return [self._status_event("created"), self._status_event("in_progress")]

    def _say(self, event: events.TextDelta, text: str) -> list[Json]:
        source = (event.path, event.response_id, event.step, event.thought)
        parts: list[Json] = []
        item = self._texts.get(source)
        if item is None:
            parts = self._end_texts(event.path)
            item = self._texts[source] = TextItem(self._place(), thought=event.thought)
            parts += item.begin()
        self._whole_texts.discard(source)
        return [*parts, item.say(text)]

    def _picture(self, picture: Attachment) -> list[Json]:
        place, data = self._place(), picture_data(picture)
        if data is None:
            text = TextItem(place, thought=False)
            said = text.say(f"![]({picture.url})")
            return [*text.begin(), said, *self._keep(*text.end("completed"))]
        return self._keep(*picture_item(place, picture.media_type, data))

    def _show(
        self, event: events.ActionRequested | events.ActionStarted | events.ActionFinished
    ) -> list[Json]:
        action = event.action
        parts: list[Json] = []
        if isinstance(event, events.ActionRequested):
            return []
        if isinstance(event, events.ActionStarted) or action.id not in self._calls:
            parts = self._end_texts(event.path)
            approved = action.id in self._approved
            item = CallItem(self._place(), action, self._model, approved=approved)
            self._calls[action.id] = item
            parts += item.begin()
        if isinstance(event, events.ActionFinished):
            parts += self._keep(*self._calls.pop(action.id).end(event.result))
        return parts

    def _hide(
        self, event: events.ActionRequested | events.ActionStarted | events.ActionFinished
    ) -> None:
        if not isinstance(event, events.ActionRequested):
            self._whole_texts |= {source for source in self._texts if source[0] == event.path}

    def _finish(self, event: events.RunFinished) -> list[Json]:
        status, reason = self._status(event)
        answers = [(each[1], item) for each, item in self._texts.items() if not each[-1]]
        parts = [*(self._cite(*answers[-1]) if answers else ()), *self._end_all(status)]
        if event.stop_reason == StopReason.APPROVAL:
            for action in self._waiting_calls:
                parts += self._whole(approval_item(action, self._model))
        for text in self._closing(event):
            item = TextItem(self._place(), thought=False)
            parts += [*item.begin(), item.say(text), *self._cite(None, item)]
            parts += self._keep(*item.end("completed"))
        self._response |= {
            "status": status,
            "incomplete_details": {"reason": reason} if reason else None,
            "usage": usage_of(event.usage),
            "agent_brain": self._extension(event),
        }
        if status == "completed":
            self._response["completed_at"] = int(time.time())
        self.ended = True
        return [*parts, self._status_event(status)]

    def _cite(self, response_id: str | None, item: TextItem) -> list[Json]:
        """Add to the answer, which is that of a response, what the run cites, once."""
        found = self._citations({response_id: 0} if response_id else {}, item.length)
        cited = [{"type": CITED, **each} for each in found]
        self._cited.clear()
        return item.annotate(cited)

    def _closing(self, event: events.RunFinished) -> list[str]:
        """Return text that has not been streamed."""
        if event.stop_reason == StopReason.INPUT:
            return self._questions[:1]
        return [] if event.stop_reason == StopReason.APPROVAL else self._unsaid(event)

    def _status(self, event: events.RunFinished) -> tuple[str, str | None]:
        """Return the status of the response, and why it is incomplete."""
        if self._is_limited(event):
            return "incomplete", "max_output_tokens"
        if event.stop_reason in CUT_OFF:
            return "incomplete", None
        cut = _CUT.get(event.finish_reason or "")
        if cut is not None and event.stop_reason == StopReason.DONE:
            return "incomplete", cut
        return "completed", None

    def _fail(self, error: ApiError) -> list[Json]:
        self.ended = self.failed_run = True
        if not self._began:
            raise error
        parts = self._end_all("incomplete")
        code = error.code if error.code in _CODES else "server_error"
        self._response |= {"status": "failed", "error": {"code": code, "message": error.message}}
        return [*parts, self._status_event("failed")]

    def _end_texts(self, path: tuple[str, ...]) -> list[Json]:
        """End the texts of a branch, as something else follows in it."""
        parts: list[Json] = []
        for source in [source for source in self._texts if source[0] == path]:
            parts += self._keep(*self._texts.pop(source).end("completed"))
        return parts

    def _end_all(self, status: str) -> list[Json]:
        parts: list[Json] = []
        for source, text in self._texts.items():
            whole = source in self._whole_texts
            parts += self._keep(*text.end("completed" if whole else status))
        self._texts.clear()
        for call in self._calls.values():
            parts += self._keep(*call.end(None))
        self._calls.clear()
        return parts

    def _whole(self, item: Json) -> list[Json]:
        place = self._place()
        added = {"type": "response.output_item.added", "output_index": place, "item": item}
        done = {"type": "response.output_item.done", "output_index": place, "item": item}
        return [added, *self._keep(item, [done])]

    def _place(self) -> int:
        self._places += 1
        return self._places - 1

    def _keep(self, item: Json, parts: list[Json]) -> list[Json]:
        """Keep ``item`` for the whole response; return ``events``, the last of which has it."""
        self._output[parts[-1]["output_index"]] = item
        return parts

    def _status_event(self, name: str) -> Json:
        output = [self._output[place] for place in sorted(self._output)]
        return {"type": f"response.{name}", "response": {**self._response, "output": output}}


def _new_response(response_id: str, model: str, fields: Json) -> Json:
    return {
        "id": response_id,
        "object": "response",
        "created_at": int(time.time()),
        "status": "in_progress",
        "background": False,
        "error": None,
        "incomplete_details": None,
        "model": model,
        "parallel_tool_calls": True,
        "temperature": None,
        "tool_choice": "auto",
        "tools": [],
        "top_p": None,
        "truncation": "disabled",
        "usage": None,
        **ResponseRequest.model_validate({"model": model, "input": ""}).repeated(),
        **fields,
    }


def usage_of(usage: Usage) -> Json:
    """Return the usage of a run as the Responses API reports it."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


class WholeResponse:
    """Keeps the response of the last event, for a client that wants the whole."""

    def __init__(self) -> None:
        self._response: Json = {}

    def add(self, event: Json) -> None:
        """Take an event."""
        self._response = event.get("response", self._response)

    def body(self) -> Json:
        """Return the response."""
        return self._response
