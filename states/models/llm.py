"""The model port: the interface between states and language models."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, overload

from pydantic import BaseModel, JsonValue

from agent_brain.memories.message import Message
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

if TYPE_CHECKING:
    from agent_brain.states.model_call import ModelCall
    from agent_brain.states.model_request import StructuredRequest

T = TypeVar("T")


class Thought(str):
    """A piece of the model's reasoning, which is not part of the answer."""

    __slots__ = ()


FinishReason: TypeAlias = Literal[
    "stop", "tool_calls", "length", "content_filter", "refusal", "pause", "unknown"
]


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a model response, as the provider reported it.

    Attributes:
        reason: Why the model stopped: ``"stop"`` and ``"tool_calls"`` mean a complete response;
            ``"length"`` that it was cut off at the token limit; ``"content_filter"`` that the
            provider withheld or cut it; ``"refusal"`` that the model declined to answer;
            ``"pause"`` that it continues when it is sent back, which :class:`LiteLLM` does;
            ``"unknown"`` any other reason.
        provider_data: Data to send back to the provider with this message in later requests, as
            JSON values, such as signed thinking blocks. It is stored in the message's
            ``metadata["provider_data"]``.
        metadata: What else to keep in the message's ``metadata``, as JSON values, such as
            ``citations``. It is not sent back. ``images`` in it, as content parts of OpenAI,
            become attachments of the message, and pages in ``citations`` its ``sources``.
    """

    reason: FinishReason = "stop"
    provider_data: Mapping[str, JsonValue] = field(default_factory=dict)
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reason not in get_args(FinishReason):
            given: object = self.reason
            known = ", ".join(map(repr, get_args(FinishReason)))
            raise ValueError(
                f"Finish({given!r}): reason must be one of {known}: translate the "
                "provider's own reasons"
            )


@dataclass(frozen=True, slots=True)
class ArgumentsDelta:
    """A piece of the arguments of a tool call, for those who watch them grow.

    Attributes:
        id: ID of the call, that of the :class:`~agent_brain.tools.Action` to come.
        name: Name of the tool.
        text: The next piece of the arguments, which together are JSON.
    """

    id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ProviderCall:
    """A call of a tool that the provider has run itself, such as its web search.

    Attributes:
        id: ID of the call.
        name: Name of the tool.
        args: What it was called with.
        result: What it returned, as JSON; None if the provider does not say.
    """

    id: str
    name: str
    args: Mapping[str, JsonValue] = field(default_factory=dict)
    result: JsonValue = None


def with_provider_calls(
    metadata: Mapping[str, JsonValue], calls: Iterable[ProviderCall]
) -> Mapping[str, JsonValue]:
    """Return the metadata of a response with its calls of a provider's own tools."""
    return {"provider_calls": [asdict(call) for call in calls], **metadata}


def provider_calls_of(metadata: Mapping[str, Any]) -> Iterator[ProviderCall]:
    """Yield the calls of a provider's own tools in the metadata of a response or its message."""
    calls = metadata.get("provider_calls")
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and call.get("id") and call.get("name"):
            args = call.get("args")
            made = str(call["id"]), str(call["name"]), args if isinstance(args, dict) else {}
            yield ProviderCall(*made, call.get("result"))


Piece: TypeAlias = str | Action | ArgumentsDelta | ProviderCall | Usage | Finish


class LLM(ABC):
    """Base class for language models. One object serves any number of calls at once.

    Subclass it to use a model without LiteLLM::

        from agent_brain import LLM
        from agent_brain.states import Finish

        class Echo(LLM):
            model = "echo"

            async def stream(self, messages, *, tools=(), output_type=None):
                for word in messages[-1].content.split():
                    yield f"{word} "
                yield Finish("stop")

    Attributes:
        model: Name of the model, for errors and usage.
        supports_tools: Whether it calls tools natively: accepts ``tools`` and yields actions.
        sends_schema: Whether it sends the JSON Schema of ``output_type`` to the model, so that the
            prompt need not repeat it.
        rule_based: Whether it is rules and not a language model, so that what an experiment
            measures with it says something about the machinery and nothing about quality.
    """

    model: str = "unnamed"
    supports_tools: bool = True
    sends_schema: bool = False
    rule_based: bool = False

    @abstractmethod
    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """Call the model once; implement it as an async generator.

        It yields text as it comes (:class:`Thought` for reasoning), each action when it is
        complete, a :class:`ProviderCall` for each tool that the provider has run itself, one
        :class:`Finish` if the provider says why the response ended, and one :class:`Usage` at the
        end if it is known. It may yield the arguments of an action as they come
        (:class:`ArgumentsDelta`), which are shown and not used. Closing the generator ends the
        call.

        Args:
            messages: The messages for the model, in order.
            tools: The tools that it may call.
            output_type: The shape of the text as JSON; not guaranteed, so validate the text.

        Raises:
            LLMError: A subclass that says what went wrong.
        """

    def check_tools(self, tools: Iterable[BaseTool]) -> None:
        """Refuse tools that the model cannot be offered; a brain asks when it is made.

        Does nothing by default.

        Raises:
            ToolDefinitionError: One of them cannot be offered.
        """

    @overload
    def call(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[T],
        thought: bool = False,
    ) -> StructuredRequest[T]: ...

    @overload
    def call(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: None = None,
        thought: bool = False,
    ) -> ModelCall: ...

    def call(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: Any = None,
        thought: bool = False,
    ) -> ModelCall:
        """Return one call of this model as work: yield it from ``State.run``, then read it.

        ::

            call = self.llm.call(await memory.context())
            yield call
            await memory.update([Message.assistant(call.text)])

        The text, usage and events of the call stream while the state waits, and the Brain closes
        it. An error is raised at the ``yield``.

        Args:
            messages: The messages, which are adapted to what every model accepts.
            tools: The tools it may call; ``call.actions`` has the calls that it requests.
            output_type: A pydantic model, or any other type that pydantic validates:
                ``call.output`` is data of that type, and the text is not shown. Invalid data goes
                back to the model once, with the reason.
            thought: Stream the text as a thought, which is not meant for the reader.

        Raises:
            StateDefinitionError: The type cannot be requested from a model, or the arguments are
                not lists of messages and of tools.
        """
        _check_items("messages", messages, Message, "Message.user('Hello')")
        _check_items("tools", tools, BaseTool, "a function with @tool")
        from agent_brain.states.model_call import ModelCall, is_said

        if output_type is None:
            words: Literal["thought", "shown"] = "thought" if thought else "shown"
            return ModelCall(
                self, messages, tools=tools, words=words, acts=bool(tools), check=is_said
            )
        from agent_brain.states.model_request import StructuredRequest

        return StructuredRequest(self, messages, output_type, tools=tools)

    async def open(self) -> None:
        """Prepare the model; states call it before they read what it supports."""

    async def aclose(self) -> None:
        """Release connections; the model may be used again afterwards."""

    def __deepcopy__(self, memo: dict[int, Any]) -> LLM:
        return self


def _check_items(name: str, given: object, kind: type, example: str) -> None:
    if not isinstance(given, Sequence) or not all(isinstance(item, kind) for item in given):
        raise StateDefinitionError(
            f"llm.call({name}={given!r}): pass a list of {kind.__name__} objects, such as {example}"
        )
