"""What Chat Completions and Responses have in common: the frame of their translators."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, TypeAlias

from agent_brain.limits import StopReason
from agent_brain.memories.control import SUSPENDED
from agent_brain.memories.message import Attachment
from agent_brain.serving.pending import approval_question
from agent_brain.serving.web.openai.encoding import frame
from agent_brain.serving.web.openai.errors import budget_error
from agent_brain.serving.web.openai.shown import Shown
from agent_brain.serving.web.openai.token_limit import TokenLimit
from agent_brain.serving.web.translator import Translator
from agent_brain.states.events import (
    OF_MEMORIES,
    ActionDelta,
    ActionFinished,
    ActionRequested,
    ActionStarted,
    AgentEvent,
    ApprovalRequested,
    AttachmentReceived,
    InputRequested,
    MessageReceived,
    PartialOutput,
    ResponseStarted,
    RunFailed,
    RunFinished,
    RunStarted,
    SourcesCited,
    StateEntered,
    StateExited,
    TextDelta,
    UsageReported,
)
from agent_brain.states.sources import CitedSource
from agent_brain.tools.action import Action
from agent_brain.tools.answers import words_for

Json: TypeAlias = dict[str, Any]

CITED = "url_citation"  # the type of an annotation
CUT_OFF = (StopReason.CANCELLED, StopReason.STOPPED, StopReason.PAUSED, StopReason.SLEEPING)
"""Why a run ends whose answer is incomplete, other than for a limit."""

_NOT_LIMITED = (StopReason.DONE, StopReason.STUCK, *CUT_OFF, *SUSPENDED)
_BEFORE_OUTPUT = (
    ActionDelta,
    MessageReceived,
    PartialOutput,
    ResponseStarted,
    RunFailed,
    RunStarted,
    StateEntered,
    StateExited,
    UsageReported,
    *OF_MEMORIES,
)
HOW = "Answer 'yes', 'no' and the reason, or 'edit' and the new arguments as a JSON object."
NOT_KEPT = "This conversation is not kept, so the answer cannot be given: send X-Session-Id."


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
        shown: Shown = Shown(),  # noqa: B008 - frozen
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

    def translate(self, event: AgentEvent) -> list[Json]:
        """Return the parts that ``event`` leads to.

        Raises:
            ApiError: A budget ended the run before there was any output.
        """
        parts: list[Json] = []
        if not self._began and not isinstance(event, _BEFORE_OUTPUT):
            if isinstance(event, RunFinished) and event.stop_reason == StopReason.BUDGET:
                raise budget_error()
            self._began = True
            parts = self._begin()
        match event:
            case TextDelta():
                text = self.limit.admit(event)
                if text and (self._shown.thoughts or not event.thought):
                    parts += self._say(event, text)
                    self._said = self._said or not event.thought
            case ActionRequested() | ActionStarted() | ActionFinished():
                if self._shown.tools:
                    parts += self._show(event)
                else:
                    self._hide(event)
            case AttachmentReceived(attachment=attachment):
                if attachment.media_type.startswith("image/"):
                    parts += self._picture(attachment)
            case RunFinished():
                parts += self._finish(event)
            case _:
                self._note(event)
        return parts

    def _note(self, event: AgentEvent) -> None:
        """Note what is told at the end."""
        match event:
            case UsageReported():
                self.limit.report(event)
            case ApprovalRequested(actions=actions):
                known = {call.id for call in self._waiting_calls}
                self._waiting_calls += [call for call in actions if call.id not in known]
            case InputRequested(prompt=prompt, schema=schema):
                how = "" if schema is None else f"\n\n(Answer: {words_for(schema)}.)"
                self._questions.append(f"{prompt}{how}")
            case SourcesCited(sources=sources, response_id=cites):
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

    def _unsaid(self, event: RunFinished) -> list[str]:
        """Return the answer if nothing was streamed."""
        return [event.answer] if event.answer and not self._said and not self.limit.cut else []

    def _is_limited(self, event: RunFinished) -> bool:
        """Return whether a run ended because a limit was reached."""
        cancelled = event.stop_reason == StopReason.CANCELLED
        if self.limit.reached and (self.limit.cut or cancelled):
            return True
        return event.stop_reason not in _NOT_LIMITED

    def _extension(self, event: RunFinished) -> Json:
        """Return the field ``agent_brain`` of what ends an answer."""
        found: Json = {"stop_reason": str(event.stop_reason), "run_id": event.run_id}
        return found if self._session is None else {**found, "session": self._session}

    @abstractmethod
    def _begin(self) -> list[Json]: ...

    @abstractmethod
    def _say(self, event: TextDelta, text: str) -> list[Json]: ...

    @abstractmethod
    def _picture(self, picture: Attachment) -> list[Json]: ...

    @abstractmethod
    def _show(self, event: ActionRequested | ActionStarted | ActionFinished) -> list[Json]: ...

    def _hide(self, event: ActionRequested | ActionStarted | ActionFinished) -> None:
        """Note what a call does that is not shown."""

    @abstractmethod
    def _finish(self, event: RunFinished) -> list[Json]: ...
