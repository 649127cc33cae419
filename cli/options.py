"""How commands are written: their options here, what they do in a module that is imported later.

A command of click is a function without a body: its docstring is the help, its options are the
arguments of :func:`runs`, and what it runs is named by a text, so that ``agent-brain --help`` and
Tab load nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from importlib import import_module
from inspect import iscoroutine
from pathlib import Path
from typing import Any, TypeAlias

import click

from agent_brain.cli.exit_codes import UserError, exit_on_error
from agent_brain.memories.options import BUILT_IN
from agent_brain.states.models.resolve import RULES

ABOVE_0 = click.FloatRange(0, math.inf, min_open=True, max_open=True)
DEFAULT_MEMORY = "auto"
LOCAL_USER = "local"  # whose the sessions of a server without tokens are, and what is learned
Decorator: TypeAlias = Callable[[Callable[..., Any]], Callable[..., Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user chose, unchecked; None for what was not given."""

    model: str | None = None
    net: str = "react"
    memory: str | None = None
    tools: Sequence[str] = ()
    servers: Sequence[str] = ()
    max_steps: int | None = None
    timeout: float | None = None
    max_cost: float | None = None
    trace: bool = False
    folder: Path | None = None
    session: str | None = None
    journal: str | None = None
    tenant: str | None = None
    approve: Sequence[str] = ()
    deny: Sequence[str] = ()
    edit: Sequence[str] = ()
    input: Sequence[str] = ()
    as_json: bool = False
    verbose: bool = False
    debug: bool = False
    learn: bool = False

    def limits(self) -> dict[str, Any]:
        """Return the limits that were given."""
        names = ("max_steps", "timeout", "max_cost")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def storage(self, memory: str) -> dict[str, Any]:
        """Return the options of ``memory`` that say where it is stored; create the folder."""
        if self.folder is None:
            if self.session is not None:
                raise UserError("--session names a conversation in a folder: give --folder too")
            return {}
        session = "default" if self.session is None else self.session
        try:
            session.encode()
            self.folder.mkdir(parents=True, exist_ok=True)
        except UnicodeEncodeError:
            raise UserError(f"--session {session!r} is not valid UTF-8") from None
        except OSError as error:
            why = f"--folder {str(self.folder)!r} cannot be used: {error.strerror}"
            raise UserError(why) from error
        place: dict[str, Any] = {"session": session}
        if self.learn:
            place["tenant"] = LOCAL_USER
        if memory.casefold() == "vector":
            return {"path": self.folder, **place}
        return {"journal": self.folder / "memory.db", **place}


def window_options(memory: str, model: str, given: Collection[str] = ()) -> dict[str, Any]:
    """Return the option of an ``"auto"`` memory that says how much the model can read.

    Args:
        memory: The name of the memory.
        model: The name of the model.
        given: The names of the options that were chosen.
    """
    chosen = {"max_tokens", "context_window"} & {*given}
    if memory.casefold() != "auto" or model in RULES or chosen:
        return {}
    return {"context_window": model}


def option(names: str, metavar: str | None, text: str, **settings: Any) -> Decorator:
    """Return a click option; a word of ``names`` without dashes is the parameter's name."""
    return click.option(*names.split(), metavar=metavar, help=text, **settings)


def flag(names: str, text: str) -> Decorator:
    """Return an option that is given or not."""
    return option(names, None, text, is_flag=True)


def several(names: str, metavar: str, text: str) -> Decorator:
    """Return an option that can be repeated."""
    return option(names, metavar, text, multiple=True)


def named(names: str, metavar: str, text: str, **settings: Any) -> Decorator:
    """Return an option whose value is a name, which must not be empty."""
    return option(names, metavar, text, callback=check_name, **settings)


def count(names: str, metavar: str, text: str, default: int | None = None) -> Decorator:
    """Return an option whose value is a whole number, at least 1."""
    shown = {} if default is None else {"default": default, "show_default": True}
    return option(names, metavar, text, type=click.IntRange(1), **shown)


def choice(names: str, values: Sequence[str], text: str) -> Decorator:
    """Return an option whose value is one of several texts; the first is the default."""
    settings: dict[str, Any] = {"type": click.Choice(values), "default": values[0]}
    return option(names, None, text, show_default=True, **settings)


def check_name(_: object, __: object, text: str | None) -> str | None:
    """Refuse an empty name; the callback of click options."""
    if text is not None and not text.strip():  # an unset shell variable
        raise click.BadParameter("the name is empty")
    return text


def token(variable: str) -> Decorator:
    """Return the option ``--token``, with its environment variable."""
    text = (
        f"The bearer token that HTTP clients must send. Prefer {variable}: other users of this "
        "computer can read options."
    )
    return option("--token", "TEXT", text, envvar=variable)


def folder(text: str) -> Decorator:
    """Return the option ``--folder``."""

    def as_path(context: object, option: object, given: str | None) -> Path | None:
        name = check_name(context, option, given)
        return None if name is None else Path(name)

    return option("--folder", "DIR", text, callback=as_path)


AGENT = [
    named(
        "--model -m",
        "NAME",
        "A LiteLLM model name, such as openai/gpt-4.1-mini. Default: AGENT_BRAIN_MODEL, otherwise "
        "the built-in offline demo model.",
    ),
    named("--memory", "NAME", f"{', '.join(BUILT_IN)}. Default: {DEFAULT_MEMORY}."),
    several(
        "tools --tool -t",
        "MODULE:FUNCTION",
        "A function with type hints, or a tool object, as module:name or path/to/file.py:name. "
        "Can be repeated.",
    ),
    several(
        "servers --mcp",
        "URL|SCRIPT|CONFIG.json",
        "An MCP server with tools: a URL, a script (.py or .js), or a JSON file of servers. "
        "Can be repeated.",
    ),
    count("--max-steps", "N", "Step limit of a run. Default: 100."),
    option("--timeout", "SECONDS", "Time limit of a run.", type=ABOVE_0),
    option("--max-cost", "DOLLARS", "Cost limit, if the price is known.", type=ABOVE_0),
    flag(
        "--trace",
        "Record what models are sent and return, for agent-brain sessions calls and replay.",
    ),
]
NET = option(
    "--net -n",
    "NAME",
    "The thinking net: a name (see agent-brain nets), a net file, or module:name.",
    default="react",
    show_default=True,
)
STORAGE = [
    folder("Store the memory in this folder, and continue the conversation it holds."),
    named("--session", "NAME", "Which conversation in the folder. Default: 'default'."),
]
JOURNAL = [
    folder("The folder of the other commands: its memory.db (or journal.db of a vector memory)."),
    named(
        "--journal",
        "PLACE",
        "A SQLite file, or the URL of a server such as redis://…. Prefer AGENT_BRAIN_JOURNAL for a "
        "URL with a password: other users of this computer can read options.",
        envvar="AGENT_BRAIN_JOURNAL",
    ),
]
TENANT = named("--tenant", "NAME", "Whose session it is. Default: nobody's.")
LEARN = flag(
    "--learn",
    "Remember facts about the user over all chats, to see and to correct on the chat page and with "
    "agent-brain user. Needs --folder; a model call for some 20 messages that say something new.",
)
DECISIONS = [
    several("--approve", "ID|all", "Approve a tool call."),
    several("--deny", "ID[=WHY]|all", "Deny a tool call; the model reads why."),
    several("--edit", "[ID=]JSON", "Approve a call with other arguments."),
    several("--input", "[ID=]TEXT", "Answer a question."),
]
OUTPUT = [
    flag("as_json --json", "Write each event as a JSON object on a line."),
    flag("--verbose -v", "Show states and usage too."),
]
DEBUG = flag("--debug", "Show tracebacks of errors.")
JSON = flag("as_json --json", "Write JSON, an object on a line.")
YES = flag("confirmed --yes -y", "Do not ask.")
FROM_FILE = click.argument("path", metavar="FILE", type=click.Path(path_type=Path))
TO_FILE = option(
    "--output -o",
    "FILE",
    "Write to this file, which is replaced if it exists. Default: - for stdout.",
    type=click.Path(path_type=Path),
    default="-",
)


PACKAGE = "agent_brain.cli"
argument = click.argument
OPTIONS = {field.name for field in fields(Options)}


def runs(target: str, *options: Decorator) -> Decorator:
    """Give a command these options and ``--debug``, and what it does.

    Errors are reported on stderr, and become exit codes as what the function returns does.

    Args:
        target: ``module:function`` of this package. The function is called with ``options=``, which
            holds what all commands share, and with the other parameters of the command by name. It
            may be async.
        *options: The options and arguments of the command.
    """

    def decorate(command: Callable[..., None]) -> Callable[..., Any]:
        @wraps(command)
        def call(**given: Any) -> None:
            chosen = Options(**{name: given.pop(name) for name in OPTIONS & given.keys()})
            with exit_on_error(debug=chosen.debug):
                code = load(target)(**given, options=chosen)
                if iscoroutine(code):
                    import asyncio

                    code = asyncio.run(code)
            if code:
                raise click.exceptions.Exit(code)

        decorated: Callable[..., Any] = call
        decorated.target = target  # type: ignore[attr-defined]
        for each in (DEBUG, *reversed(options)):
            decorated = each(decorated)
        return decorated

    return decorate


def load(target: str) -> Callable[..., Any]:
    """Return the function that a command names."""
    module, _, name = target.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"{PACKAGE}.{module}"), name)
    return found
