"""A person's decisions about a waiting run: typed at a prompt, or given as options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from typing import Any

from agent_brain.cli.exit_codes import UserError, notify, user_errors
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import whole_call
from agent_brain.errors import BrainUseError
from agent_brain.memories import Memory
from agent_brain.serving.pending import Pending, parse_arguments, pending_in, request_in

Read = Callable[[str], str | None]  # the next line after a prompt; None at the end
Decisions = dict[str, dict[str, Any]]
"""The arguments of :meth:`agent_brain.Brain.resume`."""

DECIDE = "yes / no [why] / edit [arguments as JSON] / later> "
ANSWER = "answer, or /later> "


def ask_person(memory: Memory, read: Read) -> Decisions | None:
    """Ask for the first decision that the run waits for; None if the person postpones it."""
    request = request_in(memory)
    if request is None:
        return None
    call = request.call
    asked = f"question  {request.question}" if call is None else f"approve   {whole_call(call)}"
    notify(f"  {asked}", kind="")
    request.how = "Write yes, no, edit or later"
    while (line := read(DECIDE if call else ANSWER)) is not None:
        if re.match(r"(?i)\s*/?later\b" if call else r"(?i)\s*/later\s*$", line):
            return None
        try:
            if call or line.strip():
                return request.decide(line)
        except BrainUseError as error:
            notify(str(error), kind="")
    return None


def read_decisions(options: Options, memory: Memory) -> Decisions:
    """Return the decisions of the options; only ``--approve`` needs the ID of a single call."""
    pending = pending_in(memory) or Pending([], {})
    calls = {action.id: action for action in pending.calls}
    decisions: Decisions = {}
    for kind in ("approve", "deny", "edit", "input"):
        waiting = pending.questions if kind == "input" else calls
        for given in getattr(options, kind):
            if given == "all" and kind in ("approve", "deny") and calls:
                decisions.setdefault(kind, {}).update(dict.fromkeys(calls, ""))
                continue
            name, _, text = (given, "", "") if kind == "approve" else given.partition("=")
            if name not in waiting and len(waiting) == 1 and kind != "approve":
                [name], text = waiting, given
            if name not in waiting:
                known = ", ".join(map(repr, waiting)) or "none"
                raise UserError(f"{given!r} matches nothing that waits. Waiting: {known}")
            value: Any = text
            if kind == "edit":
                with user_errors():
                    value = parse_arguments(text, calls[name], memory)
            decisions.setdefault(kind, {})[name] = value
    return {kind: values for kind, values in decisions.items() if values}


def how_to_answer(memory: Memory, options: Options) -> str:
    """Return how to continue a waiting run, for a person who cannot be asked now."""
    pending = pending_in(memory)
    if pending is None:
        return ""
    lines = []
    for action in pending.calls:
        name = action.id
        lines.append(
            f"{whole_call(action)}: --approve {name}, --deny {name}=WHY or --edit {name}=JSON"
        )
    for question, prompt in pending.questions.items():
        name = f"{question}=" if len(pending.questions) > 1 else ""
        lines.append(f"{prompt} --input {shlex.quote(f'{name}TEXT')}")
    if options.folder is None:
        lines.append("It was not stored. agent-brain chat asks at once; --folder stores it")
    else:
        lines.append("Answer with agent-brain resume, or be asked by agent-brain chat: add the")
        lines.append(
            f"options of this command, such as --folder {shlex.quote(str(options.folder))}"
        )
    return "".join(f"\n  {line}" for line in lines)
