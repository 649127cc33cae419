"""A person's decisions about a waiting run: typed at a prompt, or given as options. Private."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from typing import Any

from agent_brain.cli.exit_codes import UserError, notify, user_errors
from agent_brain.cli.options import DecisionOptions, StoredAgentOptions
from agent_brain.cli.sanitize import call_text
from agent_brain.memories import Memory
from agent_brain.serving.pending import parse_arguments, pending_in
from agent_brain.tools import Action

Read = Callable[[str], str | None]
Decisions = dict[str, dict[str, Any]]
"""The arguments of :meth:`agent_brain.Brain.resume`."""

DECIDE = "yes / no [why] / edit [arguments as JSON] / later> "
ANSWER = "answer, or /later> "
ARGUMENTS = "arguments as JSON> "


def ask_person(memory: Memory, read: Read) -> Decisions | None:
    """Ask for every decision that the run waits for; None if the person postpones it.

    Args:
        memory: The run's memory.
        read: Returns the person's next line after a prompt; None at the end of the input.
    """
    pending = pending_in(memory)
    decisions: Decisions = {}
    for action in pending.calls if pending else ():
        notify(f"  approve   {call_text(action)}", kind="")
        decision = None
        while decision is None:
            line = read(DECIDE)
            try:
                decision = _parse("later" if line is None else line.strip(), action, memory, read)
            except UserError as error:
                notify(str(error), kind="")
        kind, value = decision
        if kind == "later":
            return None
        decisions.setdefault(kind, {})[action.id] = value
    for question, prompt in pending.questions.items() if pending else ():
        notify(f"  question  {prompt}", kind="")
        answer = ""
        while not answer:
            line = read(ANSWER)
            answer = "/later" if line is None else line.strip()
        if answer.lower() == "/later":
            return None
        decisions.setdefault("input", {})[question] = answer
    return decisions


def _parse(line: str, action: Action, memory: Memory, read: Read) -> tuple[str, Any]:
    """Return the kind of the decision and its value."""
    word, _, rest = line.partition(" ")
    match word.lower().rstrip(",:"):
        case "later" | "/later":
            return "later", None
        case "y" | "yes":
            return "approve", True
        case "n" | "no":
            return "deny", rest.strip()
        case "e" | "edit":
            text = rest or read(ARGUMENTS) or ""
        case _ if line.startswith("{"):
            text = line
        case _:
            raise UserError("Write yes, no, edit or later")
    with user_errors():
        return "edit", parse_arguments(text, action, memory)


def read_decisions(options: DecisionOptions, memory: Memory) -> Decisions:
    """Return the decisions that the options state.

    The ID may be omitted where only one call or question waits, except from ``--approve``, where
    nothing else says which call is meant.
    """
    pending = pending_in(memory)
    if pending is None:
        raise UserError("This conversation does not wait for decisions: omit them")
    calls = {action.id: action for action in pending.calls}
    decisions: Decisions = {}
    for kind in ("approve", "deny", "edit", "input"):
        waiting = pending.questions if kind == "input" else calls
        for given in getattr(options, kind):
            if given == "all" and kind in ("approve", "deny"):
                decisions.setdefault(kind, {}).update(dict.fromkeys(calls, ""))
                continue
            name, _, text = (given, "", "") if kind == "approve" else given.partition("=")
            if name not in waiting and len(waiting) == 1 and kind != "approve":
                [name], text = waiting, given
            _require(name, waiting, given)
            value: Any = text
            if kind == "edit":
                with user_errors():
                    value = parse_arguments(text, calls[name], memory)
            decisions.setdefault(kind, {})[name] = value
    return {kind: values for kind, values in decisions.items() if values}


def _require(name: str, waiting: Iterable[str], given: str) -> None:
    if name not in waiting:
        known = ", ".join(map(repr, waiting)) or "none"
        raise UserError(f"{given!r} matches nothing that waits. Waiting: {known}")


def how_to_answer(memory: Memory, agent: StoredAgentOptions) -> str:
    """Return how to continue a waiting run, for a person who cannot be asked now."""
    pending = pending_in(memory)
    if pending is None:
        return ""
    lines = [
        f"{call_text(action)}: --approve {action.id}, --deny {action.id}=WHY or "
        f"--edit {action.id}=JSON"
        for action in pending.calls
    ]
    for question, prompt in pending.questions.items():
        name = f"{question}=" if len(pending.questions) > 1 else ""
        lines.append(f"{prompt} --input {shlex.quote(f'{name}TEXT')}")
    if agent.folder is None:
        lines.append("It was not stored. agent-brain chat asks at once; --folder stores it")
    else:
        arguments = shlex.join(agent.arguments())
        lines.append(f"Answer with: agent-brain resume {arguments} …")
        lines.append(f"or be asked:  agent-brain chat {arguments}")
    return "".join(f"\n  {line}" for line in lines)
