"""What a run waits for. Private: shared by the server and the command line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agent_brain.errors import BrainUseError
from agent_brain.memories.base import Memory
from agent_brain.tools.action import Action
from agent_brain.tools.errors import ToolArgumentsError


@dataclass(frozen=True, slots=True)
class Pending:
    """The tool calls that wait for approval, and the questions by their IDs."""

    calls: Sequence[Action]
    questions: Mapping[str, str]


def pending_in(memory: Memory) -> Pending | None:
    """Return what the run in ``memory`` waits for; None if it does not wait."""
    control = memory.control
    if control.status != "waiting" or control.asked is None:
        return None
    calls = {action.id: action for action in control.next_actions}
    waiting = [calls.get(key) or Action(name="a tool", id=key) for key in control.asked.approvals]
    return Pending(waiting, dict(control.asked.questions))


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
