"""The options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def _above_zero(value: float | None) -> float | None:
    if value is not None and not value > 0:
        raise typer.BadParameter(f"{value:g} is not above 0")
    return value


def _folder(text: str) -> Path:
    if not text.strip():  # an unset variable of a shell, say; Path would make it this folder
        raise typer.BadParameter("the name is empty; this folder is '.'")
    return Path(text)


Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        metavar="NAME",
        help="A model by its LiteLLM name, such as openai/gpt-4.1-mini. Without it: what "
        "AGENT_BRAIN_MODEL names, else the built-in offline demo model.",
        show_default=False,
    ),
]
NetName = Annotated[
    str,
    typer.Option(
        "--net",
        "-n",
        metavar="NAME",
        help="How it thinks: see agent-brain nets.",
    ),
]
_MEMORY_HELP = "How it remembers: messages, windowed, vector, summary, layered, todo."
MemoryName = Annotated[str, typer.Option("--memory", metavar="NAME", help=_MEMORY_HELP)]
MemoryNameOrFile = Annotated[
    str | None,
    typer.Option("--memory", metavar="NAME", help=_MEMORY_HELP, show_default="messages"),
]
Folder = Annotated[
    Path | None,
    typer.Option(
        "--folder",
        metavar="DIR",
        help="Keep the memory in this folder, and go on with what is there.",
        parser=_folder,
        show_default=False,
    ),
]
SessionName = Annotated[
    str | None,
    typer.Option(
        "--session",
        metavar="NAME",
        help="Which conversation in the folder (default if not given).",
        show_default=False,
    ),
]
Tools = Annotated[
    list[str] | None,
    typer.Option(
        "--tool",
        "-t",
        metavar="MODULE:FUNCTION",
        help="What it may call: a function with type hints, or a tool, as module:name or "
        "path/to/file.py:name. May be given more than once.",
        show_default=False,
    ),
]
Servers = Annotated[
    list[str] | None,
    typer.Option(
        "--mcp",
        metavar="URL|SCRIPT|CONFIG.json",
        help="An MCP server whose tools it may use: an address, a server script (.py or .js), or "
        "a JSON file of servers. May be given more than once.",
        show_default=False,
    ),
]
Approve = Annotated[
    list[str] | None,
    typer.Option("--approve", metavar="ID|all", help="A call that may run.", show_default=False),
]
Deny = Annotated[
    list[str] | None,
    typer.Option(
        "--deny",
        metavar="ID[=WHY]|all",
        help="A call that may not run, with the reason, which the model reads.",
        show_default=False,
    ),
]
Edit = Annotated[
    list[str] | None,
    typer.Option(
        "--edit",
        metavar="[ID=]JSON",
        help="Other arguments, with which a call may run.",
        show_default=False,
    ),
]
Input = Annotated[
    list[str] | None,
    typer.Option(
        "--input", metavar="[ID=]TEXT", help="The answer to a question.", show_default=False
    ),
]
MaxSteps = Annotated[
    int | None,
    typer.Option(
        "--max-steps",
        metavar="N",
        help="States to go through at most in a run (100 if not given).",
        callback=_above_zero,
        show_default=False,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="SECONDS",
        help="How long a run may take.",
        callback=_above_zero,
        show_default=False,
    ),
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="DOLLARS",
        help="What a run may cost, as far as the model's price is known.",
        callback=_above_zero,
        show_default=False,
    ),
]
AsJson = Annotated[
    bool,
    typer.Option(
        "--json",
        help="Write every event as one JSON object on one line.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", "-v", help="Show states and usage too."),
]
Debug = Annotated[
    bool,
    typer.Option("--debug", help="Show tracebacks when something goes wrong."),
]
