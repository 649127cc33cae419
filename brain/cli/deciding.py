"""What a person decides about a run that waits: asked line by line, or given as options."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agent_brain.cli.agents import AgentOptions
from agent_brain.cli.exits import UserError, tell
from agent_brain.cli.texts import call_text
from agent_brain.memories import Memory
from agent_brain.memories.control import HumanRequests
from agent_brain.tools import Action, ToolArgumentsError

Read = Callable[[str], str | None]

DECIDE = "yes / no [why] / edit [arguments as JSON] / later> "
ANSWER = "answer, or /later> "
ARGUMENTS = "arguments as JSON> "
LATER = "/later"
EVERY = "all"


@dataclass(slots=True)
class Decisions:
    """The arguments of :meth:`agent_brain.Brain.resume`."""

    approve: list[str] = field(default_factory=list)
    deny: dict[str, str] = field(default_factory=dict)
    edit: dict[str, dict[str, Any]] = field(default_factory=dict)
    input: dict[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """Those that are given, by name."""
        values = (self.approve, self.deny, self.edit, self.input)
        names = ("approve", "deny", "edit", "input")
        return {name: value for name, value in zip(names, values, strict=True) if value}


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a run waits for: calls to be approved, and questions by their ids."""

    calls: Sequence[Action]
    questions: dict[str, str]

    @classmethod
    def of(cls, memory: Memory) -> Waiting | None:
        """What the run in ``memory`` waits for, if it waits."""
        control = memory.control
        if control.status != "waiting":
            return None
        asked = control.human_requests or HumanRequests()
        calls = [action for action in control.next_actions if action.id in asked.approvals]
        return cls(calls, dict(asked.questions))


def ask_person(memory: Memory, read: Read) -> Decisions | None:
    """Ask for every decision that the run waits for; None if the person puts it off.

    Args:
        memory: The run's memory.
        read: Gives the person's next line after a prompt; None at the end of the input.
    """
    waiting = Waiting.of(memory)
    decisions = Decisions()
    for action in waiting.calls if waiting else ():
        tell(f"  approve   {call_text(action)}", kind="")
        if not _decide(action, memory, read, decisions):
            return None
    for question, prompt in waiting.questions.items() if waiting else ():
        tell(f"  question  {prompt}", kind="")
        answer = ""
        while not answer:
            answer = (read(ANSWER) or LATER).strip()
        if answer.lower() == LATER:
            return None
        decisions.input[question] = answer
    return decisions


def _decide(action: Action, memory: Memory, read: Read, decisions: Decisions) -> bool:
    """Take one decision; False for later."""
    while True:
        line = read(DECIDE)
        word, _, rest = ("later" if line is None else line).strip().partition(" ")
        match word.lower().rstrip(",:"):
            case "later" | "/later":
                return False
            case "y" | "yes":
                decisions.approve.append(action.id)
                return True
            case "n" | "no":
                decisions.deny[action.id] = rest.strip()
                return True
            case "e" | "edit":
                text = rest or read(ARGUMENTS) or ""
            case _ if word.startswith("{"):
                text = line or ""
            case _:
                tell("Write yes, no, edit or later", kind="")
                continue
        try:
            decisions.edit[action.id] = _arguments(text, action, memory)
        except UserError as error:
            tell(str(error), kind="")
            continue
        return True


def _arguments(text: str, action: Action, memory: Memory) -> dict[str, Any]:
    try:
        args = json.loads(text)
    except ValueError as error:
        raise UserError(f"The arguments of {action.name} are not JSON: {error}") from None
    if not isinstance(args, dict):
        raise UserError(f"The arguments of {action.name} are not a JSON object: {text.strip()}")
    tool = memory.get_tool(action.name)
    try:
        if tool is not None:
            tool.validate(args)
    except ToolArgumentsError as error:
        raise UserError(str(error)) from None
    return args


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenDecisions:
    """What the user typed as options: ``ID``, ``ID=WHY``, ``ID=JSON``, ``ID=TEXT``, or ``all``.

    The id may be left out where only one call or question waits, except from ``--approve``: there
    nothing would be left to say which call is meant.
    """

    approve: Sequence[str] = ()
    deny: Sequence[str] = ()
    edit: Sequence[str] = ()
    input: Sequence[str] = ()

    def __bool__(self) -> bool:
        return bool(self.approve or self.deny or self.edit or self.input)

    def read(self, memory: Memory) -> Decisions:
        """The decisions that they mean.

        Raises:
            UserError: They do not fit what the run waits for.
        """
        waiting = Waiting.of(memory)
        if waiting is None:
            raise UserError("This conversation waits for nobody: leave out the decisions")
        calls = {action.id: action for action in waiting.calls}
        decisions = Decisions()
        for given in self.approve:
            decisions.approve += list(calls) if given == EVERY else [_waits(given, calls)]
        for given in self.deny:
            name, why = _named(given, calls) if given != EVERY else ("", "")
            decisions.deny |= {name: why} if name else dict.fromkeys(calls, "")
        for given in self.edit:
            name, text = _named(given, calls)
            decisions.edit[name] = _arguments(text, calls[name], memory)
        for given in self.input:
            name, text = _named(given, waiting.questions)
            decisions.input[name] = text
        return decisions


def _named(given: str, waiting: Any) -> tuple[str, str]:
    """The id and the text of ``ID=TEXT``, of ``ID``, or of a text for the only one that waits."""
    name, _, text = given.partition("=")
    if name not in waiting and len(waiting) == 1:
        return next(iter(waiting)), given
    return _waits(name, waiting, given), text


def _waits(name: str, waiting: Any, given: str | None = None) -> str:
    """``name``, if it is the id of something that waits."""
    if name in waiting:
        return name
    known = ", ".join(map(repr, waiting)) or "none"
    raise UserError(f"{given or name!r} names nothing that waits. Waiting: {known}")


def how_to_answer(memory: Memory, options: AgentOptions) -> str:
    """How a run that waits is gone on with, for whoever cannot be asked now."""
    waiting = Waiting.of(memory)
    if waiting is None:
        return ""
    lines = []
    for action in waiting.calls:
        ways = f"--approve {action.id}, --deny {action.id}=WHY or --edit {action.id}=JSON"
        lines.append(f"{call_text(action)}: {ways}")
    for question, prompt in waiting.questions.items():
        name = f"{question}=" if len(waiting.questions) > 1 else ""
        lines.append(f"{prompt} --input {shlex.quote(f'{name}TEXT')}")
    if options.folder is None:
        lines.append("It was not kept. agent-brain chat asks at once; --folder keeps it for later")
    else:
        lines.append(f"Answer with: agent-brain resume {shlex.join(options.words())} …")
        lines.append(f"or be asked:  agent-brain chat {shlex.join(options.words())}")
    return "".join(f"\n  {line}" for line in lines)
