"""Translates the events of a run into the parts of a UI message stream.

The protocol is that of version 7 of the npm package ``ai``: its documentation, "Stream Protocols",
and ``UIMessageChunk``, its type of the parts.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

from agent_brain.limits import WAITING
from agent_brain.memories.message import Message
from agent_brain.serving.web.chat.calls import NOT_RUN, ShownCalls
from agent_brain.serving.web.chat.parts import OpenParts, Part, Path
from agent_brain.serving.web.chat.wait_ids import wait_id
from agent_brain.serving.web.errors import as_http_error
from agent_brain.states.events import (
    KINDS,
    ActionFinished,
    ActionRequested,
    ActionStarted,
    AgentEvent,
    ApprovalRequested,
    InputRequested,
    MessageReceived,
    ResponseStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    StateExited,
    TextDelta,
    ToolProgress,
    UsageReported,
)
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.ids import new_id
from agent_brain.tools.text import clean, clean_json

Chunk: TypeAlias = dict[str, Any]

FINISH_REASONS = {
    "length": "length",
    "content_filter": "content-filter",
    "refusal": "content-filter",
}


class UIMessageTranslator:
    """Translates the events of one run.

    Whatever comes in, what goes out is well-formed: every text that is started is ended, and the
    stream is finished, also if the run fails or is cut off (:meth:`fail`).

    Args:
        session: The ID of the session.
        message_id: The ID of the message that the stream builds or continues.
        known: Calls without a result that the client knows from the run that this one continues,
            with their paths.
        denied: IDs of those that a person has not approved.
        show_tools: Whether calls are shown, unless they wait for a person.
    """

    def __init__(
        self,
        *,
        session: str,
        message_id: str,
        known: Iterable[tuple[Path, Action]] = (),
        denied: Collection[str] = (),
        show_tools: bool = True,
    ) -> None:
        self._session = session
        self._message_id = message_id
        self._denied = denied
        self._calls = ShownCalls(known, visible=show_tools)
        self._parts = OpenParts()
        self._in_step = False
        self._said = False  # text at the outermost path
        self._started = self._ended = False

    def translate(self, event: AgentEvent) -> list[Chunk]:
        """Return the parts of the stream for an event of the run; none before it starts."""
        if self._ended or not (self._started or isinstance(event, RunStarted)):
            return []
        match event:
            case RunStarted():
                self._started = True
                metadata = {"sessionId": self._session, "runId": event.run_id}
                start = {"type": "start", "messageId": self._message_id}
                return [{**start, "messageMetadata": metadata}]
            case RunFinished():
                return self._finish(event)
            case RunFailed(error=error):
                return self.fail(error)
            case TextDelta():
                return self._text(event)
            case ResponseStarted():
                inner = event.path or event.purpose
                return [] if inner else [*self._end_step(), *self._begin_step()]
            case UsageReported():
                return _ends(self._parts.close_response(event, event.response_id))
            case StateExited():
                return _ends(self._parts.close_state(event.path, event.state))
            case MessageReceived(message=message):
                return _steering(message)
            case _:
                return self._about_calls(event)

    def _about_calls(self, event: AgentEvent) -> list[Chunk]:
        match event:
            case ActionRequested(action=action):
                ends = _ends(self._parts.close_response(event, event.response_id))
                shown = self._calls.request(event, action)
                return [*ends, *(self._show(event.path, action) if shown else [])]
            case ActionStarted(action=action):
                shown = self._calls.begin(event, action)
                return self._show(event.path, action) if shown else []
            case ToolProgress():
                return self._progress(event)
            case ActionFinished():
                return self._result(event)
            case ApprovalRequested():
                return [chunk for action in event.actions for chunk in self._ask(event, action)]
            case InputRequested():
                return self._question(event)
            case _ if event.kind not in KINDS:  # of the program's own class
                return [{"type": f"data-{event.kind}", "data": event.fields()}]
            case _:
                return []

    def fail(self, error: Exception) -> list[Chunk]:
        """Return the parts that end a stream with an error, which the run did not report."""
        if self._ended:
            return []
        message = {"type": "error", "errorText": clean(as_http_error(error).message)}
        return self._end([message, {"type": "finish", "finishReason": "error"}])

    def _begin_step(self) -> list[Chunk]:
        if self._in_step:
            return []
        self._in_step = True
        return [{"type": "start-step"}]

    def _end_step(self) -> list[Chunk]:
        ends = _ends(self._parts.close_path(()))
        if not self._in_step:
            return ends
        self._in_step = False
        return [*ends, {"type": "finish-step"}]

    def _text(self, event: TextDelta) -> list[Chunk]:
        if not event.text:
            return []
        chunks = self._begin_step()
        part = self._parts.get(event)
        if part is not None and part.thought != event.thought:
            chunks += _ends(self._parts.close_response(event, event.response_id))
            part = None
        kind = "reasoning" if event.thought else "text"
        if part is None:
            part = self._parts.add(event, new_id(kind))
            chunks.append({"type": f"{kind}-start", "id": part.id})
        self._said = self._said or not (event.thought or event.path)
        return [*chunks, {"type": f"{kind}-delta", "id": part.id, "delta": clean(event.text)}]

    def _call_id(self, path: Path, action: Action) -> str:
        return "/".join([*map(clean, path), action.id])

    def _show(self, path: Path, action: Action) -> list[Chunk]:
        call: Chunk = {"toolCallId": self._call_id(path, action), "toolName": action.name}
        if path:  # it is not part of the conversation
            call["toolMetadata"] = {"path": [*map(clean, path)]}
        arguments = action.args if action.unparsed is None else action.unparsed
        return [
            *self._begin_step(),
            {"type": "tool-input-start", **call},
            {"type": "tool-input-available", **call, "input": arguments},
        ]

    def _progress(self, event: ToolProgress) -> list[Chunk]:
        if self._calls.is_hidden(event, event.action):
            return []
        data = {
            "toolCallId": self._call_id(event.path, event.action),
            "done": event.done,
            "total": event.total,
            "message": event.message,
        }
        return [{"type": "data-progress", "data": clean_json(data), "transient": True}]

    def _result(self, event: ActionFinished) -> list[Chunk]:
        action, result = event.action, event.result
        chunks = self._show(event.path, action) if self._calls.begin(event, action) else []
        if not self._calls.finish(event, action):
            return chunks
        call = {"toolCallId": self._call_id(event.path, action)}
        if not event.path and action.id in self._denied:
            return [*chunks, {"type": "tool-output-denied", **call}]
        if result.is_error:
            return [*chunks, {"type": "tool-output-error", **call, "errorText": result.content}]
        output = {"type": "tool-output-available", **call, "output": _output(result.content)}
        files = [
            {
                "type": "file",
                "mediaType": each.media_type,
                "url": each.url or f"data:{each.media_type};base64,{each.data}",
            }
            for each in result.attachments
        ]
        return [*chunks, output, *files]

    def _ask(self, event: ApprovalRequested, action: Action) -> list[Chunk]:
        shown = self._show(event.path, action) if self._calls.need(event, action) else []
        request = {
            "type": "tool-approval-request",
            "approvalId": wait_id(self._session, action.id),
            "toolCallId": self._call_id(event.path, action),
        }
        return [*shown, request]

    def _question(self, event: InputRequested) -> list[Chunk]:
        data: Chunk = {"prompt": clean(event.prompt)}
        if (action := self._calls.open_call(event, event.id)) is not None:
            data["toolCallId"] = self._call_id(event.path, action)
        return [{"type": "data-question", "id": wait_id(self._session, event.id), "data": data}]

    def _finish(self, event: RunFinished) -> list[Chunk]:
        if event.stop_reason == "cancelled":
            return self._end([{"type": "abort", "reason": "The run was cancelled"}])
        waits = event.stop_reason in WAITING
        said: list[Chunk] = []
        if event.stop_reason == "done" and event.answer and not self._said:
            part = {"id": new_id("text")}
            said = [
                *self._begin_step(),
                {"type": "text-start", **part},
                {"type": "text-delta", **part, "delta": clean(event.answer)},
                {"type": "text-end", **part},
            ]
        metadata: Chunk = {"stopReason": event.stop_reason, "usage": _usage(event.usage)}
        if event.output is not None:
            metadata["output"] = event.to_dict()["output"]
        finish = {"type": "finish", "finishReason": _reason(event), "messageMetadata": metadata}
        return [*said, *self._end([finish], waits=waits)]

    def _end(self, last: list[Chunk], *, waits: bool = False) -> list[Chunk]:
        self._ended = True
        not_run = [
            {
                "type": "tool-output-error",
                "toolCallId": self._call_id(path, action),
                "errorText": NOT_RUN,
            }
            for path, action in ([] if waits else self._calls.close_path(()))
        ]
        return [*_ends(self._parts.close_path(())), *not_run, *self._end_step(), *last]


def _ends(parts: Iterable[Part]) -> list[Chunk]:
    return [{"type": "reasoning-end" if p.thought else "text-end", "id": p.id} for p in parts]


def _output(text: str) -> Any:
    """Return a result as the tool returned it: an object or a list, else the text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _steering(message: Message) -> list[Chunk]:
    parts = [{"type": "text", "text": message.content}]
    return [{"type": "steering-message", "id": message.id, "parts": parts}]


def _reason(event: RunFinished) -> str:
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
