"""The events of a run as chunks of Chat Completions. Private."""

from __future__ import annotations

import time
from typing import Any, NotRequired, TypedDict

from agent_brain.limits import WAITING, StopReason
from agent_brain.memories.control import SUSPENDED
from agent_brain.serving.web.openai.errors import budget_error
from agent_brain.serving.web.openai.shown import Shown
from agent_brain.serving.web.openai.token_limit import TokenLimit
from agent_brain.serving.web.openai.waiting import Waiting
from agent_brain.states.events import (
    ActionFinished,
    ActionRequested,
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
from agent_brain.tools.text import shorten, to_compact_json

MAX_SHOWN = 1000  # tokens of the arguments or the result of a call
_BEFORE_OUTPUT = (
    MessageReceived,
    ResponseStarted,
    RunFailed,
    RunStarted,
    StateEntered,
    StateExited,
    UsageReported,
)


class Delta(TypedDict, total=False):
    """What a chunk adds to the message."""

    role: str
    content: str
    reasoning_content: str


class Choice(TypedDict):
    """The choice of a chunk."""

    index: int
    delta: Delta
    logprobs: None
    finish_reason: str | None


class ChatChunk(TypedDict):
    """A chunk of a stream."""

    id: str
    object: str
    created: int
    model: str
    choices: list[Choice]
    usage: NotRequired[dict[str, Any] | None]
    agent_brain: NotRequired[dict[str, Any]]


class ChatStream:
    """Translates the events of a run into chunks, one event at a time.

    The first chunk is returned when a model or a tool has begun to do something, so that a run
    that fails before can be answered with an error.

    Args:
        completion_id: The ID of the completion.
        model: The name of the model, as the client knows it.
        shown: What is shown beside the answer, as ``reasoning_content``.
        most_tokens: The limit on what the models write; None for no limit.
        include_usage: End with a chunk that has the usage.
        session: The session, if the conversation is kept.

    Attributes:
        limit: The limit; once it is reached, the run should be cancelled.
    """

    def __init__(
        self,
        completion_id: str,
        model: str,
        *,
        shown: Shown = Shown(),  # noqa: B008 - frozen
        most_tokens: int | None = None,
        include_usage: bool = False,
        session: str | None = None,
    ) -> None:
        self.limit = TokenLimit(most_tokens)
        self._id = completion_id
        self._model = model
        self._created = int(time.time())
        self._shown = shown
        self._include_usage = include_usage
        self._session = session
        self._began = False
        self._waiting = Waiting()
        self._source: tuple[str | None, int, tuple[str, ...]] | None = None
        self._said = False

    def take(self, event: AgentEvent) -> list[ChatChunk]:
        """Return the chunks that ``event`` leads to.

        Raises:
            ApiError: A budget ended the run before there was any output.
        """
        chunks: list[ChatChunk] = []
        if not self._began and not isinstance(event, _BEFORE_OUTPUT):
            if isinstance(event, RunFinished) and event.stop_reason == StopReason.BUDGET:
                raise budget_error()
            self._began = True
            chunks.append(self._chunk({"role": "assistant", "content": ""}))
        match event:
            case TextDelta():
                chunks += self._text(event)
            case UsageReported():
                self.limit.report(event)
            case ActionRequested() if self._shown.tools:
                args = shorten(to_compact_json(event.action.args), MAX_SHOWN)
                chunks += self._aside(f"{event.action.name}({args})\n")
            case ActionFinished() if self._shown.tools:
                word = "failed" if event.result.is_error else "returned"
                result = shorten(event.result.content, MAX_SHOWN)
                chunks += self._aside(f"{event.action.name} {word}: {result}\n")
            case RunFinished():
                chunks += self._end(event)
            case _:
                self._waiting.note(event)
        return chunks

    def _text(self, event: TextDelta) -> list[ChatChunk]:
        text = self.limit.admit(event)
        if not text:
            return []
        if event.thought:
            return self._aside(text) if self._shown.thoughts else []
        source = (event.response_id, event.step, event.path)
        last, self._source = self._source, source
        if last is not None and last != source and (last[0] or source[0]):
            text = f"\n\n{text}"  # as Brain.answer does
        self._said = True
        return [self._chunk({"content": text})]

    def _aside(self, text: str) -> list[ChatChunk]:
        return [self._chunk({"reasoning_content": text})]

    def _end(self, event: RunFinished) -> list[ChatChunk]:
        chunks = [self._chunk({"content": text}) for text in self._closing(event)]
        extension: dict[str, Any] = {"stop_reason": str(event.stop_reason), "run_id": event.run_id}
        if self._session is not None:
            extension["session"] = self._session
        last = self._chunk({}, finish_reason=self._finish_reason(event))
        last["agent_brain"] = extension
        chunks.append(last)
        if self._include_usage:
            chunks.append({**self._chunk({}), "choices": [], "usage": usage_of(event.usage)})
        return chunks

    def _closing(self, event: RunFinished) -> list[str]:
        """Return text that has not been streamed."""
        if event.stop_reason in WAITING:
            question = self._waiting.question(kept=self._session is not None)
            return [f"\n\n{question}" if self._said else question] if question else []
        return [event.answer] if event.answer and not self._said and not self.limit.cut else []

    def _finish_reason(self, event: RunFinished) -> str:
        if self.limit.reached and (self.limit.cut or event.stop_reason == StopReason.CANCELLED):
            return "length"
        if is_limit(event.stop_reason):
            return "length"
        done = event.stop_reason == StopReason.DONE
        if done and event.finish_reason in ("length", "content_filter"):
            return event.finish_reason
        return "stop"

    def _chunk(self, delta: Delta, finish_reason: str | None = None) -> ChatChunk:
        choice: Choice = {
            "index": 0,
            "delta": delta,
            "logprobs": None,
            "finish_reason": finish_reason,
        }
        chunk: ChatChunk = {
            "id": self._id,
            "object": "chat.completion.chunk",
            "created": self._created,
            "model": self._model,
            "choices": [choice],
        }
        if self._include_usage:
            chunk["usage"] = None
        return chunk


_NOT_LIMITED = (
    StopReason.DONE,
    StopReason.STUCK,
    StopReason.CANCELLED,
    StopReason.STOPPED,
    *SUSPENDED,
)


def is_limit(stop_reason: str) -> bool:
    """Return whether a run ended because a limit was reached."""
    return stop_reason not in _NOT_LIMITED


def usage_of(usage: Usage) -> dict[str, Any]:
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
        self._head: dict[str, Any] = {}
        self._content: list[str] = []
        self._asides: list[str] = []
        self._finish_reason: str | None = None

    def add(self, chunk: ChatChunk) -> None:
        """Add a chunk."""
        self._head |= {key: value for key, value in chunk.items() if key != "choices"}
        for choice in chunk["choices"]:
            self._content.append(choice["delta"].get("content", ""))
            self._asides.append(choice["delta"].get("reasoning_content", ""))
            self._finish_reason = choice["finish_reason"]

    def body(self) -> dict[str, Any]:
        """Return the completion."""
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self._content)}
        message["refusal"] = None
        if asides := "".join(self._asides):
            message["reasoning_content"] = asides
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": self._finish_reason,
        }
        return {**self._head, "object": "chat.completion", "choices": [choice]}
