"""What Chat Completions and Responses have in common: the frame of their translators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic_core import PydanticSerializationError, to_json

from agent_brain.common.text import clean_json, count_tokens, to_compact_json
from agent_brain.limits import StopReason
from agent_brain.memories.control import SUSPENDED
from agent_brain.memories.message import Attachment
from agent_brain.serving.pending import approval_question
from agent_brain.serving.web.openai.errors import budget_error
from agent_brain.serving.web.streams import Translator
from agent_brain.states import events
from agent_brain.states.sources import CitedSource
from agent_brain.tools.action import Action
from agent_brain.tools.answers import words_for

Json: TypeAlias = dict[str, Any]
CITED = "url_citation"  # the type of an annotation
CUT_OFF = (StopReason.CANCELLED, StopReason.STOPPED, StopReason.PAUSED, StopReason.SLEEPING)
"""Why a run ends whose answer is incomplete, other than for a limit."""
_NOT_LIMITED = (StopReason.DONE, StopReason.STUCK, *CUT_OFF, *SUSPENDED)
_BEFORE_OUTPUT = (
    events.ActionDelta,
    events.MessageReceived,
    events.PartialOutput,
    events.ResponseStarted,
    events.RunFailed,
    events.RunStarted,
    events.StateEntered,
    events.StateExited,
    events.UsageReported,
    *events.OF_MEMORIES,
)
HOW = "Answer 'yes', 'no' and the reason, or 'edit' and the new arguments as a JSON object."
NOT_KEPT = "This conversation is not kept, so the answer cannot be given: send X-Session-Id."


def encode(value: Mapping[str, Any]) -> bytes:
    """Return ``value`` as JSON on one line, however lines are split."""
    with suppress(PydanticSerializationError):  # lone surrogates, which UTF-8 does not have
        data = to_json(value)
        if data.isascii():
            return data
    return to_compact_json(clean_json(value)).encode()


def frame(value: Mapping[str, Any], event: str | None = None) -> bytes:
    """Return ``value`` as a server-sent event."""
    if event is None:
        return b"data: %b\n\n" % encode(value)
    return b"event: %b\ndata: %b\n\n" % (event.encode(), encode(value))


class TokenLimit:
    """Counts what the models of a run write, and cuts the text where the limit is reached.

    Text counts by an estimate while it arrives, and by what the model reports when its response
    has ended.

    Args:
        most: The limit; None for no limit.

    Attributes:
        most: The limit.
        reached: Whether the limit is reached: the run should be cancelled.
        cut: Whether text was left out.
        admitted: How many characters of text that is not a thought were admitted.
    """

    def __init__(self, most: int | None) -> None:
        self.reached = False
        self.cut = False
        self.admitted = 0
        self.most = most
        self._ended = 0  # tokens of responses that have ended
        self._arriving: dict[str | None, float] = {}

    def admit(self, event: events.TextDelta) -> str:
        """Return as much of the text as the limit allows."""
        text = self._allowed(event)
        self.admitted += 0 if event.thought else len(text)
        return text

    def _allowed(self, event: events.TextDelta) -> str:
        if self.most is None:
            return event.text
        if self.reached:
            self.cut = self.cut or bool(event.text)
            return ""
        text = event.text
        size = len(text) / 4 if text.isascii() else count_tokens(text)
        left = self.most - self._ended - sum(self._arriving.values())
        if size > left:
            text = text[: int(len(text) * left / size)]
            self.reached = self.cut = True
        known = self._arriving.get(event.response_id, 0.0)
        self._arriving[event.response_id] = known + size
        return text

    def report(self, event: events.UsageReported) -> None:
        """Count a response that has ended; a summary of the memory is not output."""
        if event.purpose is not None:
            return
        estimate = self._arriving.pop(event.response_id, 0.0)
        self._ended += event.usage.output_tokens or round(estimate)
        if self.most is not None and self._ended >= self.most:
            self.reached = True


class ReachedLimit(TokenLimit):
    """The limit of a response that has reached it: its text is cut at the same place again.

    Args:
        most: The limit.
        admitted: How many characters of text were admitted.
        cut: Whether text was left out.
    """

    def __init__(self, most: int | None, admitted: int, *, cut: bool) -> None:
        super().__init__(most)
        self.reached = True
        self.cut = cut
        self._length = admitted

    def _allowed(self, event: events.TextDelta) -> str:
        return event.text if event.thought else event.text[: self._length - self.admitted]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """What a client is shown of a run, beside its answer.

    Attributes:
        tools: The tool calls, with arguments and results.
        thoughts: Text that is reasoning, not meant for the reader.
    """

    tools: bool = False
    thoughts: bool = False


class Extension(BaseModel):
    """The field ``agent_brain`` of a request: what this request changes.

    Attributes:
        show_tools: Show the tool calls; None for what the server does.
        show_thoughts: Show reasoning; None for what the server does.
    """

    show_tools: bool | None = None
    show_thoughts: bool | None = None

    def over(self, shown: Shown) -> Shown:
        """Return ``shown`` with the changes of the request."""
        if self.show_tools is not None:
            shown = replace(shown, tools=self.show_tools)
        if self.show_thoughts is not None:
            shown = replace(shown, thoughts=self.show_thoughts)
        return shown


class OpenAITranslator(Translator[Json]):
    """Translates the events of a run, one event at a time.

    The first part is returned when a model or a tool has begun to do something, so that a run that
    fails before can be answered with an error.

    Args:
        model: The name of the model, as the client knows it.
        shown: What is shown beside the answer.
        most_tokens: The limit on what the models write; None for no limit.
        session: The session, if the conversation is kept.

    Attributes:
        limit: The limit; once it is reached, the run should be cancelled.
    """

    def __init__(
        self,
        model: str,
        *,
        shown: Shown = Shown(),
        most_tokens: int | None = None,
        session: str | None = None,
    ) -> None:
        self.limit = TokenLimit(most_tokens)
        self._model = model
        self._shown = shown
        self._session = session
        self._began = False
        self._said = False
        self._waiting_calls: list[Action] = []
        self._questions: list[str] = []
        self._cited: dict[str, tuple[CitedSource, str | None]] = {}

    @property
    def enough(self) -> bool:  # type: ignore[override]
        """Whether the limit is reached."""
        return self.limit.reached

    def encode(self, part: Json) -> bytes:
        """Return a part as a server-sent event."""
        return frame(part)

    def translate(self, event: events.AgentEvent) -> list[Json]:
        """Return the parts that ``event`` leads to.

        Raises:
            ApiError: A budget ended the run before there was any output.
        """
        parts: list[Json] = []
        if not self._began and not isinstance(event, _BEFORE_OUTPUT):
            if isinstance(event, events.RunFinished) and event.stop_reason == StopReason.BUDGET:
                raise budget_error()
            self._began = True
            parts = self._begin()
        match event:
            case events.TextDelta():
                text = self.limit.admit(event)
                if text and (self._shown.thoughts or not event.thought):
                    parts += self._say(event, text)
                    self._said = self._said or not event.thought
            case events.ActionRequested() | events.ActionStarted() | events.ActionFinished():
                if self._shown.tools:
                    parts += self._show(event)
                else:
                    self._hide(event)
            case events.AttachmentReceived(attachment=attachment):
                if attachment.media_type.startswith("image/"):
                    parts += self._picture(attachment)
            case events.RunFinished():
                parts += self._finish(event)
            case _:
                self._note(event)
        return parts

    def _note(self, event: events.AgentEvent) -> None:
        """Note what is told at the end."""
        match event:
            case events.UsageReported():
                self.limit.report(event)
            case events.ApprovalRequested(actions=actions):
                known = {call.id for call in self._waiting_calls}
                self._waiting_calls += [call for call in actions if call.id not in known]
            case events.InputRequested(prompt=prompt, schema=schema):
                how = "" if schema is None else f"\n\n(Answer: {words_for(schema)}.)"
                self._questions.append(f"{prompt}{how}")
            case events.SourcesCited(sources=sources, response_id=cites):
                self._cited |= {source.url: (source, cites) for source in sources}

    def _citations(self, begins: Mapping[str | None, int], length: int) -> list[Json]:
        """Return the pages that the run cites, with their places in a text, or its end.

        Args:
            begins: Where in the text that of a response begins, by the ID of the response.
            length: That of the text.
        """
        found: list[Json] = []
        for source, response_id in self._cited.values():
            begin = begins.get(response_id, length)
            places = [(begin + start, begin + end) for start, end in source.places]
            for start, end in [place for place in places if place[1] <= length] or [(length,) * 2]:
                place = {"start_index": start, "end_index": end}
                found.append({"url": source.url, "title": source.title or source.url, **place})
        return found

    def _question(self) -> str:
        """Return the first question, as one is asked at a time, and how to answer it."""
        if self._waiting_calls:
            first = f"{approval_question(self._waiting_calls[0])}\n\n({HOW})"
        else:
            first = self._questions[0] if self._questions else ""
        return first if self._session is not None or not first else f"{first}\n\n({NOT_KEPT})"

    def _unsaid(self, event: events.RunFinished) -> list[str]:
        """Return the answer if nothing was streamed."""
        return [event.answer] if event.answer and not self._said and not self.limit.cut else []

    def _is_limited(self, event: events.RunFinished) -> bool:
        """Return whether a run ended because a limit was reached."""
        cancelled = event.stop_reason == StopReason.CANCELLED
        if self.limit.reached and (self.limit.cut or cancelled):
            return True
        return event.stop_reason not in _NOT_LIMITED

    def _extension(self, event: events.RunFinished) -> Json:
        """Return the field ``agent_brain`` of what ends an answer."""
        found: Json = {"stop_reason": str(event.stop_reason), "run_id": event.run_id}
        return found if self._session is None else {**found, "session": self._session}

    @abstractmethod
    def _begin(self) -> list[Json]: ...

    @abstractmethod
    def _say(self, event: events.TextDelta, text: str) -> list[Json]: ...

    @abstractmethod
    def _picture(self, picture: Attachment) -> list[Json]: ...

    @abstractmethod
    def _show(
        self, event: events.ActionRequested | events.ActionStarted | events.ActionFinished
    ) -> list[Json]: ...

    def _hide(
        self, event: events.ActionRequested | events.ActionStarted | events.ActionFinished
    ) -> None:
        """Note what a call does that is not shown."""

    @abstractmethod
    def _finish(self, event: events.RunFinished) -> list[Json]: ...
