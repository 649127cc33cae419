"""What a run waits for, and how to read a person's reply."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from agent_brain.common.secrets import scrub
from agent_brain.common.text import to_compact_json
from agent_brain.errors import BrainUseError
from agent_brain.memories.base import Memory
from agent_brain.tools.action import Action
from agent_brain.tools.answers import read_answer, words_for
from agent_brain.tools.errors import ToolArgumentsError

_YES = re.compile(r"(?i)(y|yes|ok|okay|approve|approved)[.!]?")
_NO = re.compile(r"(?i)(?:n|no|deny|denied|reject)(?:[\s.,:;!]+(?P<reason>.*))?", re.DOTALL)
_EDIT = re.compile(r"(?i)(?:edit[\s:]*)?(?P<args>\{.*\})", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Pending:
    """The tool calls that wait for approval, and the questions by their IDs.

    ``schemas`` has the JSON Schemas of the answers to those that do not ask for free text.
    """

    calls: Sequence[Action]
    questions: Mapping[str, str]
    schemas: Mapping[str, dict[str, Any]]


def pending_in(memory: Memory) -> Pending | None:
    """Return what the run in ``memory`` waits for; None if it does not wait."""
    control = memory.control
    asked = control.human_requests
    if control.status != "waiting" or asked is None:
        return None
    return Pending(control.waiting_calls(), dict(asked.questions), dict(asked.schemas))


def parse_arguments(text: str, action: Action, memory: Memory) -> dict[str, Any]:
    """Return the arguments in ``text`` with which a person wants ``action`` to run.

    Raises:
        BrainUseError: They are not a JSON object, or not arguments of the tool.
    """
    try:
        args = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrainUseError(f"The arguments of {action.name} are not JSON: {error}") from None
    if not isinstance(args, dict):
        raise BrainUseError(f"The arguments of {action.name} are not a JSON object: {text.strip()}")
    tool = memory.get_tool(action.name)
    try:
        if tool is not None:
            tool.validate(args)
    except ToolArgumentsError as error:
        raise BrainUseError(str(error)) from None
    return args


def approval_question(action: Action) -> str:
    """Return what to ask a person about a call that waits for approval: with all arguments."""
    return f"May the agent call {action.name} with {to_compact_json(action.args)}?"


class Approval(BaseModel):
    """The form for a call that waits for approval."""

    decision: Literal["yes", "no", "edit"] = Field(description="Whether the call may run.")
    reason: str = Field("", description="With no: the reason.")
    arguments: str = Field("", description="With edit: the new arguments, as a JSON object.")

    def words(self) -> str:
        """Return the decision in words."""
        return f"{self.decision} {self.arguments if self.decision == 'edit' else self.reason}"


class WaitingRequest:
    """The first thing that a run waits for.

    Attributes:
        call: The call that waits for approval; None if it is a question.
        schema: The JSON Schema of the answer to a question; None for free text.
        question: What to ask the person.
        how: How to answer in words.
    """

    def __init__(self, pending: Pending, memory: Memory) -> None:
        self._memory = memory
        self.schema: dict[str, Any] | None = None
        if pending.calls:
            self.call: Action | None = pending.calls[0]
            self._key = self.call.id
            self.question = approval_question(self.call)
            self.how = (
                "Answer with your next call: 'yes', 'no' and the reason, or 'edit' and the new "
                "arguments as a JSON object"
            )
        else:
            self.call = None
            self._key, self.question = next(iter(pending.questions.items()))
            self.how = "Answer it with your next call"
            if (schema := pending.schemas.get(self._key)) is not None:
                self.schema, self.how = schema, f"{self.how}: {words_for(schema)}"

    def decide(self, words: str) -> dict[str, Any]:
        """Return the arguments of ``Brain.resume`` that ``words`` mean.

        Raises:
            BrainUseError: They decide nothing; the run still waits.
        """
        text = words.strip()
        if self.call is None:
            return self.answer(text)
        if _YES.fullmatch(text):
            return {"approve": [self._key]}
        if match := _NO.fullmatch(text):
            return {"deny": {self._key: (match["reason"] or "").strip()}}
        if match := _EDIT.fullmatch(text):
            try:
                return {
                    "edit": {self._key: parse_arguments(match["args"], self.call, self._memory)}
                }
            except BrainUseError as error:
                raise BrainUseError(
                    f"{error}, so the agent still waits. {self.question} {self.how}"
                ) from None
        raise BrainUseError(f"The agent still waits. {self.question} {self.how}")

    def answer(self, given: object) -> dict[str, Any]:
        """Return the arguments of ``Brain.resume`` for an answer to the question.

        Raises:
            BrainUseError: It does not fit the question, which still waits.
        """
        try:
            return {"input": {self._key: read_answer(self.schema, given)}}
        except ValueError as error:
            raise BrainUseError(
                f"That does not fit: {scrub(str(error))}. The agent still waits. {self.question} "
                f"{self.how}"
            ) from None


def request_in(memory: Memory) -> WaitingRequest | None:
    """Return the first thing that the run in ``memory`` waits for, if it waits."""
    pending = pending_in(memory)
    if pending is None or not (pending.calls or pending.questions):
        return None
    return WaitingRequest(pending, memory)
