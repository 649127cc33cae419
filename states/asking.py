"""Asking a person or the model for data, and waiting for a time."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from enum import Enum
from typing import Any, Generic, TypeVar, overload

from agent_brain.common.aio import maybe_await
from agent_brain.common.text import to_text
from agent_brain.common.values import check_function
from agent_brain.memories.base import Memory
from agent_brain.memories.message import Message
from agent_brain.states import prompts
from agent_brain.states.base import Choose, RoutedState
from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event, InputRequested, SleepRequested
from agent_brain.states.model_request import StructuredRequest, build_messages
from agent_brain.states.models.llm import LLM
from agent_brain.states.models.resolve import as_llm
from agent_brain.states.output_types import Check, Checks, OutputType, Shape, shape_of
from agent_brain.states.session_state import Into, keeper, keeper_if_any
from agent_brain.states.work import StreamItem, Work, WorkContext, key_in_step
from agent_brain.tools.answers import AnswerKind, answer_type, asked_again
from agent_brain.tools.wake import wake_time

T_co = TypeVar("T_co", covariant=True)


class Ask(Work, Generic[T_co]):
    """A question to a person. Yield it from ``State.run``, then read the answer.

    ::

        class Seat(BaseModel):
            row: int = Field(ge=1, le=30)
            side: Literal["window", "aisle"]

        async def run(self, memory):
            ask = Ask("Which seat would you like?", Seat)
            yield ask
            yield f"Row {ask.value.row}, {ask.value.side}."

    The run waits (``stop_reason="input"``) until :meth:`agent_brain.Brain.resume` is given an
    answer that fits, in this process or another one. The state then runs again from its start. A
    question that it has asked before has its answer at once, in the order in which they are asked:
    so a state asks the same questions in the same order each time, and acts after them.

    Attributes:
        prompt: The question.
        value: The answer, of the type.

    Args:
        prompt: The question.
        type: The type of the answer: ``str`` for free text, ``bool``, ``int``, ``date``, a
            ``Literal`` of choices, a pydantic model for a form, or any other type that pydantic
            validates; or a JSON Schema, whose answers are JSON data. With ``X | None`` the person
            may leave it open. A validator of a model sees an answer once the state runs: if it
            refuses, the person is asked again, with what is wrong. So they are if an answer that is
            kept does not fit, as the state now asks for another type.
        name: The ID of the question. Several that are asked at once (:class:`Together`) need one.

    Raises:
        StateDefinitionError: There is no such type, or the prompt or the name is none. At the
            ``yield``: it is asked at once with another one, and has no name; or the state has asked
            another one of its name.
    """

    value: T_co
    results_of_it = frozenset({"value"})

    @overload
    def __init__(self: Ask[str], prompt: str, *, name: str = "") -> None: ...
    @overload
    def __init__(self, prompt: str, type: type[T_co], *, name: str = "") -> None: ...
    @overload
    def __init__(self: Ask[Any], prompt: str, type: AnswerKind, *, name: str = "") -> None: ...

    def __init__(
        self,
        prompt: str,
        type: AnswerKind = str,  # noqa: A002 - what it is
        *,
        name: str = "",
    ) -> None:
        if not (isinstance(prompt, str) and prompt.strip()):
            raise StateDefinitionError(f"Ask({prompt!r}): the question must be a text")
        if not isinstance(name, str) or name.startswith("?"):
            raise StateDefinitionError(
                f"Ask({prompt!r}, name={name!r}): the name must be a text without '?' in front"
            )
        try:
            self._type = answer_type(type)
        except ValueError as error:
            raise StateDefinitionError(f"Ask({prompt!r}): {error}") from None
        self.prompt = prompt
        self._name = name

    @property
    def result(self) -> T_co | None:
        """The answer; None while there is none."""
        return vars(self).get("value")

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Yield the question, unless it is answered.

        Raises:
            RuntimeError: There is no run to be part of.
        """
        if context is None:
            raise RuntimeError("Ask needs a run: yield it from State.run")
        control = context.memory.control
        question, kept = self._place(context)
        if kept not in control.ended and control.has_answer(question):
            control.ended[kept] = json.dumps(control.answer_to(question))
        prompt = self.prompt
        if kept in control.ended:
            try:
                self.value = self._type.value(json.loads(control.ended[kept]))
                return
            except ValueError as error:
                del control.ended[kept]
                prompt = asked_again(prompt, error)
        yield InputRequested(prompt, question, self._type.schema)

    def _place(self, context: WorkContext) -> tuple[str, str]:
        """Return the ID of the question, and the key under which its answer is kept."""
        control = context.memory.control
        counted = key_in_step(context, f"ask:{self._name}" if self._name else "")
        number = control.asked.get(counted, 0) + 1
        control.asked = {**control.asked, counted: number}
        if self._name:
            if number > 1:
                raise StateDefinitionError(
                    f"Ask({self.prompt!r}, name={self._name!r}): the state has asked a question of "
                    "this name before: give each another name="
                )
            return "/".join(filter(None, (context.key, self._name))), counted
        if number > 1 and key_in_step(context, f"ask:?{number - 1}") not in control.ended:
            raise StateDefinitionError(
                f"Ask({self.prompt!r}) is asked at once with another question: give each a name="
            )
        again = f"?{number}" if number > 1 else ""
        return f"{context.key}{again}", key_in_step(context, f"ask:?{number}")


class Sleep(Work):
    """Wait until a time; yield it from ``State.run``.

    If the time is in the future, the run stops with ``stop_reason="sleeping"`` and
    ``Result.wake_at``. When it is resumed, the state runs again from its beginning. What follows
    the ``yield`` runs once the time has come; a run that is resumed before, stops again. With a
    journal, another process may resume it, days later::

        async def run(self, memory):
            yield Sleep(timedelta(hours=1))
            yield "An hour has passed."

    Args:
        until: When to continue: a time with a time zone, or how long from now. The time is kept
            until the step ends, so a length is not measured again when the run is resumed.
        name: Distinguishes several of one state.

    Raises:
        StateDefinitionError: ``until`` is not a length of time, or a time without a time zone.
    """

    def __init__(self, until: datetime | timedelta, *, name: str = "") -> None:
        try:
            wake_time(until)
        except ValueError as error:
            raise StateDefinitionError(f"Sleep({until!r}): {error}") from None
        self._until = until
        self._name = name

    async def events(self, context: WorkContext | None = None) -> AsyncGenerator[Event, None]:
        """Yield the request to sleep, unless the time has come.

        Raises:
            RuntimeError: There is no run to be part of.
        """
        if context is None:
            raise RuntimeError("Sleep needs a run: yield it from State.run")
        wake_at = await self._wake_at(context)
        if wake_at > wake_time(timedelta()):
            yield SleepRequested(wake_at)

    async def _wake_at(self, context: WorkContext) -> datetime:
        """Return the time; that of a length is kept when it is first asked for."""
        if isinstance(self._until, datetime):
            return wake_time(self._until)
        memory = context.memory
        key = key_in_step(context, f"sleep:{self._name}")
        if (known := memory.control.ended.get(key)) is not None:
            return datetime.fromisoformat(known)
        wake_at = wake_time(self._until)
        memory.control.ended[key] = wake_at.isoformat()
        if memory.durable:
            await memory.record([key])
        return wake_at


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
        self.checks = Checks(check, corrections, output_type)
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
