"""Events: the typed data that a run streams.

Every event has a position (:class:`Position`). States may yield events without one; the Brain adds
it. Events can be written as JSON and read back::

    event = TypeAdapter(Event).validate_json(event.to_json())

Programs may define and yield events of their own; read back, they are :class:`OtherEvent`.
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, ClassVar, Literal, NamedTuple, TypeAlias, cast, get_args, get_type_hints

from pydantic import BaseModel, GetCoreSchemaHandler, JsonValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from agent_brain.common.models import set_slots_directly
from agent_brain.common.secrets import scrub
from agent_brain.common.text import clean, clean_json, to_compact_json, to_json_data
from agent_brain.memories.message import Attachment, Message
from agent_brain.memories.recall.results import RecalledItem
from agent_brain.states.errors import RecordedError
from agent_brain.states.sources import CitedSource
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action


class Position(NamedTuple):
    """The position of an event in a run.

    Attributes:
        run_id: ID of the run.
        step: Number of the step, from 0.
        state: Name of the state; None before the first and after the last one.
        path: The subnets and branches around the state, outermost first.
    """

    run_id: str = ""
    step: int = 0
    state: str | None = None
    path: tuple[str, ...] = ()


NOWHERE = Position()


class Placed:
    """Something at a position; its parts are properties."""

    __slots__ = ()

    at: Position

    @property
    def run_id(self) -> str:
        """ID of the run."""
        return self.at.run_id

    @property
    def step(self) -> int:
        """Number of the step, from 0."""
        return self.at.step

    @property
    def state(self) -> str | None:
        """Name of the state; None outside of a state."""
        return self.at.state

    @property
    def path(self) -> tuple[str, ...]:
        """The subnets and branches around the state, outermost first."""
        return self.at.path


@dataclass(frozen=True, slots=True)
class Event(Placed):
    """Base class for events; ``kind`` distinguishes them."""

    kind: ClassVar[str] = "event"
    at: Position = dataclasses.field(default=NOWHERE, kw_only=True)

    def __init_subclass__(cls, **options: Any) -> None:
        """Check an event of a program's own.

        Raises:
            TypeError: Its ``kind`` is a field, no name, or one of the library's; or a field has
                the name of a part of the position.
        """
        super(Event, cls).__init_subclass__(**options)
        if cls.__module__ == __name__:
            return
        named = inspect.get_annotations(cls)
        if problem := _problem_of(cls.__dict__.get("kind"), named):
            raise TypeError(f"The event {cls.__name__} {problem}")

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON values: ``kind``, the position and the fields."""
        place = {"run_id": self.run_id, "step": self.step, "state": self.state}
        return {"kind": self.kind, **place, "path": list(self.path), **self.fields()}

    def fields(self) -> dict[str, Any]:
        """Return the fields as JSON values, without ``kind`` and the position."""
        return {name: _plain(getattr(self, name)) for name in _own_fields(cast("Any", type(self)))}

    def to_json(self) -> str:
        """Return the event as a JSON object on one line; ``TypeAdapter(Event)`` reads it."""
        return to_compact_json(self.to_dict())

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: type[Event], handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return event_schema(cls, handler)


def _problem_of(kind: object, named: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the kind and the fields of an event; None if nothing is."""
    if "kind" in named and "ClassVar" not in str(named["kind"]):
        return "has its kind as a field: write kind: ClassVar[str] = …"
    if isinstance(kind, str) and (kind in KINDS or kind == "gap"):
        return f"has the kind {kind!r}, which is that of an event of the library: take another one"
    if isinstance(kind, str) and not re.fullmatch(r"[\w.:-]+", kind):
        return f"has the kind {kind!r}: use letters, digits and underscores"
    taken = sorted({"at", "run_id", "step", "state", "path"}.intersection(named))
    if taken:
        return f"has a field {taken[0]!r}, which is a part of every event's position: rename it"
    return None


set_position: Callable[[Event, Position], None] = vars(Event)["at"].__set__


@cache
def _own_fields(event: type[Event]) -> tuple[str, ...]:
    return tuple(field.name for field in dataclasses.fields(event) if field.name != "at")


def _plain(value: Any) -> Any:
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return clean(value)
    if isinstance(value, BaseException):
        name = value.type if isinstance(value, RecordedError) else type(value).__name__
        return {"type": name, "message": clean(scrub(str(value)))}
    if isinstance(value, BaseModel):
        return clean_json(value.model_dump(mode="json"))
    return to_json_data(value)


@dataclass(frozen=True, slots=True)
class RunStarted(Event):
    """A run starts, or continues after :meth:`Brain.resume`."""

    kind: ClassVar[Literal["run_started"]] = "run_started"
    goal: Message | None
    net: str = ""
    resumed: bool = False


@dataclass(frozen=True, slots=True)
class MessageReceived(Event):
    """A message that was sent to the run (``Run.send``) was recorded, between two steps."""

    kind: ClassVar[Literal["message_received"]] = "message_received"
    message: Message


@dataclass(frozen=True, slots=True)
class StateEntered(Event):
    """A state is entered."""

    kind: ClassVar[Literal["state_entered"]] = "state_entered"


@dataclass(frozen=True, slots=True)
class TextDelta(Event):
    """A piece of text arrives.

    Attributes:
        text: The piece.
        thought: Whether it is reasoning, not meant for the reader.
        response_id: ID of the model response that it belongs to; None for text from a state.
    """

    kind: ClassVar[Literal["text_delta"]] = "text_delta"
    text: str
    thought: bool = False
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class PartialOutput(Event):
    """The object of an ``output_type`` has grown: what has come of it so far.

    It is made where somebody reads all events. The last one of a response has the whole object, as
    JSON data; the validated object is ``RunFinished.output``.

    Attributes:
        output: JSON data. A text may be cut off and grow; numbers, dates, members of an Enum and
            all else appear when they are whole. None: the response is not used, so forget it.
        thought: Whether it is not meant for the reader, as of :class:`TextDelta`.
        response_id: ID of the model response that it belongs to.
    """

    kind: ClassVar[Literal["partial_output"]] = "partial_output"
    output: Any
    thought: bool = False
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class ActionDelta(Event):
    """A piece of the arguments of a tool call arrives, before the call is requested.

    It is made where somebody reads all events and the model sends arguments in pieces.

    Attributes:
        id: ID of the call, as in its :class:`ActionRequested`.
        name: Name of the tool.
        text: The next piece of the arguments, which together are JSON.
        response_id: ID of the model response that it belongs to.
        dropped: The call will not be requested, as the response was cut off or replaced: forget it.
    """

    kind: ClassVar[Literal["action_delta"]] = "action_delta"
    id: str
    name: str
    text: str = ""
    response_id: str | None = None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class ActionRequested(Event):
    """The model requests a tool call, in the response with that ID."""

    kind: ClassVar[Literal["action_requested"]] = "action_requested"
    action: Action
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class ActionStarted(Event):
    """A tool call starts."""

    kind: ClassVar[Literal["action_started"]] = "action_started"
    action: Action


@dataclass(frozen=True, slots=True)
class ToolProgress(Event):
    """A running call reports its progress.

    Attributes:
        action: The call.
        done: The amount that is done, in a unit of the tool.
        total: How much there is to do, if that is known.
        message: A description of the progress, for people.
    """

    kind: ClassVar[Literal["tool_progress"]] = "tool_progress"
    action: Action
    done: float
    total: float | None = None
    message: str | None = None


@dataclass(frozen=True, slots=True)
class ActionFinished(Event):
    """A call has its result; ``exception`` is the error that the tool raised, if any."""

    kind: ClassVar[Literal["action_finished"]] = "action_finished"
    action: Action
    result: Message
    exception: Exception | None = None


@dataclass(frozen=True, slots=True)
class ProviderToolCalled(Event):
    """A provider has called a tool of its own, such as its web search.

    Attributes:
        call_id: ID of the call.
        name: Name of the tool.
        args: What it was called with.
        result: What it returned, as JSON; None if the provider does not say.
        response_id: ID of the model response.
    """

    kind: ClassVar[Literal["provider_tool_called"]] = "provider_tool_called"
    call_id: str
    name: str
    args: Mapping[str, JsonValue]
    result: JsonValue = None
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class AttachmentReceived(Event):
    """A model has made a picture or a file, which its message has as an attachment."""

    kind: ClassVar[Literal["attachment_received"]] = "attachment_received"
    attachment: Attachment
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class SourcesCited(Event):
    """A model has cited pages, such as what its provider's web search has found.

    Attributes:
        sources: The pages, each once; its message has them in ``metadata["sources"]``.
        response_id: ID of the model response.
    """

    kind: ClassVar[Literal["sources_cited"]] = "sources_cited"
    sources: tuple[CitedSource, ...]
    response_id: str | None = None


@dataclass(frozen=True, slots=True)
class ResponseStarted(Event):
    """A model call starts; :class:`UsageReported` with the same ID ends it.

    Attributes:
        response_id: ID of the response, as in its other events.
        model: Name of the model that is called. A fallback may answer: see ``UsageReported``.
        purpose: As of :class:`UsageReported`.
    """

    kind: ClassVar[Literal["response_started"]] = "response_started"
    response_id: str | None = None
    model: str = ""
    purpose: str | None = None


@dataclass(frozen=True, slots=True)
class UsageReported(Event):
    """A model call ends. There is one for each call, also if the provider reports no usage.

    Attributes:
        usage: Tokens and cost of the call; ``usage.model`` is the model that answered.
        response_id: ID of the response, as in its other events.
        finish_reason: Why the response ended (see :class:`~agent_brain.states.Finish`); None if the
            provider did not say.
        purpose: What the memory of the run made the call for: ``"summary"``, ``"embedding"``, or
            what it says (:meth:`Memory.work_for`); None for a call of a state.
    """

    kind: ClassVar[Literal["usage_reported"]] = "usage_reported"
    usage: Usage
    response_id: str | None = None
    finish_reason: str | None = None
    purpose: str | None = None


@dataclass(frozen=True, slots=True)
class MessagesRecalled(Event):
    """The memory has found something that fits the goal, and shows it to the model.

    It is reported once as long as the same is shown for the same goal.

    Attributes:
        query: What it was looked for with.
        items: What is shown, best first: messages, facts, or both.
        tokens: How many tokens that takes, estimated.
    """

    kind: ClassVar[Literal["recalled"]] = "recalled"
    query: str
    items: tuple[RecalledItem, ...]
    tokens: int


@dataclass(frozen=True, slots=True)
class MessagesTrimmed(Event):
    """Messages have left the window of recent messages; the memory may still hold them.

    Attributes:
        ids: Their IDs, in order.
    """

    kind: ClassVar[Literal["trimmed"]] = "trimmed"
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ContextCompacted(Event):
    """The memory has summarised messages, and shows the model the summary in their place.

    Attributes:
        count: How many messages they are.
        tokens_before: The tokens of these messages and of the summary before.
        tokens_after: The tokens of the summary.
        level: How often the summary itself has been summarised.
    """

    kind: ClassVar[Literal["compacted"]] = "compacted"
    count: int
    tokens_before: int
    tokens_after: int
    level: int = 0


@dataclass(frozen=True, slots=True)
class MemoryEscalated(Event):
    """The conversation no longer fits, and the memory shows less of it from now on.

    Attributes:
        before: What it has shown: ``"everything"`` or ``"window"``.
        now: What it shows: ``"window"``, the newest messages and what is recalled, or
            ``"summary"``, a summary as well.
        tokens: How many tokens the conversation had when it no longer fitted.
        max_tokens: How many tokens a model is shown at most.
    """

    kind: ClassVar[Literal["escalated"]] = "escalated"
    before: str
    now: str
    tokens: int
    max_tokens: int


@dataclass(frozen=True, slots=True)
class FactsLearned(Event):
    """The memory has read what was said, and keeps what it has learned from it.

    Attributes:
        session: The conversation that it has read.
        added: IDs of the facts that it has added.
        replaced: IDs of the facts that these have replaced.
        refused: How many facts it has not taken over, by reason.
        read: How many messages it has read.
        calls: How many model calls that took.
    """

    kind: ClassVar[Literal["learned"]] = "learned"
    session: str | None = None
    added: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    refused: Mapping[str, int] = dataclasses.field(default_factory=dict)
    read: int = 0
    calls: int = 0


@dataclass(frozen=True, slots=True)
class StuckDetected(Event):
    """The run repeats itself: first the model gets a hint, later the run is stopped."""

    kind: ClassVar[Literal["stuck_detected"]] = "stuck_detected"
    reason: str
    verdict: Literal["hint", "stop"]


@dataclass(frozen=True, slots=True)
class ApprovalRequested(Event):
    """The run waits for a person to approve or deny these calls.

    ``uncertain`` has the IDs of those that may have taken effect before the run was interrupted:
    to approve one is to run it again.
    """

    kind: ClassVar[Literal["approval_requested"]] = "approval_requested"
    actions: tuple[Action, ...]
    uncertain: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class InputRequested(Event):
    """The run waits for a person to answer ``prompt``.

    ``id`` identifies the question: the ID of the call that asks, or empty if a state asks.
    ``schema`` is the JSON Schema of the answer; None for free text.
    """

    kind: ClassVar[Literal["input_requested"]] = "input_requested"
    prompt: str
    id: str = ""
    schema: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SleepRequested(Event):
    """The run stops until a time (aware, UTC)."""

    kind: ClassVar[Literal["sleep_requested"]] = "sleep_requested"
    until: datetime


@dataclass(frozen=True, slots=True)
class StateExited(Event):
    """A state was left; ``next`` names the state to come, None at the end.

    ``error`` is what the state raised, if its error leads to ``next`` (``Net(on_error={…})``).
    """

    kind: ClassVar[Literal["state_exited"]] = "state_exited"
    next: str | None
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class RunFinished(Event):
    """A run ends; the last event of every run that does not fail."""

    kind: ClassVar[Literal["run_finished"]] = "run_finished"
    stop_reason: str
    answer: str
    output: Any = None
    usage: Usage = dataclasses.field(default_factory=Usage)
    finish_reason: str | None = None


@dataclass(frozen=True, slots=True)
class RunFailed(Event):
    """A run fails with an error, which is raised to the caller after this event."""

    kind: ClassVar[Literal["run_failed"]] = "run_failed"
    error: Exception
    stop_reason: str = "failed"


@dataclass(frozen=True, slots=True)
class OtherEvent(Event):
    """An event of a program's own class, read from JSON.

    ``TypeAdapter(MyEvent).validate_python(event.to_dict())`` makes it an event of that class again.

    Attributes:
        kind: Its kind.
        data: Its fields, as JSON values.
    """

    kind: str = "event"  # type: ignore[misc]  # the kind of one event, not of the class
    data: dict[str, Any] = dataclasses.field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """Return the fields."""
        return self.data


AgentEvent: TypeAlias = (
    RunStarted
    | MessageReceived
    | StateEntered
    | TextDelta
    | PartialOutput
    | ActionDelta
    | ActionRequested
    | ActionStarted
    | ToolProgress
    | ActionFinished
    | ProviderToolCalled
    | AttachmentReceived
    | SourcesCited
    | ResponseStarted
    | UsageReported
    | MessagesRecalled
    | MessagesTrimmed
    | ContextCompacted
    | MemoryEscalated
    | FactsLearned
    | StuckDetected
    | ApprovalRequested
    | InputRequested
    | SleepRequested
    | StateExited
    | RunFinished
    | RunFailed
)

for _kind in get_args(AgentEvent):
    set_slots_directly(_kind)

OF_MEMORIES: tuple[type[Event], ...] = (
    MessagesRecalled,
    MessagesTrimmed,
    ContextCompacted,
    MemoryEscalated,
    FactsLearned,
)
"""What a memory reports of its own accord."""

KINDS = frozenset(kind.kind for kind in get_args(AgentEvent))  # what a program's own kind is not in


def event_schema(kind: type[Event], handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return the schema of an event class; in a union, ``kind`` selects the class.

    That of ``Event`` reads events of all kinds.
    """
    if kind is Event:
        return _any_event_schema(handler)
    text = core_schema.str_schema()
    place = {
        "kind": core_schema.literal_schema([kind.kind]),
        "run_id": text,
        "step": core_schema.int_schema(),
        "state": core_schema.nullable_schema(text),
        "path": core_schema.list_schema(text),
    }
    fields = {name: core_schema.typed_dict_field(schema) for name, schema in place.items()}
    hints, missing = get_type_hints(kind), dataclasses.MISSING
    names = _own_fields(cast("Any", kind))
    for field in dataclasses.fields(kind):
        if field.name in names:
            required = field.default is missing and field.default_factory is missing
            schema = _field_schema(hints[field.name], handler)
            fields[field.name] = core_schema.typed_dict_field(schema, required=required)

    def build(data: dict[str, Any]) -> Event:
        position = Position(data["run_id"], data["step"], data["state"], tuple(data["path"]))
        return kind(**{name: data[name] for name in names if name in data}, at=position)

    def of_this_kind(data: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
        found = data.get("kind") if isinstance(data, dict) else None
        if found != kind.kind:  # a single line in the error of a union
            raise PydanticCustomError("kind", "kind is not {kind}", {"kind": repr(kind.kind)})
        return validate(data)

    written = core_schema.no_info_wrap_validator_function(
        of_this_kind, core_schema.typed_dict_schema(fields, extra_behavior="ignore")
    )
    from_data = core_schema.no_info_after_validator_function(build, written)
    as_it_is = core_schema.is_instance_schema(kind)
    return core_schema.json_or_python_schema(
        json_schema=from_data,
        python_schema=core_schema.union_schema([as_it_is, from_data]),
        serialization=core_schema.plain_serializer_function_ser_schema(kind.to_dict),
    )


def _any_event_schema(handler: GetCoreSchemaHandler) -> CoreSchema:
    def read(data: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
        if isinstance(data, Event):
            return data
        kind = data.get("kind") if isinstance(data, dict) else None
        if not isinstance(kind, str) or kind in KINDS:
            return validate(data)
        places = ("run_id", "step", "state", "path")
        run_id, step, state, path = (data.get(name) for name in places)
        position = Position(run_id or "", step or 0, state, tuple(path or ()))
        fields = {name: data[name] for name in data if name != "kind" and name not in places}
        return OtherEvent(kind, fields, at=position)

    return core_schema.no_info_wrap_validator_function(
        read,
        handler.generate_schema(AgentEvent),
        serialization=core_schema.plain_serializer_function_ser_schema(
            lambda event: event.to_dict()
        ),
    )


def _field_schema(hint: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    if hint is Exception:
        return _error_schema()
    if Exception in get_args(hint):
        return core_schema.nullable_schema(_error_schema())
    if hint is float:  # NaN was written as null
        number = core_schema.nullable_schema(core_schema.float_schema())
        return core_schema.no_info_after_validator_function(
            lambda value: math.nan if value is None else value, number
        )
    return handler.generate_schema(hint)


def _error_schema() -> CoreSchema:
    text = core_schema.typed_dict_field(core_schema.str_schema())
    written = core_schema.typed_dict_schema({"type": text, "message": text})
    return core_schema.no_info_after_validator_function(
        lambda data: RecordedError(data["type"], data["message"]), written
    )
