"""Translates the events of a run into the parts of a UI message stream.

The protocol is that of version 7 of the npm package ``ai``: its documentation, "Stream Protocols",
and ``UIMessageChunk``, its type of the parts.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, TypeAlias

from agent_brain.common.ids import new_id
from agent_brain.common.text import clean, clean_json, to_compact_json
from agent_brain.limits import WAITING
from agent_brain.memories.control import SUSPENDED
from agent_brain.memories.message import CUT_REASONS, PARTIAL, Attachment
from agent_brain.serving.web.chat.threads import Path
from agent_brain.serving.web.chat.translator import NOT_RUN, ChatTranslator, Text
from agent_brain.serving.web.requests import as_http_error
from agent_brain.states import events
from agent_brain.states.sources import CitedSource
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action

Chunk: TypeAlias = dict[str, Any]

FINISH_REASONS = {
    "length": "length",
    "content_filter": "content-filter",
    "refusal": "content-filter",
}


class UIMessageTranslator(ChatTranslator[Chunk]):
    """Translates the events of one run.

    Args:
        session: The ID of the session.
        message_id: The ID of the message that the stream builds or continues.
        denied: IDs of calls that a person has not approved.
        options: As for :class:`ChatTranslator`.
    """

    last = b"data: [DONE]\n\n"

    def __init__(
        self, *, session: str, message_id: str, denied: Collection[str] = (), **options: Any
    ) -> None:
        super().__init__(session, **options)
        self._message_id = message_id
        self._denied = denied
        self._in_step = False

    def encode(self, part: Chunk) -> bytes:
        """Return a part as a server-sent event."""
        return b"data: %b\n\n" % to_compact_json(part).encode()

    def _tell(self, event: events.AgentEvent) -> list[Chunk]:
        match event:
            case events.RunStarted():
                about = {"sessionId": self._session, "runId": event.run_id}
                start = {"type": "start", "messageId": self._message_id}
                return [{**start, "messageMetadata": about}]
            case events.StateExited():
                return self._end_state(event.path, event.state)
            case events.ResponseStarted(path=(), purpose=None):
                return [*self._end_step(), *self._begin_step()]
            case events.MessageReceived(message=message):
                parts = [{"type": "text", "text": message.content}]
                return [{"type": "steering-message", "id": message.id, "parts": parts}]
            case events.PartialOutput(thought=False):  # replaces the one that the message has
                part_id = event.response_id or "output"
                return [{"type": "data-output", "id": part_id, "data": event.fields()["output"]}]
            case events.ToolProgress():
                call = {"toolCallId": self._call_id(event.path, event.action)}
                done = {"done": event.done, "total": event.total, "message": event.message}
                data = clean_json({**call, **done})
                return [{"type": "data-progress", "data": data, "transient": True}]
            case events.AttachmentReceived():
                return [*self._begin_step(), _file(event.attachment)]
            case events.SourcesCited():
                return [*self._begin_step(), *map(_source, event.sources)]
            case _:
                return self._own_event(event) if self._is_own(event) else []

    def _begin_step(self) -> list[Chunk]:
        if self._in_step:
            return []
        self._in_step = True
        return [{"type": "start-step"}]

    def _end_step(self) -> list[Chunk]:
        ended = self._end_path(())
        if not self._in_step:
            return ended
        self._in_step = False
        return [*ended, {"type": "finish-step"}]

    # Texts

    def _text_id(self, event: events.TextDelta) -> str:
        return new_id(_kind(thought=event.thought))

    def _begin_text(self, text: Text) -> list[Chunk]:
        begun = {"type": f"{_kind(thought=text.thought)}-start", "id": text.id}
        return [*self._begin_step(), begun]

    def _delta(self, text: Text, piece: str) -> Chunk:
        return {"type": f"{_kind(thought=text.thought)}-delta", "id": text.id, "delta": piece}

    def _end_text(self, text: Text, *, cut_off: bool) -> list[Chunk]:
        return [{"type": f"{_kind(thought=text.thought)}-end", "id": text.id}]

    def _own_event(self, event: events.Event) -> list[Chunk]:
        place = {"path": [*map(clean, event.path)]} if event.path else {}
        return [{"type": f"data-{event.kind}", "data": {**event.fields(), **place}}]

    # Calls

    def _call_id(self, path: Path, action: Action) -> str:
        return "/".join([*map(clean, path), action.id])

    def _show(self, path: Path, action: Action, response_id: str | None = None) -> list[Chunk]:
        return [
            *self._begin_arguments(path, action, response_id),
            *self._end_arguments(path, action),
        ]

    def _begin_arguments(self, path: Path, action: Action, response_id: str | None) -> list[Chunk]:
        return [*self._begin_step(), {"type": "tool-input-start", **self._call(path, action)}]

    def _arguments(self, path: Path, action: Action, piece: str) -> Chunk:
        call_id = self._call_id(path, action)
        return {"type": "tool-input-delta", "toolCallId": call_id, "inputTextDelta": piece}

    def _end_arguments(self, path: Path, action: Action) -> list[Chunk]:
        arguments = action.args if action.unparsed is None else action.unparsed
        call = self._call(path, action)
        return [{"type": "tool-input-available", **call, "input": arguments}]

    def _drop(self, path: Path, action: Action) -> list[Chunk]:
        return [self._not_run(path, action)]

    def _call(self, path: Path, action: Action) -> Chunk:
        call: Chunk = {"toolCallId": self._call_id(path, action), "toolName": action.name}
        if path:  # it is not part of the conversation
            call["toolMetadata"] = {"path": [*map(clean, path)]}
        return call

    def _result(self, event: events.ActionFinished) -> list[Chunk]:
        action, result = event.action, event.result
        call = {"toolCallId": self._call_id(event.path, action)}
        if not event.path and action.id in self._denied:
            return [{"type": "tool-output-denied", **call}]
        if result.is_error:
            return [{"type": "tool-output-error", **call, "errorText": result.content}]
        output = {"type": "tool-output-available", **call, "output": _output(result.content)}
        return [output, *map(_file, result.attachments)]

    def _not_run(self, path: Path, action: Action) -> Chunk:
        call_id = self._call_id(path, action)
        return {"type": "tool-output-error", "toolCallId": call_id, "errorText": NOT_RUN}

    def _approval(self, path: Path, action: Action) -> list[Chunk]:
        request = {
            "type": "tool-approval-request",
            "approvalId": self._wait_id(action.id),
            "toolCallId": self._call_id(path, action),
        }
        return [request]

    def _question(self, event: events.InputRequested, call: Action | None) -> list[Chunk]:
        data: Chunk = {"prompt": clean(event.prompt)}
        if event.schema is not None:
            data["schema"] = clean_json(event.schema)
        question = {"type": "data-question", "id": self._wait_id(event.id), "data": data}
        if call is None:
            return [question]
        data["toolCallId"] = self._call_id(event.path, call)
        if (event.path, call.id) not in self._known:
            return [question]
        # what the client gave as the result of the call was an answer, and more is asked
        return [*self._end_arguments(event.path, call), question]

    # The end

    def _fail(self, error: Exception) -> list[Chunk]:
        message = {"type": "error", "errorText": clean(as_http_error(error).message)}
        return self._end([message, {"type": "finish", "finishReason": "error"}], cut_off=True)

    def _finish(self, event: events.RunFinished) -> list[Chunk]:
        if event.stop_reason == "cancelled":
            return self._end([{"type": "abort", "reason": "The run was cancelled"}], cut_off=True)
        waits, done = event.stop_reason in WAITING, event.stop_reason == "done"
        metadata: Chunk = {"stopReason": event.stop_reason, "usage": _usage(event.usage)}
        if done and event.finish_reason in CUT_REASONS:
            metadata[PARTIAL] = True
        if event.output is not None:
            metadata["output"] = event.to_dict()["output"]
        finish = {"type": "finish", "finishReason": _reason(event), "messageMetadata": metadata}
        cut_off = not done and event.stop_reason not in SUSPENDED
        return [*self._unsaid(event), *self._end([finish], waits=waits, cut_off=cut_off)]

    def _end(self, last: list[Chunk], *, waits: bool = False, cut_off: bool = False) -> list[Chunk]:
        if cut_off and any(not (text.thought or text.path) for text in self._texts.values()):
            last = [{"type": "message-metadata", "messageMetadata": {PARTIAL: True}}, *last]
        texts = self._end_path(())
        calls = self._end_calls((), waits=waits)
        return [*texts, *calls, *self._end_step(), *last]


def _file(attachment: Attachment) -> Chunk:
    url = attachment.url or f"data:{attachment.media_type};base64,{attachment.data}"
    return {"type": "file", "mediaType": attachment.media_type, "url": url}


def _source(source: CitedSource) -> Chunk:
    title = {"title": source.title} if source.title else {}
    return {"type": "source-url", "sourceId": new_id("source"), "url": source.url, **title}


def _kind(*, thought: bool) -> str:
    return "reasoning" if thought else "text"


def _output(text: str) -> Any:
    """Return a result as the tool returned it: an object or a list, else the text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _reason(event: events.RunFinished) -> str:
    if event.stop_reason == "done":
        return FINISH_REASONS.get(event.finish_reason or "", "stop")
    return "tool-calls" if event.stop_reason in WAITING else "other"


def _usage(usage: Usage) -> Chunk:
    return {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
        "cachedInputTokens": usage.cached_tokens,
        "reasoningTokens": usage.reasoning_tokens,
        "cost": usage.cost,
    }
