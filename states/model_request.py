"""Requests to a model for data of a given type, and the messages of a request.

A state yields the request. The thoughts of the model stream, and its usage is counted::

    request = StructuredRequest(self.llm, messages, Plan)
    yield request
    plan = request.output
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from agent_brain.common.values import error_lines
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.events import Event
from agent_brain.states.model_call import ModelCall, Words
from agent_brain.states.models.llm import LLM
from agent_brain.states.output_types import Problem, Shape, shape_of
from agent_brain.tools.base import BaseTool

T = TypeVar("T")


async def build_messages(
    llm: LLM, memory: Memory, prompt: prompts.Prompt, request: str | None = None
) -> list[Message]:
    """Return the messages of a request: the prompt, the context of the memory, the request itself.

    Args:
        llm: The model that will be called.
        memory: The memory with the context.
        prompt: The system prompt; ``{goal}`` and ``{tools}`` are filled in.
        request: The text of the last message, which is a user message: some models refuse a
            conversation that ends with an assistant message, and others continue that message.
    """
    await llm.open()
    tools = tuple(memory.offered_tools().values())
    plain = not llm.supports_tools
    messages = await prompts.assemble(memory, prompt, tools, plain=plain, offered=False)
    return messages if request is None else [*messages, request_message(request)]


def request_message(request: str) -> Message:
    """Return the user message at the end of a request."""
    return Message.user(request, cause_by="Question")


class StructuredRequest(ModelCall, Generic[T]):
    """A request for data of a given type; it is not shown before it is valid.

    An invalid answer goes back to the model with the reason.

    Attributes:
        output: The data, once the request has ended.

    Args:
        llm: The model.
        messages: The messages; instructions for writing the data are added to them.
        output_type: A pydantic model, or any other type that pydantic validates.
        check: Returns a problem of data that fits the type, or None; sync or async.
        corrections: How often it may go back to the model.
        tools: Tools that it may call instead of returning data; ``output`` is then None.
        growing: Show the data while it comes, as of the run's output (:class:`PartialOutput`).
        as_thoughts: Show it as a thought, which is not meant for the reader.

    Raises:
        StateDefinitionError: The type cannot be requested from a model.
        LLMRefusalError: At the ``yield``: the model refused to answer.
        MalformedOutputError: At the ``yield``: the last correction was not valid either.
    """

    refusal_is_an_answer = False
    ending = prompts.ANSWER_NOW_AS_DATA
    output: T

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[Message],
        output_type: type[T] | Shape[T],
        *,
        check: Callable[[T], Problem] | None = None,
        corrections: int = 1,
        tools: Sequence[BaseTool] = (),
        growing: bool = False,
        as_thoughts: bool = False,
    ) -> None:
        self.growing = growing
        self.as_thoughts = as_thoughts
        self.shape: Shape[T] = shape_of(output_type)
        self.complaint = f"The answer does not fit {self.shape.name}"
        told = prompts.OUTPUT.replace("{schema}", self.shape.schema_text)
        told = prompts.OUTPUT_KNOWN if llm.sends_schema else told
        super().__init__(
            llm,
            [*messages, Message.system(told)],
            tools=tools,
            output_type=self.shape.model,
            words="hidden",
            acts=bool(tools),
            check=StructuredRequest._read,
            corrections=corrections,
        )
        self._check_output = check

    @property
    def result(self) -> T:
        """The data."""
        return self.output

    def _output_data(self) -> Any:
        return None if self.output is None else self.shape.to_data(self.output)

    def _hide(self, part: str) -> Iterable[Event]:
        if not (self.growing and self._watched):
            return ()
        if self._partial is None:
            self._partial = self.shape.partial()
        return self._grow(part)

    def _read(self) -> Problem:
        """Parse the JSON in the text; in a response that was cut off, only if it is complete."""
        if self.actions and self.tools:
            return None
        cut = self.cut
        try:
            self.output = self.shape.read(self.text, repair=cut is None)
        except ValidationError as error:
            return _nothing_said(self) or cut or "; ".join(error_lines(error, "the answer"))
        return None if self._check_output is None else self._check_output(self.output)


class TextRequest(ModelCall):
    """A request for text, streamed as it arrives. An empty answer is requested again, once.

    Args:
        llm: The model.
        messages: The messages for the model.
        as_thoughts: Stream the answer as a thought, which is not meant for the reader.
    """

    ending = prompts.ANSWER_NOW
    complaint = "The model gave no answer"

    def __init__(self, llm: LLM, messages: Sequence[Message], *, as_thoughts: bool = False) -> None:
        words: Words = "thought" if as_thoughts else "shown"
        super().__init__(llm, messages, words=words, check=_nothing_said)

    @property
    def answer(self) -> str:
        """The text."""
        return self.text


def _nothing_said(call: ModelCall) -> str | None:
    """Return why there are neither text nor pictures, if there are none."""
    if not call.is_empty:
        return None
    if call.actions:
        return "it was a tool call, and no tool can be called here"
    return call.cut or "it was empty"
