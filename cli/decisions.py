"""A person's decisions about a waiting run: typed at a prompt, or given as options."""

from __future__ import annotations

import re
import shlex
from typing import Any, Protocol

from agent_brain.cli.exit_codes import UserError, notify, user_errors
from agent_brain.cli.keyboard import discard_typed
from agent_brain.cli.options import Options
from agent_brain.cli.sanitize import sanitize, whole_call
from agent_brain.errors import BrainUseError
from agent_brain.memories import Memory
from agent_brain.serving.pending import (
    Pending,
    WaitingRequest,
    parse_arguments,
    pending_in,
    request_in,
)
from agent_brain.tools.answers import Field, fields_of, plain_schema, read_answer, words_for


class Read(Protocol):
    """Reads lines that a person types."""

    def __call__(self, prompt: str, *, hidden: bool = False) -> str | None:
        """Return the next line, not shown if it is ``hidden``; None at the end."""


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
    if request.schema is not None:
        notify(f"  question  {request.question}", kind="")
        return _ask_typed(request, request.schema, read)
    asked = f"question  {request.question}" if call is None else f"approve   {whole_call(call)}"
    if call is not None:
        discard_typed()  # an approval is of what is shown
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


class _PostponedError(Exception):
    """Raised where the person postpones the answer."""


def _ask_typed(request: WaitingRequest, schema: dict[str, Any], read: Read) -> Decisions | None:
    """Ask for an answer of a type, a form field by field; None if the person postpones it."""
    fields = fields_of(schema)
    while True:
        try:
            answer = (
                _read_value(schema, "answer", read) if fields is None else _read_form(fields, read)
            )
            return request.answer(answer)
        except _PostponedError:
            return None
        except BrainUseError as error:
            notify(str(error), kind="")


def _read_form(fields: list[Field], read: Read, form: str = "") -> dict[str, Any]:
    """Read a form field by field; the names of the fields of a form in it begin with its name."""
    answer: dict[str, Any] = {}
    for field in fields:
        label = f"{form}{field.label}"
        inner = fields_of(field.schema) if field.required else None
        if inner is not None and not plain_schema(field.schema)[1]:
            answer[field.name] = _read_form(inner, read, f"{label}: ")
            continue
        value = _read_value(field.schema, label, read, optional=not field.required)
        if value is not None or field.required:
            answer[field.name] = value
    return answer


def _read_value(schema: dict[str, Any], name: str, read: Read, *, optional: bool = False) -> Any:
    """Read lines until one fits; an empty one leaves out what is optional."""
    kind = words_for(schema)
    kind = f"{kind.removesuffix(', or nothing')}, optional" if optional else kind
    prompt = f"{sanitize(name)} ({sanitize(kind)}), or /later> "
    hidden = plain_schema(schema)[0].get("format") == "password"
    while (line := read(prompt, hidden=hidden)) is not None:
        if re.fullmatch(r"(?i)\s*/later\s*", line):
            break
        text = line.rstrip("\n")
        if optional and not text.strip():
            return None
        try:
            return read_answer(schema, text)
        except ValueError as error:
            notify(f"That does not fit: {error}", kind="")
    raise _PostponedError


def read_decisions(options: Options, memory: Memory) -> Decisions:
    """Return the decisions of the options; only ``--approve`` needs the ID of a single call."""
    pending = pending_in(memory) or Pending([], {}, {})
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
        schema = pending.schemas.get(question)
        kind = "" if schema is None else f" ({words_for(schema)})"
        lines.append(f"{prompt}{kind} --input {shlex.quote(f'{name}TEXT')}")
    if options.folder is None:
        lines.append("It was not stored. agent-brain chat asks at once; --folder stores it")
    else:
        lines.append("Answer with agent-brain resume, or be asked by agent-brain chat: add the")
        lines.append(
            f"options of this command, such as --folder {shlex.quote(str(options.folder))}"
        )
    return "".join(f"\n  {line}" for line in lines)
