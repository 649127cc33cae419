"""Answering: the answer of a turn, from a model or from the memory, as text or as typed data."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum

from pydantic import ValidationError

from agent_brain.common.aio import maybe_await
from agent_brain.common.values import check_function
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role, is_partial
from agent_brain.memories.runs.turns import answer_of, is_answer
from agent_brain.states import prompts
from agent_brain.states.base import Choose, RoutedState
from agent_brain.states.errors import MalformedOutputError, StateDefinitionError
from agent_brain.states.events import TextDelta
from agent_brain.states.model_call import ModelCall
from agent_brain.states.model_request import StructuredRequest, TextRequest, build_messages
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OUTPUT, Check, Checks, OutputType, shape_of
from agent_brain.states.work import StreamItem


class AnswerState(RoutedState):
    """End the turn with its answer.

    If the conversation already ends with text of the assistant, that is the answer and no model is
    called; with ``output_type``, if it ends with data that a :class:`ReasoningState` has got.
    Otherwise, or with ``ask``, the model is called without tools.

    Args:
        llm: The model; required for ``ask`` and ``output_type``.
        output_type: The type of the answer, a pydantic model or any other type that pydantic
            validates. The validated object is the run's output; an answer that is not valid goes
            back to the model with what is wrong.
        ask: Call the model even if there is an answer.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).
        check: Returns what is wrong with data that fits the type (:class:`AskState`).
        corrections: How often an answer that is not valid goes back to the model.
        prompt: The system prompt.
        as_thoughts: Stream the text as thoughts, as another state decides whether it is the answer.
        sent_from: The sender of its messages, where several agents speak.

    Raises:
        StateDefinitionError: ``ask`` or ``output_type`` without ``llm``, or an output type that
            cannot be requested from a model.
        MalformedOutputError: While running: the last correction did not fit either.
        LLMRefusalError: While running: the model refused to answer, or gave no data for it.
    """

    def __init__(
        self,
        llm: LLM | str | None = None,
        *,
        output_type: OutputType | None = None,
        ask: bool = False,
        on_done: Enum | None = None,
        choose: Choose | None = None,
        check: Check | None = None,
        corrections: int = 1,
        prompt: prompts.Prompt = prompts.ANSWER,
        as_thoughts: bool = False,
        sent_from: str | None = None,
    ) -> None:
        if llm is None and (ask or output_type is not None):
            raise StateDefinitionError("AnswerState needs llm= to ask for an answer")
        super().__init__(on_done, choose)
        if output_type is not None:
            shape_of(output_type)  # or it is refused
        self.checks = Checks(check, corrections, output_type)
        self.llm = None if llm is None else as_llm(llm)
        self.output_type = output_type
        self.ask = ask
        self.prompt = prompts.checked(prompt)
        self.as_thoughts = as_thoughts
        self.sent_from = sent_from

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Stream the answer, if the model is called."""
        if self.llm is not None and await self._must_ask(memory):
            messages = await build_messages(self.llm, memory, self.prompt)
            if self.output_type is None:
                request = TextRequest(self.llm, messages, as_thoughts=self.as_thoughts)
                yield request
                await memory.update([self._message(request.text, request)])
            else:
                shape = shape_of(self.output_type)
                checks = {"as_thoughts": self.as_thoughts, **self.checks.of(memory)}
                data = StructuredRequest(self.llm, messages, shape, growing=True, **checks)
                yield data
                memory.control.output = data.output
                text = shape.write(data.output)
                yield TextDelta(text, thought=self.as_thoughts, response_id=data.id)
                await memory.update([self._message(text, data)])

    async def costs_nothing(self, memory: Memory) -> bool:
        """Return whether there is an answer already."""
        return self.llm is None or not await self._must_ask(memory)

    async def _must_ask(self, memory: Memory) -> bool:
        if self.ask:
            return True
        last = (await memory.turn())[-1:]  # the answer of an earlier turn does not count
        if not last or is_partial(last[0]):
            return True
        if self.output_type is None:
            return not is_answer(last[0])
        return not last[0].metadata.get(OUTPUT)  # its text may be empty

    def _message(self, text: str, call: ModelCall) -> Message:
        metadata = call.metadata()
        cause, sender = type(self).__name__, self.sent_from
        made = call.attachments
        return Message.assistant(
            text, cause_by=cause, sent_from=sender, metadata=metadata, attachments=made
        )


async def last_answer(memory: Memory) -> str:
    """Return the last text of this turn for the reader; empty if there is none."""
    return answer_of(await memory.turn())


async def best_words(memory: Memory) -> str:
    """Return the best answer of this turn, for a run that was stopped without one.

    The last text for the reader, else the last text of the model including thoughts, else the last
    result of a tool; empty if there is none.
    """
    answer = await last_answer(memory)
    if answer:
        return answer
    turn = await memory.turn()
    for role in (Role.ASSISTANT, Role.TOOL):
        for message in reversed(turn):
            if message.role is role and message.content.strip() and not message.is_error:
                return message.content
    return ""


class TellState(RoutedState):
    """Answer from the memory; no model is called.

    Args:
        find: Returns the answer from the memory; sync or async.
        output_type: A pydantic model, or any other type that pydantic validates, that the answer is
            the JSON of; ``Result.output`` is the object.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`).

    Raises:
        StateDefinitionError: ``find`` is not a function, or returns no text; or the output type
            cannot be requested from a model.
        MalformedOutputError: While running: the answer is not of that type.
    """

    def __init__(
        self,
        find: Callable[[Memory], str | Awaitable[str | None] | None],
        *,
        output_type: OutputType | None = None,
        on_done: Enum | None = None,
        choose: Choose | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        check_function(StateDefinitionError, "find", find, "memory")
        if output_type is not None:
            shape_of(output_type)  # or it is refused
        self.find = find
        self.output_type = output_type

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Stream the answer; record it unless it was recorded last."""
        answer = await maybe_await(self.find(memory))
        if answer is not None and not isinstance(answer, str):
            raise StateDefinitionError(f"TellState(find): it returned {answer!r}: return text")
        if answer is not None and self.output_type is not None:
            shape = shape_of(self.output_type)
            try:
                memory.control.output = shape.read(answer or '""')
            except ValidationError as error:
                if answer:  # an empty text that is no data says nothing
                    raise MalformedOutputError(
                        f"The answer does not fit {shape.name}: {error}", output=answer
                    ) from error
        if answer and answer != await last_answer(memory):
            await memory.update([Message.assistant(answer, cause_by=type(self).__name__)])
        if answer:
            yield answer

    async def costs_nothing(self, memory: Memory) -> bool:
        """Return True."""
        return True
