"""The events of a run as chunks of Chat Completions."""

from __future__ import annotations

import time
from functools import cached_property
from typing import Any

from agent_brain.common.text import shorten, to_compact_json
from agent_brain.limits import WAITING, StopReason
from agent_brain.memories.message import CUT_REASONS, Attachment
from agent_brain.serving.event_json import MARK, around, quoted
from agent_brain.serving.event_log import SessionEvent
from agent_brain.serving.web.openai.errors import api_error, log_failure
from agent_brain.serving.web.openai.translate import CITED, CUT_OFF, Json, OpenAITranslator
from agent_brain.states import events
from agent_brain.states.usage import Usage

MAX_SHOWN = 1000  # tokens of the arguments or the result of a call


class ChatStream(OpenAITranslator):
    """Translates the events of a run into chunks; asides are ``reasoning_content``.

    Args:
        completion_id: The ID of the completion.
        model: The name of the model, as the client knows it.
        include_usage: End with a chunk that has the usage.
        options: As for :class:`OpenAITranslator`.
    """

    last = b"data: [DONE]\n\n"

    def __init__(
        self, completion_id: str, model: str, *, include_usage: bool = False, **options: Any
    ) -> None:
        super().__init__(model, **options)
        self._id = completion_id
        self._created = int(time.time())
        self._include_usage = include_usage
        self._source: tuple[str | None, int, tuple[str, ...]] | None = None
        self._begins: dict[str | None, int] = {}  # where the text of a response begins
        self._length = 0
        self._pictures = 0

    def frames(self, item: SessionEvent) -> bytes:
        """Return what the client is sent for an event; pieces of one answer are alike."""
        event = item.event
        if self.limit.most is not None or type(event) is not events.TextDelta or event.thought:
            return super().frames(item)
        if not event.text or self._source != (event.response_id, event.step, event.path):
            return super().frames(item)
        self._length += len(event.text)
        start, end = self._around
        return f"{start}{quoted(event.text)}{end}".encode()

    @cached_property
    def _around(self) -> tuple[str, str]:
        return around(self.encode(self._chunk({"content": MARK})).decode())

    def fail(self, error: Exception) -> list[Json]:
        """Return an error as a part of the stream."""
        log_failure(error)
        return [api_error(error).body()]

    def _begin(self) -> list[Json]:
        return [self._chunk({"role": "assistant", "content": ""})]

    def _say(self, event: events.TextDelta, text: str) -> list[Json]:
        if event.thought:
            return self._aside(text)
        source = (event.response_id, event.step, event.path)
        last, self._source = self._source, source
        between = last is not None and last != source and (last[0] or source[0])
        gap = "\n\n" if between else ""  # as Brain.answer does
        if event.response_id is not None:
            self._begins.setdefault(event.response_id, self._length + len(gap))
        self._length += len(gap) + len(text)
        return [self._chunk({"content": gap + text})]

    def _picture(self, picture: Attachment) -> list[Json]:
        image = {**picture.to_dict(), "index": self._pictures}
        self._pictures += 1
        return [self._chunk({"images": [image]})]

    def _show(
        self, event: events.ActionRequested | events.ActionStarted | events.ActionFinished
    ) -> list[Json]:
        name = event.action.name
        if isinstance(event, events.ActionRequested):
            return self._aside(
                f"{name}({shorten(to_compact_json(event.action.args), MAX_SHOWN)})\n"
            )
        if isinstance(event, events.ActionFinished):
            word = "failed" if event.result.is_error else "returned"
            return self._aside(f"{name} {word}: {shorten(event.result.content, MAX_SHOWN)}\n")
        return []

    def _aside(self, text: str) -> list[Json]:
        return [self._chunk({"reasoning_content": text})]

    def _finish(self, event: events.RunFinished) -> list[Json]:
        closing = self._unsaid(event)
        if event.stop_reason in WAITING:
            question = self._question()
            closing = [f"\n\n{question}" if self._said else question] if question else []
        deltas: list[Json] = [{"content": text} for text in closing]
        found = self._citations(self._begins, self._length + sum(map(len, closing)))
        if cited := [{"type": CITED, CITED: each} for each in found]:
            deltas.append({"annotations": cited})
        last = self._chunk({}, finish_reason=self._finish_reason(event))
        last["agent_brain"] = self._extension(event)
        chunks = [*map(self._chunk, deltas), last]
        if self._include_usage:
            chunks.append({**self._chunk({}), "choices": [], "usage": usage_of(event.usage)})
        return chunks

    def _finish_reason(self, event: events.RunFinished) -> str:
        if self._is_limited(event) or event.stop_reason in CUT_OFF:
            return "length"
        reason = event.finish_reason
        cut = event.stop_reason == StopReason.DONE and reason in CUT_REASONS
        return reason if cut and reason is not None else "stop"

    def _chunk(self, delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        chunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [choice],
        }
        return {**chunk, "usage": None} if self._include_usage else chunk


def usage_of(usage: Usage) -> Json:
    """Return the usage of a run as Chat Completions reports it."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


class ChatCompletion:
    """Adds up the chunks of a stream, for a client that wants the whole."""

    def __init__(self) -> None:
        self._head: Json = {}
        self._content: list[str] = []
        self._asides: list[str] = []
        self._annotations: list[Json] = []
        self._images: list[Json] = []
        self._finish_reason: str | None = None

    def add(self, chunk: Json) -> None:
        """Add a chunk."""
        self._head |= {key: value for key, value in chunk.items() if key != "choices"}
        for choice in chunk["choices"]:
            self._content.append(choice["delta"].get("content", ""))
            self._asides.append(choice["delta"].get("reasoning_content", ""))
            self._annotations += choice["delta"].get("annotations", ())
            self._images += choice["delta"].get("images", ())
            self._finish_reason = choice["finish_reason"]

    def body(self) -> Json:
        """Return the completion."""
        message: Json = {"role": "assistant", "content": "".join(self._content), "refusal": None}
        if asides := "".join(self._asides):
            message["reasoning_content"] = asides
        if self._annotations:
            message["annotations"] = self._annotations
        if self._images:
            message["images"] = self._images
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": self._finish_reason,
        }
        return {**self._head, "object": "chat.completion", "choices": [choice]}
