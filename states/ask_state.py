"""States that ask, the model or a person, and keep what they are told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from enum import Enum
from typing import Any

from agent_brain.common.aio import maybe_await
from agent_brain.common.text import to_text
from agent_brain.common.values import check_function
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.asking import Ask
from agent_brain.states.checks import Check, checks_of
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.keeping import Into, keeper, keeper_if_any
from agent_brain.states.model_request import StructuredRequest, build_messages
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import OutputType, Shape, shape_of
from agent_brain.states.routed import Choose, RoutedState
from agent_brain.states.work import StreamItem
from agent_brain.tools.answers import AnswerKind


class AskState(RoutedState):
    """Ask the model for data over the current context, and keep it in the memory.

    Nothing of it is shown or recorded as a message; later states read what was kept::

        class Plan(Notes):
            searches: list[str] = []

        net = Net({
            Step.PLAN: AskState(llm, "Plan the searches.", output_type=Plan, on_done=Step.SEARCH),
            Step.SEARCH: MapState(lambda memory: Plan.read(memory).searches, search),
        })

    Args:
        llm: The model.
        prompt: The system prompt; ``{goal}`` and ``{tools}`` are filled in.
        output_type: A pydantic model, or any other type that pydantic validates.
        into: Where the data is kept. The name of a value in ``memory.control.scratch``; a class of
            :class:`Notes` of which one field has the type; or a function of the memory and the
            data, sync or async. Default: an output type that is a class of notes is written as
            such, any other is kept in ``memory.control.scratch`` under the name of the type.
        request: The user message at the end of the request, if it is to have one.
        check: A function of the data, or of the memory and the data, sync or async, that returns
            what is wrong with data that fits the type, or None. ``memory.deps`` has what the run
            was given.
        corrections: How often data that is not valid goes back to the model, with what is wrong.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`), for example from what was kept.

    Raises:
        StateDefinitionError: The type cannot be requested from a model, ``into`` cannot keep it, or
            ``check`` takes other arguments.
        MalformedOutputError: While running: the last correction was not valid either.
        LLMRefusalError: While running: the model refused to answer.
    """

    def __init__(
        self,
        llm: LLM | str,
        prompt: prompts.Prompt,
        *,
        output_type: OutputType,
        into: Into | None = None,
        request: str | None = None,
        check: Check | None = None,
        corrections: int = 1,
        on_done: Enum | None = None,
        choose: Choose | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        self.llm = as_llm(llm)
        self.prompt = prompts.checked(prompt)
        self.asks_for: Shape[Any] = shape_of(output_type)
        self.request = request
        self.checks = checks_of(check, corrections, output_type)
        self._keep = keeper(self.asks_for.type, into, name=self.asks_for.name)

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Ask, and keep the data."""
        messages = await build_messages(self.llm, memory, self.prompt, self.request)
        asked = StructuredRequest(self.llm, messages, self.asks_for, **self.checks.of(memory))
        yield asked
        await maybe_await(self._keep(memory, asked.output))


class AskPersonState(RoutedState):
    """Ask a person; the question and the answer are recorded as a message of the user.

    The run waits as at an :class:`Ask`, also for another process::

        net = Net({
            Step.ESCALATE: AskPersonState("What do we offer?", Offer, on_done=Step.REPLY),
            Step.REPLY: AnswerState(llm, ask=True),
        })

    Args:
        prompt: The question, or a function of the memory that returns it, sync or async.
        type: The type of the answer, as of :class:`Ask`.
        into: Where the answer is kept besides, as of :class:`AskState`. Default: an answer whose
            type is a class of notes is written as such, any other is not kept.
        on_done: The next state; None ends the run.
        choose: Returns the next state (:class:`RoutedState`), for example from what was kept.

    Raises:
        StateDefinitionError: ``prompt`` is neither a text nor a function, there is no such type,
            or ``into`` cannot keep it.
    """

    def __init__(
        self,
        prompt: str | Callable[[Memory], str | Awaitable[str]],
        type: AnswerKind = str,  # noqa: A002 - what it is
        *,
        into: Into | None = None,
        on_done: Enum | None = None,
        choose: Choose | None = None,
    ) -> None:
        super().__init__(on_done, choose)
        if not isinstance(prompt, str):
            check_function(StateDefinitionError, "prompt", prompt, "memory")
        Ask("?", type)  # or it is refused
        self.prompt = prompt
        self.type = type
        self._keep = keeper_if_any(type, into)

    async def run(self, memory: Memory) -> AsyncIterator[StreamItem]:
        """Ask, keep the answer, and record it."""
        prompt = self.prompt
        ask: Ask[Any] = Ask(
            prompt if isinstance(prompt, str) else await maybe_await(prompt(memory)), self.type
        )
        yield ask
        if self._keep is not None:
            await maybe_await(self._keep(memory, ask.value))
        text = f"{ask.prompt}\n{to_text(ask.value)}"
        await memory.update([Message.user(text, cause_by=AskPersonState.__name__)])
