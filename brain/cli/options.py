"""The options of the commands, each defined once. Private."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from agent_brain.cli.exit_codes import ExitCode, UserError, describe_os_error, exit_on_error


def _positive(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not greater than 0")
    return value


def _folder(text: str) -> Path:
    if not text.strip():  # an unset shell variable, for example; Path would make it "."
        raise typer.BadParameter("the name is empty; the current folder is '.'")
    return Path(text)


def option(names: str, metavar: str | None, text: str, **settings: Any) -> Any:
    """Return a typer option with a help text; its default is not shown."""
    settings = {"show_default": False, **settings}
    return typer.Option(*names.split(), metavar=metavar, help=text, **settings)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """An agent as the user described it, unchecked; None for what was not given."""

    model: Annotated[
        str | None,
        option(
            "--model -m",
            "NAME",
            "A LiteLLM model name, such as openai/gpt-4.1-mini. Default: AGENT_BRAIN_MODEL, "
            "otherwise the built-in offline demo model.",
        ),
    ] = None
    net: Annotated[
        str,
        option(
            "--net -n",
            "NAME",
            "The thinking net: a name (see agent-brain nets), a net file, or module:name.",
            show_default=True,
        ),
    ] = "react"
    memory: Annotated[
        str | None,
        option(
            "--memory",
            "NAME",
            "The memory: messages, windowed, vector, summary, layered or todo.",
            show_default="messages",
        ),
    ] = None
    tools: Annotated[
        list[str],
        option(
            "--tool -t",
            "MODULE:FUNCTION",
            "A tool: a function with type hints, or a tool object, as module:name or "
            "path/to/file.py:name. Can be repeated.",
        ),
    ] = field(default_factory=list)
    servers: Annotated[
        list[str],
        option(
            "--mcp",
            "URL|SCRIPT|CONFIG.json",
            "An MCP server with tools: a URL, a script (.py or .js), or a JSON file of servers. "
            "Can be repeated.",
        ),
    ] = field(default_factory=list)
    max_steps: Annotated[
        int | None,
        option("--max-steps", "N", "Step limit of a run. Default: 100.", callback=_positive),
    ] = None
    timeout: Annotated[
        float | None,
        option("--timeout", "SECONDS", "Time limit of a run.", callback=_positive),
    ] = None
    max_cost: Annotated[
        float | None,
        option(
            "--max-cost",
            "DOLLARS",
            "Cost limit of a run, for models whose price is known.",
            callback=_positive,
        ),
    ] = None

    def limits(self) -> dict[str, Any]:
        """Return the limits that were given."""
        names = ("max_steps", "timeout", "max_cost")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def storage(self, memory: str) -> dict[str, Any]:
        """Return the options of ``memory`` that say where it is stored: none, as it is not."""
        return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAgentOptions(AgentOptions):
    """An agent whose memory may be stored in a folder."""

    folder: Annotated[
        Path | None,
        option(
            "--folder",
            "DIR",
            "Store the memory in this folder, and continue the conversation it holds.",
            parser=_folder,
        ),
    ] = None
    session: Annotated[
        str | None,
        option("--session", "NAME", "Which conversation in the folder. Default: 'default'."),
    ] = None

    def storage(self, memory: str) -> dict[str, Any]:
        """Return the options of ``memory`` that say where it is stored; create the folder."""
        if self.folder is None:
            if self.session is not None:
                raise UserError("--session names a conversation in a folder: give --folder too")
            return {}
        session = self.session or "default"
        try:
            session.encode()
        except UnicodeEncodeError:
            raise UserError(f"--session {session!r} is not valid UTF-8") from None
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            why = describe_os_error(error) or str(error)
            raise UserError(f"--folder {str(self.folder)!r} cannot be used: {why}") from error
        if memory.casefold() == "vector":
            return {"path": self.folder, "session": session}
        return {"journal": self.folder / "memory.db", "session": session}

    def arguments(self) -> list[str]:
        """Return the command-line arguments that select the same agent and conversation."""
        given = [
            ("--model", self.model),
            ("--net", self.net if self.net != "react" else None),
            ("--memory", self.memory),
            ("--folder", self.folder),
            ("--session", self.session),
            *(("--tool", tool) for tool in self.tools),
            *(("--mcp", server) for server in self.servers),
        ]
        return [str(word) for name, value in given if value for word in (name, value)]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionOptions:
    """A person's decisions about a waiting run: ``ID``, ``ID=TEXT``, ``TEXT``, or ``all``."""

    approve: Annotated[list[str], option("--approve", "ID|all", "Approve a tool call.")] = field(
        default_factory=list
    )
    deny: Annotated[
        list[str], option("--deny", "ID[=WHY]|all", "Deny a tool call; the model reads the reason.")
    ] = field(default_factory=list)
    edit: Annotated[
        list[str], option("--edit", "[ID=]JSON", "Approve a tool call with other arguments.")
    ] = field(default_factory=list)
    input: Annotated[list[str], option("--input", "[ID=]TEXT", "Answer a question.")] = field(
        default_factory=list
    )

    def __bool__(self) -> bool:
        return bool(self.approve or self.deny or self.edit or self.input)


Debug = Annotated[bool, option("--debug", None, "Show tracebacks of errors.")]


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """What is shown of a run."""

    as_json: Annotated[
        bool, option("--json", None, "Write each event as a JSON object on a line of its own.")
    ] = False
    verbose: Annotated[bool, option("--verbose -v", None, "Show states and usage too.")] = False
    debug: Debug = False


def with_options(command: Callable[..., ExitCode | None]) -> Callable[..., None]:
    """Return ``command`` in the form that typer registers.

    A parameter that is a dataclass becomes one option for each field, except for fields that
    ``command`` also declares as parameters. Every command has ``--debug``. Errors are reported on
    stderr and become exit codes.
    """
    hints = get_type_hints(command, include_extras=True)
    own = inspect.signature(command).parameters
    groups = {name: hints[name] for name in own if is_dataclass(hints[name])}
    keyword = inspect.Parameter.KEYWORD_ONLY
    seen = {
        name: p.replace(annotation=hints[name]) for name, p in own.items() if name not in groups
    }
    for kind in groups.values():
        types = get_type_hints(kind, include_extras=True)
        for each in fields(kind):
            name = each.name
            default = [] if each.default is MISSING else each.default
            new = inspect.Parameter(name, keyword, default=default, annotation=types[name])
            seen.setdefault(name, new)
    seen.setdefault("debug", inspect.Parameter("debug", keyword, default=False, annotation=Debug))

    def call(**given: Any) -> None:
        with exit_on_error(debug=given["debug"]):
            arguments = {name: given[name] for name in own if name not in groups}
            for name, kind in groups.items():
                arguments[name] = kind(**{each.name: given[each.name] for each in fields(kind)})
            code = command(**arguments)
        if code:
            raise typer.Exit(code)

    call.__name__, call.__doc__ = command.__name__, command.__doc__
    call.__signature__ = inspect.Signature([*seen.values()])  # type: ignore[attr-defined]
    call.__annotations__ = {name: each.annotation for name, each in seen.items()}
    return call
