"""Asking a model one thing: as text, or as data of a given shape, with one correction.

A state asks like this, so that what the model thinks streams and what it costs is counted::

    question = DataQuestion(self.llm, messages, Plan)
    async with closing(question.events()) as events:
        async for event in events:
            yield event
    plan = question.answer
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.aclosing import closing
from agent_brain.states.errors import MalformedOutputError
from agent_brain.states.events import Event
from agent_brain.states.models.llm import LLM
from agent_brain.states.output_types import Shape, shape_of
from agent_brain.states.response import Response, Words
from agent_brain.tools.values import error_lines

T = TypeVar("T")


async def brief(
    llm: LLM, memory: Memory, prompt: prompts.Prompt, request: str | None = None
) -> list[Message]:
    """What ``llm`` is to see: the prompt, the memory's context and, last, what is asked of it now.

    Args:
        llm: The model that will be asked.
        memory: Where the context comes from.
        prompt: What the model is told first; ``{goal}`` and ``{tools}`` are filled in.
        request: Becomes the last, user message. A conversation that ends with the model's own
            words is refused by some models, and gone on with by others.
    """
    await llm.open()
    tools = tuple(memory.offered_tools().values())
    plain = not llm.supports_tools
    messages = await prompts.assemble(memory, prompt, tools, plain=plain, offered=False)
    return messages if request is None else [*messages, asked(request)]


def asked(request: str) -> Message:
    """What a state asks of a model, as the user message that ends a request."""
    return Message.user(request, cause_by=Question.__name__)


def correction(output: str, problem: str) -> list[Message]:
    """What a model is told, once and without a trace, about output that cannot be used."""
    said = [Message.assistant(output)] if output else []
    request = f"That could not be used: {problem}. Write it again, corrected."
    return [*said, Message.user(request, cause_by=correction.__name__)]


class Question(ABC, Generic[T]):
    """One question to a model.

    Attributes:
        answer: What it answered, once :meth:`events` has ended.
        response: The model's last response.

    Args:
        llm: The model.
        messages: What it sees.
    """

    answer: T
    response: Response
    output_type: type[BaseModel] | None = None
    words: Words = "shown"
    ending: str = prompts.ANSWER_NOW
    refusal_is_an_answer: bool = True

    def __init__(self, llm: LLM, messages: Sequence[Message]) -> None:
        self.llm = llm
        self.messages = list(messages)

    async def events(self) -> AsyncGenerator[str | Event, None]:
        """Ask, and once more if the answer cannot be used; yield what streams meanwhile.

        Raises:
            LLMRefusalError: The model refused to answer.
            MalformedOutputError: The second answer could not be used either.
        """
        messages = self.messages
        for attempt in (1, 2):
            response = self.response = Response(
                self.llm,
                messages,
                output_type=self.output_type,
                words=self.words,
                ending=self.ending,
            )
            async with closing(response.events()) as events:
                async for event in events:
                    yield event
            response.check_refusal(words_are_an_answer=self.refusal_is_an_answer)
            problem = self.read(response.text)
            if problem is None:
                return
            if attempt == 2:
                raise MalformedOutputError(
                    self.complaint(problem), output=response.text, model=self.llm.model
                )
            messages = [*response.messages, *correction(response.text, problem)]

    @abstractmethod
    def read(self, output: str) -> str | None:
        """Take the model's words as ``answer``; return what is wrong if that is not possible."""

    @abstractmethod
    def complaint(self, problem: str) -> str:
        """The text of the error when the correction did not help."""


class TextQuestion(Question[str]):
    """A question whose answer is text, streamed as it comes.

    Args:
        llm: The model.
        messages: What it sees.
        aside: The answer is not for the reader: it streams as a thought.
    """

    def __init__(self, llm: LLM, messages: Sequence[Message], *, aside: bool = False) -> None:
        super().__init__(llm, messages)
        self.words = "aside" if aside else "shown"

    def read(self, output: str) -> str | None:
        """Anything but nothing will do."""
        self.answer = output
        return None if output.strip() else self.response.cut or "it was empty"

    def complaint(self, problem: str) -> str:
        """Name the problem."""
        return f"The model gave no answer: {problem}"


class DataQuestion(Question[T]):
    """A question whose answer is data; nothing is shown before it is valid.

    Args:
        llm: The model.
        messages: What it sees; how to write the data is added to the system message.
        output_type: A pydantic model, or any other type that pydantic validates.
        check: Looks at what has the shape, and returns what is wrong with it, if anything.

    Raises:
        StateDefinitionError: A type that cannot be asked of a model.
    """

    words = "hidden"
    ending = prompts.ANSWER_NOW_AS_DATA
    refusal_is_an_answer = False

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[Message],
        output_type: type[T] | Shape[T],
        *,
        check: Callable[[T], str | None] | None = None,
    ) -> None:
        self.shape: Shape[T] = shape_of(output_type)
        self.output_type = self.shape.model
        told = (
            prompts.OUTPUT_KNOWN
            if llm.sends_schema
            else prompts.OUTPUT.replace("{schema}", self.shape.schema_text)
        )
        super().__init__(llm, [*messages, Message.system(told)])
        self.check = check

    def read(self, output: str) -> str | None:
        """Take the JSON in the text; of a response that was cut off, only if it is whole."""
        cut = self.response.cut
        try:
            self.answer = self.shape.read(output, repair=cut is None)
        except ValidationError as error:
            lines = error_lines(error, "the answer") if output.strip() else ["it was empty"]
            return cut or "; ".join(lines)
        return self.check(self.answer) if self.check is not None else None

    def complaint(self, problem: str) -> str:
        """Name the shape and how the answer differs."""
        return f"The answer does not fit {self.shape.name}: {problem}"
