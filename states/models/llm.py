"""The model port: what a state needs of a language model, and nothing else."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args, overload

from pydantic import BaseModel, JsonValue

from agent_brain.memories.message import Message
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

if TYPE_CHECKING:
    from agent_brain.states.model_call import ModelCall
    from agent_brain.states.model_request import StructuredRequest

T = TypeVar("T")


class Thought(str):
    """A piece of text that is the model's reasoning, not meant for the reader."""

    __slots__ = ()


FinishReason: TypeAlias = Literal[
    "stop", "tool_calls", "length", "content_filter", "refusal", "unknown"
]


@dataclass(frozen=True, slots=True)
class Finish:
    """The end of a model response, as the provider reported it.

    Attributes:
        reason: Why the model stopped: ``"stop"`` and ``"tool_calls"`` mean a complete response;
            ``"length"`` one cut off at the token limit; ``"content_filter"`` one withheld or cut by
            the provider; ``"refusal"`` that the model declined to answer; ``"unknown"`` a reason
            that the adapter does not know.
        provider_data: What has to go back to the provider with this message in later requests, as
            JSON values: signed thinking blocks, for example. It is stored in the message's
            ``metadata["provider_data"]``.
    """

    reason: FinishReason = "stop"
    provider_data: Mapping[str, JsonValue] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.reason not in get_args(FinishReason):
            given: object = self.reason
            known = ", ".join(map(repr, get_args(FinishReason)))
            raise ValueError(
                f"Finish({given!r}): reason is one of {known}; a reason of the provider's own must "
                "be translated"
            )


Piece: TypeAlias = str | Action | Usage | Finish


class LLM(ABC):
    """A language model. One object serves any number of calls at once.

    Attributes:
        model: What the model is called, for errors and usage.
        supports_tools: It calls tools natively: it takes ``tools`` and yields actions.
        sends_schema: It sends the JSON Schema of ``output_type`` to the model by itself, so that
            the prompt need not repeat it.
    """

    model: str = "unnamed"
    supports_tools: bool = True
    sends_schema: bool = False

    @abstractmethod
    def stream(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[BaseTool] = (),
        output_type: type[BaseModel] | None = None,
    ) -> AsyncIterator[Piece]:
        """One model call, as an async generator.

        Yields text as it comes (:class:`Thought` for reasoning), each action when it is complete,
        one :class:`Finish` if the provider says why the response ended, and one :class:`Usage` at
        the end if it is known. Closing the generator ends the call.

        Args:
            messages: What the model sees, in order.
            tools: What it may call.
            output_type: Shape that the text is to have as JSON; a wish, so validate the text.

        Raises:
            LLMError: A subclass that says what went wrong.
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
            messages: What the model sees. They are put in the form that every model takes.
            tools: What it may call; ``call.actions`` has the calls that it requests.
            output_type: A pydantic model, or any other type that pydantic validates:
                ``call.output`` is data of that type, and the text is not shown. Data that is not
                valid goes back to the model once, with what is wrong.
            thought: The text is not for the reader: it streams as a thought.

        Raises:
            StateDefinitionError: A type that a model cannot be asked for.
        """
        from agent_brain.states.model_call import ModelCall, is_said

        if output_type is None:
            words: Literal["thought", "shown"] = "thought" if thought else "shown"
            return ModelCall(
                self, messages, tools=tools, words=words, acts=bool(tools), check=is_said
            )
        from agent_brain.states.model_request import StructuredRequest

        return StructuredRequest(self, messages, output_type, tools=tools)

    async def open(self) -> None:
        """Get ready to tell what the model supports; states call it first. Default: nothing."""

    async def aclose(self) -> None:
        """Give back connections; the model may be used again afterwards. Default: nothing."""

    def __deepcopy__(self, memo: dict[int, Any]) -> LLM:
        return self
