"""Answering: the closing words, as text or as data of a given shape."""

from __future__ import annotations

from collections.abc import AsyncIterator
from enum import Enum

from pydantic import BaseModel

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message, Role
from agent_brain.states import prompts
from agent_brain.states.asking import DataQuestion, TextQuestion, brief
from agent_brain.states.base import State
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event
from agent_brain.states.llm import LLM
from agent_brain.states.models import as_llm
from agent_brain.states.streams import closing


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
        llm: LLM | str | None = None,
        *,
        output_type: type[BaseModel] | None = None,
        ask: bool = False,
        on_done: Enum | None = None,
        prompt: prompts.Prompt = prompts.ANSWER,
    ) -> None:
        if llm is None and (ask or output_type is not None):
            raise StateDefinitionError("AnswerState needs llm= to ask for an answer")
        self.llm = None if llm is None else as_llm(llm)
        self.output_type = output_type
        self.ask = ask
        self.on_done = on_done
        self.prompt = prompt

    async def run(self, memory: Memory) -> AsyncIterator[str | Event]:
        """Stream the answer if it is asked for; mark the goal as reached."""
        if self.llm is not None and await self._must_ask(memory):
            parts = (
                self._ask_text(self.llm, memory)
                if self.output_type is None
                else self._ask_data(self.llm, memory, self.output_type)
            )
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

    async def _ask_text(self, llm: LLM, memory: Memory) -> AsyncIterator[str | Event]:
        question = TextQuestion(llm, await brief(llm, memory, self.prompt))
        async with closing(question.events()) as events:
            async for event in events:
                yield event
        await memory.update([Message.assistant(question.answer, cause_by=type(self).__name__)])

    async def _ask_data(
        self, llm: LLM, memory: Memory, output_type: type[BaseModel]
    ) -> AsyncIterator[str | Event]:
        question = DataQuestion(llm, await brief(llm, memory, self.prompt), output_type)
        async with closing(question.events()) as events:
            async for event in events:
                yield event
        memory.control.output = question.answer
        written = question.answer.model_dump_json(by_alias=True)  # as the schema names the fields
        await memory.update([Message.assistant(written, cause_by=type(self).__name__)])
        yield written


async def last_answer(memory: Memory) -> str:
    """The last words of this turn that were meant for the reader; empty if there are none."""
    answers = [message.content for message in await memory.turn() if _is_closing(message)]
    return answers[-1] if answers else ""


def _is_closing(message: Message) -> bool:
    """Words of the model that are meant for the reader, and not a thought on the way to them."""
    return (
        message.role is Role.ASSISTANT
        and bool(message.content)
        and not message.tool_calls
        and not message.metadata.get("thought")
    )
