"""The commands and their options; what they do is in the modules that they name."""

from __future__ import annotations

from pathlib import Path

import click

from agent_brain.cli.options import (
    AGENT,
    DECISIONS,
    FROM_FILE,
    LEARN,
    NET,
    OUTPUT,
    STORAGE,
    argument,
    choice,
    count,
    flag,
    folder,
    option,
    runs,
    several,
    token,
)
from agent_brain.cli.sessions.commands import sessions
from agent_brain.cli.user.commands import user

QUESTION = argument("question", nargs=-1, required=True, metavar="QUESTION…")


@click.group(
    epilog="Start with: agent-brain demo",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(package_name="agent-brain", message="agent-brain %(version)s")
def app() -> None:
    """LLM agents as finite state machines."""


@app.command()
@runs("asking:demo", argument("question", nargs=-1))
def demo() -> None:
    """Watch an agent think, call tools and answer: offline, without a key."""


@app.command()
@runs("asking:ask", NET, *AGENT, *STORAGE, *OUTPUT, QUESTION)
def ask() -> None:
    """Ask one question: words, or - for what is on stdin.

    On a terminal everything is shown as it happens. In a pipe, stdout gets the answer alone and
    stderr the steps that led to it.

    Exit codes: 0 answered, 1 failed, 2 wrong usage, 3 stopped by a limit, stuck or waiting for a
    person, 130 cancelled by Ctrl-C or SIGTERM: with --folder, resume continues the run.
    """


@app.command()
@runs("asking:run", *AGENT, *STORAGE, *OUTPUT, argument("net", metavar="FILE"), QUESTION)
def run() -> None:
    """Ask the agent that a file describes (see agent-brain nets schema).

    FILE is a net in a .toml or .yaml file. The options given here override it. Exit codes are those
    of ask.
    """


@app.command()
@runs("asking:resume", *DECISIONS, NET, *AGENT, *STORAGE, LEARN, *OUTPUT)
def resume() -> None:
    """Continue a stored run that waits for a decision or was interrupted.

    On a terminal, it asks for the decisions. Exit codes are those of ask.
    """


@app.command()
@runs("asking:chat", NET, *AGENT, *STORAGE, LEARN, *OUTPUT)
def chat() -> None:
    """Talk with an agent that remembers the conversation.

    Ctrl-C stops an answer, /exit or Ctrl-D ends the chat. Limits apply to each question. With piped
    input every line is a question, or the answer to what the agent asks.
    """


@app.command()
@runs(
    "serve:serve_mcp",
    option(
        "--http",
        "[HOST:]PORT",
        "Serve over HTTP instead of stdin and stdout; other computers need --token.",
    ),
    token("AGENT_BRAIN_MCP_TOKEN"),
    *AGENT,
    argument("net", default="react"),
)
def mcp() -> None:
    """Serve an agent over MCP: other programs call its tool, ask.

    NET is a name, a .toml or .yaml file, or module:name. Each client has a conversation of its own.
    """


@app.command()
@runs(
    "serve:serve_web",
    option(
        "--http",
        "[HOST:]PORT",
        "Where to listen. Other computers need a token.",
        default="127.0.0.1:8000",
        show_default=True,
    ),
    token("AGENT_BRAIN_TOKEN"),
    option(
        "--users",
        "FILE",
        "A JSON file of users by their tokens, each with sessions of their own.",
        type=click.Path(path_type=Path),
    ),
    several(
        "--host hosts",
        "NAME",
        "A name of the server that requests may have, such as chat.example.org; repeatable. "
        "Without tokens, localhost is one.",
    ),
    several(
        "--origin origins",
        "URL",
        "The address of the chat page in browsers where a proxy sends another Host, or of other "
        "pages that may send requests; repeatable.",
    ),
    several(
        "--trust-proxy proxies",
        "ADDRESS",
        "A proxy in front of the server, whose X-Forwarded-For says who asks; repeatable.",
    ),
    count("--rate", "N", "Requests of one client per minute.", 600),
    count("--at-once", "N", "Requests in progress, streams included.", 2000),
    count("--max-body", "BYTES", "The size of a request.", 5_000_000),
    flag("--show-tools", "Show tool calls to clients of the OpenAI, AG-UI and AI SDK endpoints."),
    LEARN,
    option(
        "--queue",
        "MODULE:QUEUE",
        "Let the workers of this RunQueue do the runs; NET is then the name of one of its brains.",
    ),
    *AGENT,
    STORAGE[0],
    argument("net", default="react"),
)
def serve() -> None:
    """Serve an agent over HTTP: a chat page, event streams and OpenAI-compatible endpoints.

    NET is a name, a .toml or .yaml file, or module:name. Needs the extra server. SIGTERM and Ctrl-C
    end the runs after their current steps.
    """


@app.command()
@runs("serve:work", argument("queue", metavar="MODULE:QUEUE"))
def worker() -> None:
    """Do the runs of a queue, beside any number of other workers.

    MODULE:QUEUE names a RunQueue, as in app:queue or path/to/app.py:queue. Ctrl-C and SIGTERM stop
    it: runs end their step, and other workers continue them.
    """


@app.command()
@runs(
    "compare.comparing:compare_file",
    folder("Where the results are kept. Default: beside FILE, its name with -results."),
    flag("--plan", "Show what would be done and what it may cost; do it not."),
    several(
        "--only",
        "CELL",
        "Do these cells only, such as react/vector or '*/vector'. Can be repeated.",
    ),
    flag("--fresh", "Do again what is kept already."),
    several(
        "--again",
        "OUTCOME",
        "Do again the kept cases that ended so, such as rate-limited. Can be repeated.",
    ),
    several(
        "--fail-under",
        "[CELL=]RATE",
        "Exit with 1 if fewer cases passed, such as react/vector=0.8. Can be repeated.",
    ),
    flag("as_json --json", "Write the figures as JSON."),
    flag("--quiet -q", "Show no progress."),
    FROM_FILE,
)
def compare() -> None:
    """Compare nets, memories and models on your tasks, as a TOML file says.

    Every case that ends is kept in the folder: after Ctrl-C or a crash, the same command continues.
    The table and the conclusions go to stdout, report.md and report.html into the folder.

    Exit codes: 0 done, 1 below --fail-under or failed, 2 wrong usage, 3 stopped by a budget, 130
    cancelled.
    """


@app.group(invoke_without_command=True)
@runs(
    "nets:list_nets",
    option("--draw", "NAME", "Write this net as a diagram."),
    choice("--format language", ["mermaid", "dot", "svg"], "The diagram's format."),
)
def nets() -> None:
    """List the nets, or draw one."""


@nets.command()
@runs("nets:check", argument("net"))
def check() -> None:
    """Report every problem of NET: a name, a file, or an object in a module (module:name).

    Exit codes: 0 no problems, 1 problems, 2 there is no such net.
    """


@nets.command()
@runs("nets:schema")
def schema() -> None:
    """Write the JSON Schema of net files."""


app.add_command(sessions)
app.add_command(user)
