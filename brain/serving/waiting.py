"""A run that waits for a person: what to ask them, and what their words decide."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, Field

from agent_brain.errors import BrainUseError
from agent_brain.memories.base import Memory
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolArgumentsError
from agent_brain.tools.text import shorten, to_compact_json

ARGUMENTS = 1000  # tokens of a call's arguments that a person is shown

_YES = re.compile(r"(?i)(y|yes|ok|okay|approve|approved)[.!]?")
_NO = re.compile(r"(?i)(?:n|no|deny|denied|reject)(?:[\s.,:;!]+(?P<reason>.*))?", re.DOTALL)
_EDIT = re.compile(r"(?i)(?:edit[\s:]*)?(?P<args>\{.*\})", re.DOTALL)


class Approval(BaseModel):
    """What a client is asked about a call."""

    decision: Literal["yes", "no", "edit"] = Field(description="Whether the call may run.")
    reason: str = Field("", description="With no: why not.")
    arguments: str = Field("", description="With edit: the other arguments, as a JSON object.")

    def words(self) -> str:
        """The same as a person would write it."""
        return f"{self.decision} {self.arguments if self.decision == 'edit' else self.reason}"


class Reply(BaseModel):
    """What a client is asked by the agent."""

    answer: str = Field(description="The answer.", min_length=1)

    def words(self) -> str:
        """The answer."""
        return self.answer


@dataclass(frozen=True, slots=True)
class Waiting:
    """The first of the things that a run waits for.

    Attributes:
        call: The call that waits for approval; None if a question waits.
        key: The id of the call, or of the question.
        prompt: The question.
        tool: What the call calls, if it is known.
    """

    call: Action | None
    key: str
    prompt: str = ""
    tool: BaseTool | None = None

    @property
    def form(self) -> type[Approval] | type[Reply]:
        """What a client that has forms is shown."""
        return Reply if self.call is None else Approval

    @property
    def question(self) -> str:
        """What the person is asked."""
        if self.call is None:
            return self.prompt
        arguments = shorten(to_compact_json(self.call.args), ARGUMENTS)
        return f"May the agent call {self.call.name} with {arguments}?"

    @property
    def how(self) -> str:
        """How to answer in words."""
        if self.call is None:
            return "Answer it with your next call"
        return (
            "Answer with your next call: 'yes', 'no' and why not, or 'edit' and the other "
            "arguments as a JSON object"
        )

    def read(self, words: str) -> dict[str, Any]:
        """The arguments of ``Brain.resume`` that ``words`` mean.

        Raises:
            BrainUseError: They decide nothing; the run goes on waiting.
        """
        text = words.strip()
        if self.call is None:
            return {"input": {self.key: text}}
        if _YES.fullmatch(text):
            return {"approve": [self.key]}
        if match := _NO.fullmatch(text):
            return {"deny": {self.key: (match["reason"] or "").strip()}}
        if match := _EDIT.fullmatch(text):
            return {"edit": {self.key: _arguments(match["args"], self)}}
        raise BrainUseError(f"The agent still waits. {self.question} {self.how}")


def waiting_in(memory: Memory) -> Waiting | None:
    """What the run in ``memory`` waits for first; None if it waits for nobody."""
    control = memory.control
    asked = control.human_requests
    if control.status != "waiting" or asked is None:
        return None
    calls = {action.id: action for action in control.next_actions}
    for key in asked.approvals:
        call = calls.get(key) or Action(name="a tool", id=key)
        return Waiting(call, key, tool=memory.get_tool(call.name))
    for key, prompt in asked.questions.items():
        return Waiting(None, key, prompt)
    return None


def _arguments(text: str, waiting: Waiting) -> dict[str, Any]:
    try:
        args = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BrainUseError(
            f"The other arguments are not JSON ({error}), so the agent still waits. "
            f"{waiting.question} {waiting.how}"
        ) from None
    assert isinstance(args, dict)
    try:
        if waiting.tool is not None:
            waiting.tool.validate(args)
    except ToolArgumentsError as error:
        raise BrainUseError(
            f"{error}, so the agent still waits. {waiting.question} {waiting.how}"
        ) from None
    return args
