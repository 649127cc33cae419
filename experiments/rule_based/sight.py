"""What the rule-based model is shown in one call, taken apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agent_brain.experiments.rule_based.facts import Facts, entries_in, facts_in, in_order, key
from agent_brain.experiments.rule_based.requests import Request, recognise
from agent_brain.memories.message import Message, Role
from agent_brain.tools.action import Action
from agent_brain.tools.base import BaseTool

_PASSING = ("closing", "correction", "recalled", "hint")
_GOAL = "Goal: "


@dataclass(frozen=True)
class Sight:
    """What one call shows.

    Attributes:
        messages: The messages.
        tools: The tools that are offered.
        output_type: The shape of the output, if one is asked for.
    """

    messages: Sequence[Message]
    tools: Sequence[BaseTool] = ()
    output_type: Any = None

    @cached_property
    def system(self) -> str:
        """The text of all system messages."""
        return "\n\n".join(m.content for m in self.messages if m.role is Role.SYSTEM)

    @cached_property
    def _requests(self) -> list[tuple[Message, Request | None]]:
        return [(m, recognise(m.content)) for m in self.messages if m.role is Role.USER]

    @cached_property
    def request(self) -> Request | None:
        """What a state asks for in the last message that says something; None if a user speaks."""
        for message, request in reversed(self._requests):
            if request is None or request.kind not in _PASSING:
                return request if message is self._last_said else None
        return None

    @cached_property
    def _last_said(self) -> Message | None:
        """The last message that is not a closing, a correction or the answer to be corrected."""
        passing = {id(m) for m, r in self._requests if r is not None and r.kind in _PASSING}
        for message in reversed(self.messages):
            if message.role is Role.TOOL or (
                message.role is Role.USER and id(message) not in passing
            ):
                return message
        return None

    @cached_property
    def goal(self) -> str:
        """What the user said last."""
        said = [message.content for message, request in self._requests if request is None]
        return said[-1] if said else ""

    @cached_property
    def question(self) -> str:
        """What is to be answered: the step of a plan, or the goal."""
        if _GOAL not in self.system:
            for _, request in reversed(self._requests):
                if request is None:
                    break
                if request.kind in ("plan", "plan again"):
                    break
                if request.kind == "step":
                    return request.fields["task"]
        return self.goal

    @cached_property
    def results(self) -> list[tuple[Action, Message]]:
        """The calls and their results since the user spoke last."""
        made: dict[str, Action] = {}
        found: list[tuple[Action, Message]] = []
        for message in self.messages:
            made |= {call.id: call for call in message.tool_calls}
            if message.role is Role.USER and message.content == self.goal:
                found = []
            elif message.role is Role.TOOL and message.tool_call_id in made:
                found.append((made[message.tool_call_id], message))
        return found

    @cached_property
    def said(self) -> list[str]:
        """What users say, now and in what is recalled."""
        return [
            m.content if r is None else in_order(m.content)
            for m, r in self._requests
            if r is None or r.kind == "recalled"
        ]

    @cached_property
    def facts(self) -> Facts:
        """Everything that the system prompt, users and tools state; what came last counts."""
        told = [self.system]
        told += self.said
        found = facts_in(told)
        made: dict[str, Action] = {}
        for message in self.messages:
            made |= {call.id: call for call in message.tool_calls}
            if message.role is Role.TOOL and not message.is_error and message.tool_call_id in made:
                found |= _told_by(made[message.tool_call_id], message.content)
        return found


def _told_by(call: Action, result: str) -> Facts:
    """Return what the result of a call states."""
    told = facts_in([result])
    texts = [value for value in call.args.values() if isinstance(value, str)]
    if len(texts) == 1:
        told |= {key([name, texts[0]]): value for name, value in entries_in(result).items()}
    return told
