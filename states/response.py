"""One call of a model: what it said, as events and as a whole.

Every state that asks a model does it through :class:`Response`, so all calls are alike: the request
has one system message, first, and ends with a request; pieces carry the id of the response; each
call is reported once; and a request that is too long is trimmed and sent once more.
"""

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterable,
    AsyncIterator,
    Coroutine,
    Iterable,
    Iterator,
    Sequence,
)
from functools import lru_cache
from typing import Literal, TypeAlias

from pydantic import BaseModel, JsonValue

from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.aclosing import Pace, closing
from agent_brain.states.errors import ContextWindowError, LLMError, LLMRefusalError
from agent_brain.states.events import (
    ActionRequested,
    Event,
    ResponseStarted,
    TextDelta,
    UsageReported,
)
from agent_brain.states.models.llm import LLM, Finish, Piece, Thought
from agent_brain.states.models.think_tags import ThinkTags
from agent_brain.states.trimming import without_oldest
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.ids import new_id
from agent_brain.tools.text import clean_json

Words: TypeAlias = Literal["shown", "aside", "hidden"]

_CUT = {
    "length": "it was cut off at the limit of output tokens",
    "content_filter": "it was cut off by the provider's content filter",
}


class Response:
    """One response of a model.

    Attributes:
        id: The id of the response, in all its events.
        text: Its words, without thoughts.
        actions: The calls it asks for.
        finish: How it ended, if the provider said so.

    Args:
        llm: The model.
        messages: What it sees.
        tools: What it may call.
        output_type: The shape of the data that is asked for.
        words: Whether its words are ``"shown"`` to the reader, said ``"aside"`` as thoughts, or
            ``"hidden"``.
        ending: The user message that is added if the messages do not end with a request.
        acts: Calls that it asks for become events.
    """

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
        words: Words = "shown",
        ending: str = prompts.GO_ON,
        acts: bool = False,
    ) -> None:
        self.llm = llm
        self.messages = prompts.as_request(messages, ending)
        self.tools = tools
        self.output_type = output_type
        self.words: Words = words
        self.acts = acts
        self._trimmed = False
        self._begin()

    def _begin(self) -> None:
        self.id = new_id("resp")
        self.text = ""
        self.actions: list[Action] = []
        self.finish: Finish | None = None
        self._parts: list[str] = []
        self._blank = ""  # white space that no word has followed yet
        self._tags: ThinkTags | None = None  # made where one may be
        self._usage: Usage | None = None
        self._reported = self._started = False

    @property
    def finish_reason(self) -> str | None:
        """Why the response ended, as the provider said."""
        return None if self.finish is None else self.finish.reason

    @property
    def cut(self) -> str | None:
        """How the response was cut off, in words; None if it is complete."""
        return _CUT.get(self.finish_reason or "")

    def metadata(self) -> dict[str, JsonValue]:
        """What is recorded with the message: what the provider needs again, and a bad ending."""
        if self.finish is None:
            return {}
        kept: dict[str, JsonValue] = {}
        if self.finish.reason not in ("stop", "tool_calls"):
            kept["finish_reason"] = self.finish.reason
        if self.finish.provider_data:
            kept["provider_data"] = clean_json(dict(self.finish.provider_data))
        return kept

    def check_refusal(self, *, words_are_an_answer: bool = True) -> None:
        """Raise if the model declined to answer.

        Raises:
            LLMRefusalError: It refused, or its answer was withheld, without any words; with words
                too, where these cannot be the answer.
        """
        reason = self.finish_reason
        if reason not in ("refusal", "content_filter") or self.actions:
            return
        if self.text.strip() and (words_are_an_answer or reason == "content_filter"):
            return
        raise LLMRefusalError(reason, output=self.text, model=self.llm.model)

    async def events(self) -> AsyncGenerator[Event, None]:
        """Call the model; yield what it says as it comes, and what the call used.

        Raises:
            LLMError: What the model raised.
        """
        messages: Sequence[Message] = self.messages
        shown, aside = self.words != "hidden", self.words == "aside"
        pace = None if shown else Pace()
        while True:
            yield ResponseStarted(self.id, self.llm.model)
            try:
                async with closing(self._call(messages)) as pieces:
                    async for piece in pieces:
                        if shown and type(piece) is str and self._is_plain(piece):
                            self._parts.append(piece)  # the way of nearly all pieces
                            yield TextDelta(piece, thought=aside, response_id=self.id)
                        else:
                            if pace is not None:
                                await pace.keep()
                            for event in self._note(piece):
                                yield event
                for event in self._end():
                    yield event
                return
            except Exception as error:
                if not self._reported:
                    yield self._report(_failed(self._usage, error))
                shorter = self._shorter(messages, error)
                if shorter is None:
                    raise
                messages = shorter
                self._begin()

    def _call(self, messages: Sequence[Message]) -> AsyncIterator[Piece]:
        stream = self.llm.stream(messages, tools=self.tools, output_type=self.output_type)
        given: object = stream
        if isinstance(given, AsyncIterable):
            return stream
        if isinstance(given, Coroutine):
            given.close()  # or Python warns that it was never awaited
        raise TypeError(
            f"{type(self.llm).__name__}.stream() returned an object of type "
            f"{type(given).__name__}: write it as an async generator, 'async def' with 'yield'"
        )

    def _shorter(self, messages: Sequence[Message], error: Exception) -> list[Message] | None:
        """What to send instead, once, if the request was too long and nothing was said yet."""
        if self._trimmed or self._started or not isinstance(error, ContextWindowError):
            return None
        self._trimmed = True
        return without_oldest(messages)

    def _is_plain(self, piece: str) -> bool:
        return bool(self._parts) and "<" not in piece and (self._tags is None or self._tags.idle)

    def _note(self, piece: Piece) -> Iterator[Event]:
        if isinstance(piece, Usage):
            self._usage = piece if self._usage is None else self._usage + piece
        elif isinstance(piece, Finish):
            self.finish = piece
        else:
            self._started = True
            if isinstance(piece, Action):
                yield from self._requested(piece)
            elif isinstance(piece, Thought):
                yield from self._part(piece)
            else:
                self._check_text(piece)
                for part in self._split(piece):
                    yield from self._part(part)

    def _check_text(self, piece: object) -> None:
        if not isinstance(piece, str):
            raise TypeError(
                f"{type(self.llm).__name__}.stream() yielded an object of type "
                f"{type(piece).__name__}: yield str, Thought, Action, Finish or Usage"
            )

    def _split(self, piece: str) -> Iterable[str]:
        """The words and thoughts in a piece of text."""
        tags = self._tags
        if tags is None:
            if "<" not in piece:
                return (piece,) if piece else ()
            tags = self._tags = ThinkTags()
        if tags.idle and self._parts:  # words that took the short way
            tags.last = self._parts[-1][-1:]
        return tags.split(piece)

    def _part(self, part: str) -> Iterator[TextDelta]:
        if isinstance(part, Thought):
            yield TextDelta(part, thought=True, response_id=self.id)
        elif self._parts or part.strip():
            part, self._blank = self._blank + part, ""
            self._parts.append(part)
            if self.words != "hidden":
                yield TextDelta(part, thought=self.words == "aside", response_id=self.id)
        else:
            self._blank += part

    def _requested(self, action: Action) -> Iterator[ActionRequested]:
        if any(action.id == other.id for other in self.actions):  # some servers number badly
            action = Action(name=action.name, args=action.args, unparsed=action.unparsed)
        self.actions.append(action)
        if self.acts:
            yield ActionRequested(action, self.id)

    def _end(self) -> Iterator[Event]:
        if self._tags is not None:
            for part in self._tags.flush():
                yield from self._part(part)
        self.text = "".join(self._parts)
        yield self._report(self._usage or _unknown(self.llm.model))

    def _report(self, usage: Usage) -> UsageReported:
        self._reported = True
        return UsageReported(usage, self.id, self.finish_reason)


@lru_cache(maxsize=64)
def _unknown(model: str) -> Usage:
    """What a call used that the provider said nothing about."""
    return Usage(model=model)


def _failed(known: Usage | None, error: Exception) -> Usage:
    """What a call that did not end well used: its tries count, their tokens are not known."""
    tries = 1 + (error.retries if isinstance(error, LLMError) else 0)
    if known is None:
        return Usage(requests=tries)
    missing = tries - known.requests
    return known + Usage(requests=missing, model=known.model) if missing > 0 else known
