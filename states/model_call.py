"""One request to a model: what it says, as events and as a whole.

Every built-in state calls models like this, so all calls are alike: the request has one system
message, first, and ends with a user message or tool results; every response has an ID and is
reported once; a request that is too long is trimmed and sent once more; and a response that cannot
be used goes back to the model once with what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Mapping,
    Sequence,
)
from contextlib import aclosing
from functools import lru_cache
from types import AsyncGeneratorType
from typing import Any, Literal, TypeAlias, TypeVar

from pydantic import BaseModel, JsonValue

from agent_brain.common.aio import maybe_await
from agent_brain.common.ids import ids_of
from agent_brain.common.text import clean_json, count_tokens, to_compact_json
from agent_brain.memories.message import CUT_REASONS, Attachment, Message
from agent_brain.memories.runs.work import RunWork, current_work, here, work_here
from agent_brain.memories.views.tokens import request_tokens
from agent_brain.states import prompts
from agent_brain.states.errors import ContextWindowError, LLMRefusalError, MalformedOutputError
from agent_brain.states.events import (
    NOWHERE,
    ActionDelta,
    ActionRequested,
    AttachmentReceived,
    Event,
    PartialOutput,
    ProviderToolCalled,
    ResponseStarted,
    SourcesCited,
    TextDelta,
    UsageReported,
)
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.model_stream import Begun, Replaced, failed_usage, model_call
from agent_brain.states.models.llm import (
    LLM,
    ArgumentsDelta,
    Finish,
    Piece,
    ProviderCall,
    Thought,
    with_provider_calls,
)
from agent_brain.states.models.think_tags import ThinkTags
from agent_brain.states.output_types import Problem, checked_problem
from agent_brain.states.partial import PartialReader
from agent_brain.states.pipeline import Pipeline
from agent_brain.states.prompts import without_oldest
from agent_brain.states.sources import CITATIONS, CitedSource, sources_of
from agent_brain.states.usage import NOTHING, Usage
from agent_brain.states.work import Pace, Work, WorkContext, close_stream, run_of
from agent_brain.tools.action import Action, readable
from agent_brain.tools.base import BaseTool
from agent_brain.tools.context import call_here

CallT = TypeVar("CallT", bound="ModelCall")
_new_response_id = ids_of("resp")
Words: TypeAlias = Literal["shown", "thought", "hidden"]


class ModelCall(Work):
    """One request to a model. Yield it from ``State.run``, then read the response.

    ::

        async def run(self, memory):
            call = self.llm.call(await memory.context())
            yield call
            await memory.update([Message.assistant(call.text)])

    The text, the usage and the events stream while the state waits. An error of the model is raised
    at the ``yield``.

    Attributes:
        id: ID of the response, as in its events.
        text: The text of the response, without thoughts.
        actions: The tool calls that it requests.
        attachments: The pictures that the model has made.
        sources: The pages that it cites.
        finish: How it ended, if the provider said so.
        usage: What the call used; None before it has ended.
        corrected: How often it went back to the model, corrected.
        output: The validated data of a call with ``output_type`` (:meth:`LLM.call`), or what
            ``check`` has read out of the text; else None.

    Args:
        llm: The model.
        messages: What it sees.
        tools: What it may call.
        output_type: The shape of the data that the model is asked for; not validated here.
        words: Whether its text is ``"shown"`` to the reader, streamed as a ``"thought"``, or
            ``"hidden"``.
        acts: The calls that it requests become events.
        check: Returns what is wrong with the finished response, which then goes back to the model;
            sync or async. Without it, a refusal is not an error.
        corrections: How often it may go back.

    Raises:
        LLMError: At the ``yield``: the call failed.
        LLMRefusalError: At the ``yield``: the model refused to answer.
        MalformedOutputError: At the ``yield``: the last correction could not be used either.
        StateDefinitionError: Where the response is read before the ``yield``.
    """

    id: str = ""
    text: str
    actions: list[Action]
    attachments: tuple[Attachment, ...] = ()
    sources: tuple[CitedSource, ...] = ()
    finish: Finish | None
    usage: Usage | None
    output: Any
    purpose: str | None = None  # what a memory makes the call for
    refusal_is_an_answer: bool = True
    ending: str = prompts.GO_ON  # the user message that is added to what does not end with one
    complaint: str = "The model's output could not be used"  # if the last response is wrong too
    growing: bool = False  # its output is that of the run, and is shown while it comes
    as_thoughts: bool = False  # as which it is shown
    # Of an attempt. An object with 30 attributes of its own takes a KiB more.
    _trimmed = _begun = _announced = _reported = _started = False
    _thoughts: list[str] | None = None
    _served: tuple[ProviderCall, ...] = ()
    _open_calls: dict[str, tuple[str, list[str]]] | None = None  # names and arguments, by their IDs
    _blank = ""  # white space at the beginning of the text
    _tags: ThinkTags | None = None  # made where one may be
    _used: Usage | None = None
    _partial: PartialReader | None = None  # of the run's output
    _made_in: RunWork | None = None  # the run whose state is to yield it
    results_of_it = frozenset({"text", "actions", "finish", "usage", "output"})

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
        words: Words = "shown",
        acts: bool = False,
        check: Callable[[Any], Problem] | None = None,
        corrections: int = 1,
    ) -> None:
        self.llm = self._called = llm  # a hook may have another model called
        in_form = type(messages) is prompts.Request
        self.messages = messages if in_form else prompts.as_request(messages, self.ending)
        self.tools = tools
        self.output_type = output_type
        self.words: Words = words
        self.acts = acts
        self.check = check
        self.corrections, self.corrected = corrections, 0
        place = here.get()
        if place is not None and place.purpose is None and (place.in_step or not call_here()):
            self._made_in = place.run  # a state, or a function of one, and no memory or tool
            place.run.unyielded.append(self)

    def _begin(self, context: WorkContext | None) -> None:
        if context is not None:
            context.check_budget()
        self.id = _new_response_id()
        if self._begun:
            self.attachments = self.sources = ()
            self._blank, self._tags, self._used, self._partial = "", None, None, None
            self._thoughts, self._served, self._open_calls = None, (), None
            self._announced = self._reported = self._started = False
        else:
            self._begun, self.usage = True, None
        self.text = ""
        self.actions = []
        self.finish = self.output = None
        self._at = NOWHERE if context is None else context.at
        self._parts: list[str] = []
        self._called = self.llm
        self._watched = context is not None and context.watched

    @property
    def finish_reason(self) -> str | None:
        """Why the response ended, as the provider said."""
        return None if self.finish is None else self.finish.reason

    @property
    def cut(self) -> str | None:
        """How the response was cut off, in words; None if it is complete."""
        where = None if self.finish is None else CUT_REASONS.get(self.finish.reason)
        return None if where is None else f"it was cut off {where}"

    @property
    def is_empty(self) -> bool:
        """Whether there are neither text nor pictures in the response."""
        return not self.attachments and not self.text.strip()

    @property
    def result(self) -> Any:
        """The data of a call with ``output_type``, else the text."""
        return self.text

    def metadata(self) -> dict[str, JsonValue]:
        """What to record with the message.

        That is what the provider needs again, the calls that it has made itself, a bad ending, what
        it cites, and the model if it is another one than was called, such as a fallback.
        """
        kept: dict[str, JsonValue] = {}
        if self._used is not None and self._used.model not in (None, self._called.model):
            kept["model"] = self._used.model
        finish = self.finish
        if finish is not None and finish.reason not in ("stop", "tool_calls"):
            kept["finish_reason"] = finish.reason
        metadata: Mapping[str, JsonValue] = {} if finish is None else finish.metadata
        if self._served:
            metadata = with_provider_calls(metadata, self._served)
        if metadata:
            kept |= clean_json({k: v for k, v in metadata.items() if k != IMAGES})
        if self.sources:
            kept["sources"] = [{"url": each.url, "title": each.title} for each in self.sources]
        if finish is not None and finish.provider_data:
            kept["provider_data"] = clean_json(dict(finish.provider_data))
        return kept

    def check_refusal(self) -> None:
        """Raise if the model declined to answer.

        Raises:
            LLMRefusalError: It refused, or its answer was withheld, without any words; with words
                too, where these cannot be the answer.
        """
        reason = None if self.finish is None else self.finish.reason
        if reason not in ("refusal", "content_filter") or self.actions:
            return
        if self.text.strip() and (self.refusal_is_an_answer or reason == "content_filter"):
            return
        raise LLMRefusalError(reason, output=self.text, model=self._called.model)

    def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Call the model; yield what it says as it comes, and what the call used.

        Args:
            context: The run; None outside of one, or for a call of its memory.
        """
        if context is None and (work := current_work()) is not None:
            return work[0].model_call(self, work[1])
        made_in, self._made_in = self._made_in, None
        if made_in is not None and self in made_in.unyielded:  # not if an earlier step made it
            made_in.unyielded.remove(self)
        return self._events(context)

    async def _events(  # noqa: C901 - one loop
        self, context: WorkContext | None
    ) -> AsyncGenerator[Event, None]:
        at = NOWHERE if context is None else context.at
        hooks = None if context is None or context.hooks is None else context.hooks.around_calls
        messages: Sequence[Message] | None = self.messages
        shown, thought = self.words != "hidden", self.words == "thought"
        pace = None if shown else Pace()
        while messages is not None:
            self._begin(context)
            parts, response_id = self._parts, self.id
            if hooks is None:
                yield self._announce(self.llm)
            if context is None or hooks is None:
                ask, tools = self.llm.stream, self.tools
                pieces = ask(messages, tools=tools, output_type=self.output_type)
                if type(pieces) is not AsyncGeneratorType:
                    pieces = self._checked(pieces)
            else:
                pieces = self._hooked(messages, context, hooks)
            unfinished: AsyncIterator[Any] | None = pieces
            try:
                async for piece in pieces:
                    if shown and type(piece) is str and (parts or self._begin_text(piece)):
                        parts.append(piece)  # the way of nearly all pieces
                        yield TextDelta(piece, thought=thought, response_id=response_id, at=at)
                    else:
                        if pace is not None:
                            await pace.keep()
                        for event in self._note(piece):
                            yield event
                unfinished = None
                for event in self._end():
                    yield event
                if self.finish is not None and self.check is not None:
                    self.check_refusal()
                problem = None if self.check is None else self.check(self)
                messages = None if problem is None else await self._correction(problem, context)
                if self.growing and self._watched:
                    for event in self._settle(used=messages is None):
                        yield event
            except Exception as error:
                for event in self._end_failed(messages or (), error):
                    yield event
                if self._trimmed or self._started or not isinstance(error, ContextWindowError):
                    raise
                self._trimmed = True  # shortened once, and only if nothing was said yet
                messages = without_oldest(messages or ())
                if messages is None:
                    raise
            finally:
                if unfinished is not None:
                    await close_stream(unfinished)
                if not self._reported and context is not None:
                    used = self._used_so_far(messages or ())
                    if used is not None:
                        context.count_unread(self._report(used))

    def _hooked(
        self, messages: Sequence[Message], context: WorkContext, hooks: Pipeline
    ) -> AsyncIterator[Any]:
        def send(request: ModelRequest) -> AsyncIterator[Piece]:
            return self._checked(
                request.llm.stream(
                    request.messages, tools=request.tools, output_type=request.output_type
                )
            )

        request = ModelRequest(
            llm=self.llm,
            messages=messages,
            tools=self.tools,
            output_type=self.output_type,
            at=context.at,
            memory=context.memory,
            response_id=self.id,
            purpose=self.purpose,
        )
        return model_call(hooks, request, send)

    def _checked(self, stream: AsyncIterator[Piece]) -> AsyncIterator[Piece]:
        if hasattr(stream, "__aiter__"):
            return stream
        given: object = stream
        if isinstance(given, Coroutine):
            given.close()  # or Python warns that it was never awaited
        raise TypeError(
            f"{type(self._called).__name__}.stream() returned an object of type "
            f"{type(given).__name__}: write it as an async generator, 'async def' with 'yield'"
        )

    async def _correction(
        self, problem: str | Awaitable[str | None], context: WorkContext | None
    ) -> list[Message] | None:
        """Return what to send if the response cannot be used; None if it can."""
        told = checked_problem(await work_here(run_of(context), maybe_await(problem)))
        if told is None:
            return None
        if self.corrected >= self.corrections:
            raise MalformedOutputError(
                f"{self.complaint}: {told}", output=self.text, model=self._called.model
            )
        self.corrected, self._trimmed = self.corrected + 1, False
        self.messages = [*self.messages, *correction(self._written(), told)]
        return self.messages

    def _written(self) -> str:
        """Return the response as text, with the calls that it requests."""
        calls = [
            to_compact_json({"name": a.name, "args": a.unparsed or a.args}) for a in self.actions
        ]
        return "\n".join([self.text, *calls] if self.text else calls)

    def _announce(self, llm: LLM) -> ResponseStarted:
        self._called, self._announced = llm, True
        return ResponseStarted(self.id, llm.model, self.purpose, at=self._at)

    def _note(self, piece: Piece | Replaced | Begun) -> Iterable[Event]:
        if isinstance(piece, Usage):
            self._used = piece if self._used is None else self._used.followed_by(piece)
            return self._drop_open_calls() if self._open_calls else ()  # the attempt has failed
        if isinstance(piece, Finish):
            self.finish = piece
            return self._beside_text(piece.metadata) if piece.metadata else ()
        if isinstance(piece, Replaced):
            return self._replace(piece)
        if isinstance(piece, Begun):
            return (self._announce(piece.llm),)
        self._started = True
        if isinstance(piece, Action):
            return self._requested(piece)
        if isinstance(piece, ProviderCall):
            self._served += (piece,)
            told = (piece.id, piece.name, piece.args, piece.result, self.id)
            return (ProviderToolCalled(*told, at=self._at),)
        if isinstance(piece, ArgumentsDelta):
            return self._continue_call(piece)
        if not isinstance(piece, str):
            raise TypeError(
                f"{type(self._called).__name__}.stream() yielded an object of type "
                f"{type(piece).__name__}: yield str, Thought, Action, ArgumentsDelta, Finish or "
                "Usage"
            )
        if isinstance(piece, Thought):
            return self._part(piece)
        events: list[Event] = []
        for part in self._split(piece):
            events += self._part(part)
        return events

    def _beside_text(self, metadata: Mapping[str, JsonValue]) -> list[Event]:
        """Take the pictures and the citations of a response; return their events."""
        images = metadata.get(IMAGES)
        found = map(_picture, images if isinstance(images, Sequence) else ())
        self.attachments = tuple(filter(None, found))
        self.sources = sources_of(metadata.get(CITATIONS))
        made = [AttachmentReceived(each, self.id, at=self._at) for each in self.attachments]
        cited = [SourcesCited(self.sources, self.id, at=self._at)] if self.sources else []
        return [*made, *cited]

    def _replace(self, piece: Replaced) -> list[Event]:
        """Take a response for what was streamed; return the events of what was not seen yet."""
        response, said = piece.response, self._parts[:]
        seen, unseen = self.actions, piece.failed or not self._parts
        self.finish, self.actions, self.attachments, self.sources = piece.finish, [], (), ()
        if piece.finish is not None:
            self._beside_text(piece.finish.metadata)
        self._parts.clear()
        self._served = ()
        self._tags, self._blank = None, ""
        partial, watched = self._partial, self._watched
        self._partial, self._watched = None, False  # the output is shown when it has been checked
        thoughts = (Thought(response.thoughts),) if piece.failed and response.thoughts else ()
        parts = [*thoughts, *self._split(response.text), *self._rest()]
        events: list[Event] = [event for part in parts for event in self._part(part)]
        self._partial, self._watched = partial, watched
        if not unseen:
            events.clear()
        elif said and events:  # apart from the text that the error has cut off
            thought = self.words == "thought"
            events.insert(0, TextDelta("\n", thought=thought, response_id=self.id, at=self._at))
        known = {action.id for action in seen}
        for action in response.actions:
            requested = self._requested(action)
            events += () if action.id in known else requested
        return [*events, *self._drop_open_calls()] if self._open_calls else events

    def _continue_call(self, piece: ArgumentsDelta) -> Iterable[Event]:
        """Return what to show of a piece of the arguments of a call."""
        calls = self._open_calls = self._open_calls or {}
        calls.setdefault(piece.id, (piece.name, []))[1].append(piece.text)
        return self._show_arguments(piece) if self._watched else ()

    def _show_arguments(self, piece: ArgumentsDelta) -> Iterable[Event]:
        if not self.acts:
            return ()
        return (ActionDelta(piece.id, piece.name, piece.text, self.id, at=self._at),)

    def _drop_open_calls(self) -> Iterable[Event]:
        """Take back the calls that were not requested after all."""
        calls, self._open_calls = self._open_calls, None
        if calls is None or not self._watched:
            return ()
        return [event for key in calls for event in self._take_back_call(key, calls[key][0])]

    def _take_back_call(self, call_id: str, name: str) -> Iterable[Event]:
        if not self.acts:
            return ()
        return (ActionDelta(call_id, name, "", self.id, dropped=True, at=self._at),)

    def _grow(self, text: str) -> Iterable[Event]:
        """Return what to show of the run's output, of which another piece has come."""
        partial = self._partial
        return () if partial is None or not partial.add(text) else (self._shows(partial.value),)

    def _shows(self, output: Any) -> PartialOutput:
        return PartialOutput(output, self.as_thoughts, self.id, at=self._at)

    def _settle(self, *, used: bool) -> Iterable[Event]:
        """Show the whole of the run's output, or take it back if the response is not used."""
        partial, self._partial = self._partial, None
        shown = None if partial is None else partial.value
        whole = self._output_data() if used else None
        return () if whole == shown else (self._shows(whole),)

    def _output_data(self) -> Any:
        """Return the output as JSON data."""
        return None

    def _begin_text(self, piece: str) -> bool:
        """Return whether the text begins with a word: with neither white space nor a tag."""
        self._started = True
        first = piece[:1]
        plain = first not in ("", "<") and not first.isspace()
        return plain and self._tags is None and not self._blank

    def _split(self, piece: str) -> Iterable[str]:
        """The words and thoughts in a piece of text; thoughts come before all words."""
        if self._parts:
            return (piece,) if piece else ()
        if self._tags is None:
            if piece.lstrip()[:1] not in ("", "<"):
                return (piece,)
            self._tags = ThinkTags()
        return self._tags.split(piece)

    def _rest(self) -> Iterable[str]:
        """What is left of the words and thoughts at the end of the text."""
        tags, self._tags = self._tags, None
        return () if tags is None else tags.flush(cut=self.cut is not None)

    def _part(self, part: str) -> Iterable[Event]:
        if isinstance(part, Thought):
            thoughts = self._thoughts = self._thoughts or []
            thoughts.append(part)
            return (TextDelta(part, thought=True, response_id=self.id, at=self._at),)
        if not self._parts and not part.strip():
            self._blank += part
            return ()
        part, self._blank = self._blank + part, ""
        self._parts.append(part)
        if self.words == "hidden":
            return self._hide(part)
        return (TextDelta(part, thought=self.words == "thought", response_id=self.id, at=self._at),)

    def _hide(self, part: str) -> Iterable[Event]:
        """Return what to show in place of a hidden piece of text."""
        return ()

    def _requested(self, action: Action) -> Iterable[ActionRequested]:
        if self._open_calls:
            self._open_calls.pop(action.id, None)
        if self.actions and action.id in {other.id for other in self.actions}:
            # some servers number badly
            action = Action(name=action.name, args=action.args, unparsed=action.unparsed)
        if action.args:
            action = readable(action)
        self.actions.append(action)
        return (ActionRequested(action, self.id, at=self._at),) if self.acts else ()

    def _end(self) -> list[Event]:
        events: list[Event] = []
        if self._tags is not None:
            for part in self._rest():
                events += self._part(part)
        self.text = "".join(self._parts)
        if self._open_calls:
            events += self._drop_open_calls()
        events.append(self._report(self._used or _unknown(self._called.model)))
        return events

    def _used_so_far(self, messages: Sequence[Message]) -> Usage | None:
        """Return what the model has reported, or an estimate if it has said something, or None."""
        if self._used is not None or not self._started:
            return self._used
        cut = [text for _, texts in (self._open_calls or {}).values() for text in texts]
        written = "".join([*(self._thoughts or ()), *self._parts, self._written(), *cut])
        read, name = request_tokens(messages, self.tools), self._called.model
        return Usage(read, count_tokens(written), model=name, estimated=True)

    def _end_failed(self, messages: Sequence[Message], error: Exception) -> Iterable[Event]:
        if not self._announced:  # a hook failed before the call
            yield self._announce(self.llm)
            yield self._report(NOTHING)
        elif not self._reported:
            known = self._used_so_far(messages)
            yield self._report(failed_usage(known, error, said=self._started))
        yield from self._settle(used=False)
        yield from self._drop_open_calls()

    def _report(self, usage: Usage) -> UsageReported:
        self._reported = True
        self.usage = usage if self.usage is None else self.usage + usage
        reason = None if self.finish is None else self.finish.reason
        return UsageReported(usage, self.id, reason, self.purpose, at=self._at)


async def finish_call(call: CallT) -> CallT:
    """Make a call outside of a state; return it. In a run it is one of the run in ``work_for``."""
    async with aclosing(call.events()) as events:
        async for _ in events:
            pass
    return call


def correction(output: str, problem: str) -> list[Message]:
    """Return what a model is sent, once and without a record, about output that cannot be used."""
    said = [Message.assistant(output)] if output else []
    request = f"That could not be used: {problem}. Write it again, corrected."
    return [*said, Message.user(request, cause_by=correction.__name__)]


def _picture(image: object) -> Attachment | None:
    """Return an address or a content part of OpenAI as an attachment; None if it is no picture."""
    given = image.get("image_url") if isinstance(image, Mapping) else image
    url = given.get("url") if isinstance(given, Mapping) else given
    if not isinstance(url, str) or not url:
        return None
    inline = _DATA_URL.match(url)
    if inline is None:
        return Attachment(media_type="image/png", url=url)  # a guess: the address does not say
    return Attachment(media_type=inline[1], data=url[inline.end() :])


IMAGES = "images"  # in the metadata of a Finish
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)[^,]{0,100};base64,(?=.)")


def is_said(call: ModelCall) -> None:
    """Accept every response that is not a refusal; a ``check`` for :class:`ModelCall`."""


@lru_cache(maxsize=64)
def _unknown(model: str) -> Usage:
    """What a call used that the provider said nothing about."""
    return Usage(model=model)
