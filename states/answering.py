"""Answering: the closing words, as text or as data of a given shape."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from enum import Enum

from pydantic import BaseModel, ValidationError

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role
from agent_brain.states import prompts
from agent_brain.states.base import State
from agent_brain.states.errors import MalformedOutputError, StateDefinitionError
from agent_brain.states.events import Event, UsageReported
from agent_brain.states.llm import LLM, Thought
from agent_brain.states.parsing import json_values
from agent_brain.states.reasoning import correction
from agent_brain.states.streams import closing
from agent_brain.states.usage import Usage


class AnswerState(State):
    """End the turn with its answer.

    When the conversation already ends in an assistant's text, that is the answer and no model is
    asked. Otherwise, and whenever ``ask`` or ``output_type`` says so, the model is asked once more,
    without tools.

    Args:
        llm: The model to ask; needed for ``ask`` and ``output_type``.
        output_type: A pydantic model that the answer must fit. The validated object is the run's
            output; one that does not fit goes back to the model once with what was wrong.
        ask: Ask the model even when there is closing text.
        on_done: Where to go afterwards; None ends the run.
        prompt: What the model is told first.

    Raises:
        StateDefinitionError: Something to ask, and no model to ask it.
        MalformedOutputError: While running: the second answer did not fit either.
    """

    def __init__(
        self,
        llm: LLM | None = None,
        *,
        output_type: type[BaseModel] | None = None,
        ask: bool = False,
        on_done: Enum | None = None,
        prompt: prompts.Prompt = prompts.ANSWER,
    ) -> None:
        if llm is None and (ask or output_type is not None):
            raise StateDefinitionError("AnswerState needs llm= to ask for an answer")
        self.llm = llm
        self.output_type = output_type
        self.ask = ask
        self.on_done = on_done
        self.prompt = prompt

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        """Stream the answer if it is asked for; mark the goal as reached."""
        if self.llm is not None and await self._must_ask(memory):
            parts = self._ask_text(memory) if self.output_type is None else self._ask_data(memory)
            async with closing(parts) as events:
                async for event in events:
                    yield event
        if self.on_done is None:
            memory.done = True

    async def next_state(self, memory: Memory) -> Enum | None:
        """``on_done``."""
        return self.on_done

    def targets(self) -> tuple[Enum | None, ...]:
        """``on_done``, or the end."""
        return (self.on_done,)

    async def _must_ask(self, memory: Memory) -> bool:
        if self.ask or self.output_type is not None:
            return True
        last = (await memory.turn())[-1:]  # an earlier turn's answer is no answer to this one
        return not (last and _is_closing(last[0]))

    async def _messages(self, memory: Memory) -> list[Message]:
        assert self.llm is not None
        await self.llm.open()
        plain = not self.llm.supports_tools
        return await prompts.assemble(memory, self.prompt, plain=plain)

    async def _ask_text(self, memory: Memory) -> AsyncIterator[str | Event]:
        assert self.llm is not None
        messages, answer = await self._messages(memory), ""
        for attempt in (1, 2):
            text = []
            async with closing(self.llm.stream(messages)) as items:
                async for item in items:
                    if isinstance(item, str):
                        if type(item) is not Thought:
                            text.append(item)
                        yield item
                    elif isinstance(item, Usage):
                        yield UsageReported(item)
            answer = "".join(text)
            if answer.strip():
                break
            if attempt == 2:
                raise MalformedOutputError(
                    "The model gave no answer", output=answer, model=self.llm.model
                )
            messages = [*messages, *correction(answer, "it was empty")]
        await memory.update([Message.assistant(answer, cause_by=type(self).__name__)])

    async def _ask_data(self, memory: Memory) -> AsyncIterator[str | Event]:
        """Ask for JSON; nothing is shown before it is valid."""
        assert self.llm is not None
        assert self.output_type is not None
        messages = await self._messages(memory)
        schema = json.dumps(self.output_type.model_json_schema(), ensure_ascii=False)
        messages.append(Message.system(prompts.OUTPUT.replace("{schema}", schema)))
        for attempt in (1, 2):
            text = ""
            stream = self.llm.stream(messages, output_type=self.output_type)
            async with closing(stream) as items:
                async for item in items:
                    if isinstance(item, Thought):
                        yield item
                    elif isinstance(item, str):
                        text += item
                    elif isinstance(item, Usage):
                        yield UsageReported(item)
            try:
                output = read_output(text, self.output_type)
            except ValidationError as error:
                problem = _explain(error)
            else:
                memory.control.output = output
                written = output.model_dump_json(by_alias=True)  # as the schema names the fields
                message = Message.assistant(written, cause_by=type(self).__name__)
                await memory.update([message])
                yield written
                return
            if attempt == 2:
                raise MalformedOutputError(
                    f"The answer does not fit {self.output_type.__name__}: {problem}",
                    output=text,
                    model=self.llm.model,
                )
            messages = [*messages, *correction(text, problem)]


def read_output(text: str, output_type: type[BaseModel]) -> BaseModel:
    """The JSON in ``text``, with or without words and fences around it, as ``output_type``.

    Of several JSON values the last that fits counts: models show examples first.

    Raises:
        ValidationError: None fits.
    """
    try:
        return output_type.model_validate_json(text)
    except ValidationError as error:
        first = error
    wrong = None
    for value in reversed(list(json_values(text))):
        try:
            return output_type.model_validate_json(json.dumps(value))
        except ValidationError as error:
            wrong = wrong or error
    raise wrong or first


def _explain(error: ValidationError) -> str:
    return "; ".join(
        f"{'.'.join(map(str, e['loc'])) or 'the answer'}: {e['msg']}"
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    )


def _is_closing(message: Message) -> bool:
    """Words of the model that are meant for the reader, and not a thought on the way to them."""
    return (
        message.role is Role.ASSISTANT
        and bool(message.content)
        and not message.tool_calls
        and not message.metadata.get("thought")
    )
