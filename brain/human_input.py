"""Check a person's decisions about a waiting run, and write them into its memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from pydantic import JsonValue, ValidationError

from agent_brain.common.secrets import scrub
from agent_brain.errors import DecisionError, ResumeError
from agent_brain.memories.control import Control
from agent_brain.memories.runs.human_requests import Decision, HumanRequests
from agent_brain.tools.answers import read_answer
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolArgumentsError

Approve: TypeAlias = Literal[True] | str | Iterable[str]
Deny: TypeAlias = Mapping[str, str] | str | Iterable[str]


@dataclass(frozen=True, slots=True)
class Decisions:
    """The arguments of :meth:`Brain.resume`, as they were given."""

    approve: Approve | None = None
    deny: Deny | None = None
    edit: Mapping[str, Mapping[str, Any]] | None = None
    input: object = None

    def write(self, control: Control, tools: Mapping[str, BaseTool] = MappingProxyType({})) -> None:
        """Record them in ``control``, all or none.

        Args:
            control: The registers of the run.
            tools: The tools by name.

        Raises:
            ResumeError: The run does not wait. Nothing is changed.
            DecisionError: They do not match what it waits for, or there are none.
        """
        given = any(x is not None for x in (self.approve, self.deny, self.edit, self.input))
        asked = control.human_requests if control.status == "waiting" else None
        if asked is None or not asked.waiting:
            if given:
                raise ResumeError("The run does not wait for a person: resume it without decisions")
            return
        if not given and (control.wake_at is not None or control.stop_reason == "paused"):
            return  # other branches can continue
        decisions = self._decisions(asked, control, tools)
        answers = self._answers(asked, control)
        if not decisions and not answers:
            raise DecisionError(f"The run waits for a person: {waits_for(control)}")
        if not control.subnets:  # their nets may have tools of their own
            run = {key for key, decision in decisions.items() if decision.approved} | answers.keys()
            for call in asked.calls:
                if call.id in run - asked.inside.keys() and call.name not in tools:
                    raise DecisionError(
                        f"The call {call.id!r} is of the tool {call.name!r}, which this brain does "
                        "not have: add it to resume the run, or deny the call"
                    )
        asked.record(decisions, answers)

    def _decisions(
        self, asked: HumanRequests, control: Control, tools: Mapping[str, BaseTool]
    ) -> dict[str, Decision]:
        found: dict[str, Decision] = {}

        def decide(call_id: str, decision: Decision) -> None:
            if call_id not in asked.approvals:
                raise DecisionError(f"No call {call_id!r} waits for approval. {waits_for(control)}")
            if call_id in found:
                raise DecisionError(f"There are two decisions about the call {call_id!r}: give one")
            found[call_id] = decision

        for call_id, args in (self.edit or {}).items():
            try:
                edited = Decision(approved=True, args=dict(args))
            except (TypeError, ValueError, ValidationError) as error:
                raise DecisionError(
                    f"edit= has no arguments for {call_id!r} that JSON can carry: {error}"
                ) from error
            decide(call_id, edited)
            if not (call_id in asked.inside and asked.inside[call_id].foreign):
                _check_arguments(call_id, edited.args or {}, control, tools)
        for call_id, reason in reasons_of(self.deny).items():
            decide(call_id, Decision(approved=False, reason=reason))
        if self.approve is True:
            if not asked.approvals:
                raise DecisionError(f"No call waits for approval. {waits_for(control)}")
            return {**{i: Decision(approved=True) for i in asked.approvals}, **found}
        for call_id in ids_of(self.approve):
            decide(call_id, Decision(approved=True))
        return found

    def _answers(self, asked: HumanRequests, control: Control) -> dict[str, JsonValue]:
        answers = {}
        waits, typed = partial(waits_for, control), bool(asked.schemas)
        given_to = by_question(self.input, asked.questions, waits, typed=typed)
        for question, given in given_to.items():
            try:
                answers[question] = read_answer(asked.schemas.get(question), given)
            except ValueError as error:
                prompt = f"{question!r}: " * bool(question) + repr(asked.questions[question])
                raise DecisionError(
                    f"The answer to {prompt} does not fit: {scrub(str(error))}"
                ) from None
        return answers


def _check_arguments(
    call_id: str, args: Mapping[str, Any], control: Control, tools: Mapping[str, BaseTool]
) -> None:
    name = next((call.name for call in control.waiting_calls() if call.id == call_id), "")
    if (tool := tools.get(name)) is not None:
        try:
            tool.validate(dict(args))
        except ToolArgumentsError as error:
            raise DecisionError(f"edit= for {call_id!r}: {error}") from error


def by_question(
    given: object, questions: Collection[str], waits: Callable[[], str], *, typed: bool
) -> Mapping[str, Any]:
    """Return what was given as ``input=``, by the IDs of the questions.

    Args:
        given: The answer to the only question, or a dict of answers by ID.
        questions: The IDs of the questions that wait.
        waits: Returns a text that says what waits.
        typed: Whether a dict may be an answer.

    Raises:
        DecisionError: There is no such question, or not only one.
    """
    if given is None:
        return {}
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in questions]
        if not unknown and (given or len(questions) != 1):
            return given
        if unknown and (len(questions) != 1 or not typed):
            raise DecisionError(f"No question {unknown[0]!r} waits. {waits()}")
    if len(questions) != 1:
        many = "several questions wait" if questions else "no question waits"
        raise DecisionError(f"input= is one answer, and {many}. {waits()}")
    return dict.fromkeys(questions, given)


def waits_for(control: Control) -> str:
    """Return a text that says what a run waits for, and how to give it."""
    asked = control.human_requests or HumanRequests()
    calls = [f"{call.id!r} ({call.name})" for call in control.waiting_calls()]
    questions = [
        f"{key!r}: {prompt}" if key else repr(prompt) for key, prompt in asked.questions.items()
    ]
    parts = []
    if calls:
        parts.append(f"pass approve=, deny= or edit= for {', '.join(calls)}")
    if questions:
        parts.append(f"pass input= for {'; '.join(questions)}")
    return ". ".join(parts) or "It does not wait for anything else"


def reasons_of(deny: Deny | None) -> dict[str, str]:
    """Return the reasons of denied calls by their IDs."""
    return dict(deny) if isinstance(deny, Mapping) else dict.fromkeys(ids_of(deny), "")


def ids_of(value: object) -> list[str]:
    """Return the IDs of calls that a person has named.

    Raises:
        DecisionError: They are not IDs.
    """
    if value is None or value is False:
        return []
    if isinstance(value, str):
        return [value]
    if not isinstance(value, Iterable):
        raise DecisionError(f"{value!r} does not name calls: give their IDs")
    return list(value)
