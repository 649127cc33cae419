"""Asking a person within a state: a question with a type, and its answer."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from typing import Any, Generic, TypeVar, overload

from agent_brain.states.errors import StateDefinitionError
from agent_brain.states.events import Event, InputRequested
from agent_brain.states.work import Work, WorkContext, key_in_step
from agent_brain.tools.answers import AnswerKind, answer_type, asked_again

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
