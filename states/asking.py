"""Asking a model one thing: as text, or as data of a given shape, with one correction.

A state asks like this, so that what the model thinks streams and what it costs is counted::

    question = DataQuestion(self.llm, messages, Plan)
    async with closing(question.events()) as events:
        async for event in events:
            yield event
    plan = question.answer
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Generic, TypeVar

from pydantic import BaseModel, ValidationError

from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.errors import MalformedOutputError
from agent_brain.states.events import Event, UsageReported
from agent_brain.states.llm import LLM, Thought
from agent_brain.states.parsing import json_values
from agent_brain.states.streams import closing
from agent_brain.states.usage import Usage

T = TypeVar("T")
M = TypeVar("M", bound=BaseModel)


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
    messages = await prompts.assemble(memory, prompt, tools, plain=not llm.supports_tools)
    return messages if request is None else [*messages, Message.user(request)]


def correction(output: str, problem: str) -> list[Message]:
    """What a model is told, once and without a trace, about output that cannot be used."""
    said = [Message.assistant(output)] if output else []
    return [*said, Message.user(f"That could not be used: {problem}. Write it again, corrected.")]


class Question(ABC, Generic[T]):
    """One question to a model.

    Attributes:
        answer: What it answered, once :meth:`events` has ended.

    Args:
        llm: The model.
        messages: What it sees.
    """

    answer: T
    output_type: type[BaseModel] | None = None

    def __init__(self, llm: LLM, messages: Sequence[Message]) -> None:
        self.llm = llm
        self.messages = list(messages)

    async def events(self) -> AsyncGenerator[str | Event, None]:
        """Ask, and once again if the answer is of no use; whatever is to be streamed meanwhile.

        Raises:
            MalformedOutputError: The second answer was of no use either.
        """
        messages = self.messages
        for attempt in (1, 2):
            text: list[str] = []
            async with closing(self.llm.stream(messages, output_type=self.output_type)) as items:
                async for item in items:
                    if isinstance(item, Usage):
                        yield UsageReported(item)
                    elif isinstance(item, Thought):
                        yield item
                    elif isinstance(item, str):
                        text.append(item)
                        shown = self.show(item)
                        if shown:
                            yield shown
            output = "".join(text)
            problem = self.read(output)
            if problem is None:
                return
            if attempt == 2:
                raise MalformedOutputError(
                    self.complaint(problem), output=output, model=self.llm.model
                )
            messages = [*messages, *correction(output, problem)]

    @abstractmethod
    def show(self, piece: str) -> str:
        """How a piece of the answer is streamed; empty text for not at all."""

    @abstractmethod
    def read(self, output: str) -> str | None:
        """Take the model's words as ``answer``; what is wrong with them if that cannot be."""

    @abstractmethod
    def complaint(self, problem: str) -> str:
        """What the error says when the correction did not help."""


class TextQuestion(Question[str]):
    """A question whose answer is text, streamed as it comes.

    Args:
        llm: The model.
        messages: What it sees.
        aside: The answer is not for the reader: it streams as a thought.
    """

    def __init__(self, llm: LLM, messages: Sequence[Message], *, aside: bool = False) -> None:
        super().__init__(llm, messages)
        self.aside = aside

    def show(self, piece: str) -> str:
        """The piece, as a thought if it is said aside."""
        return Thought(piece) if self.aside else piece

    def read(self, output: str) -> str | None:
        """Anything but nothing will do."""
        self.answer = output
        return None if output.strip() else "it was empty"

    def complaint(self, problem: str) -> str:
        """As the problem can only be that."""
        return "The model gave no answer"


class DataQuestion(Question[M]):
    """A question whose answer is data; nothing is shown before it is valid.

    Args:
        llm: The model.
        messages: What it sees; how to write the data is added.
        output_type: The shape.
        check: Looks at what has the shape, and says what is wrong with it, if anything.
    """

    def __init__(
        self,
        llm: LLM,
        messages: Sequence[Message],
        output_type: type[M],
        *,
        check: Callable[[M], str | None] | None = None,
    ) -> None:
        schema = json.dumps(output_type.model_json_schema(), ensure_ascii=False)
        shape = Message.system(prompts.OUTPUT.replace("{schema}", schema))
        super().__init__(llm, [*messages, shape])
        self.shape = output_type
        self.output_type = output_type
        self.check = check

    def show(self, piece: str) -> str:
        """Nothing."""
        return ""

    def read(self, output: str) -> str | None:
        """Take the JSON in the text."""
        try:
            self.answer = read_output(output, self.shape)
        except ValidationError as error:
            return _explain(error)
        return self.check(self.answer) if self.check is not None else None

    def complaint(self, problem: str) -> str:
        """Which shape was asked for, and how the answer differs."""
        return f"The answer does not fit {self.shape.__name__}: {problem}"


def read_output(text: str, output_type: type[M]) -> M:
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
