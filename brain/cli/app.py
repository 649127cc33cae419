"""What a user can type. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

from typing import Annotated

import typer

from agent_brain.cli import options
from agent_brain.cli.exits import ExitCode, reported
from agent_brain.cli.mcp import mcp as serve_mcp
from agent_brain.cli.nets_app import nets_app

app = typer.Typer(
    name="agent-brain",
    help="LLM agents as finite state machines.",
    epilog="Start with: agent-brain demo",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(nets_app, name="nets")
app.command(name="mcp")(serve_mcp)


def _version(wanted: bool) -> None:  # noqa: FBT001 - as typer calls it
    if wanted:
        from importlib.metadata import version

        typer.echo(f"agent-brain {version('agent-brain')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version.", callback=_version, is_eager=True),
    ] = False,
) -> None:
    pass


@app.command()
def demo(
    *,
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="Words of your own.", show_default=False),
    ] = None,
    debug: options.Debug = False,
) -> None:
    """Watch an agent think, call tools and answer: offline, no key needed."""
    with reported(debug=debug):
        from agent_brain.cli.showing import QUESTIONS
        from agent_brain.cli.showing import demo as show

        code = show([" ".join(question)] if question else QUESTIONS)
    _leave(code)


@app.command()
def ask(
    *,
    question: Annotated[
        list[str],
        typer.Argument(metavar="QUESTION", help="The words; - reads them from stdin."),
    ],
    model: options.Model = None,
    net: options.NetName = "react",
    memory: options.MemoryName = "messages",
    folder: options.Folder = None,
    session: options.SessionName = None,
    tool: options.Tools = None,
    mcp: options.Servers = None,
    max_steps: options.MaxSteps = None,
    timeout: options.Timeout = None,
    max_cost: options.MaxCost = None,
    as_json: options.AsJson = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Ask one question.

    On a terminal everything is shown as it comes. In a pipe stdout gets the answer alone, and
    stderr how it was found.

    Exit codes: 0 answered, 1 failed, 2 wrong usage, 3 stopped by a limit, stuck or waiting for a
    person, 130 cancelled.
    """
    with reported(debug=debug):
        from agent_brain.cli.agents import AgentOptions
        from agent_brain.cli.asking import ask as run
        from agent_brain.cli.printers import OutputOptions

        agent = AgentOptions(
            model=model,
            net=net,
            memory=memory,
            folder=folder,
            session=session,
            tools=tuple(tool or ()),
            servers=tuple(mcp or ()),
            max_steps=max_steps,
            timeout=timeout,
            max_cost=max_cost,
        )
        output = OutputOptions(as_json=as_json, verbose=verbose, debug=debug)
        code = run(question, agent, output)
    _leave(code)


@app.command()
def resume(
    *,
    approve: options.Approve = None,
    deny: options.Deny = None,
    edit: options.Edit = None,
    text: options.Input = None,
    model: options.Model = None,
    net: options.NetName = "react",
    memory: options.MemoryName = "messages",
    folder: options.Folder = None,
    session: options.SessionName = None,
    tool: options.Tools = None,
    mcp: options.Servers = None,
    max_steps: options.MaxSteps = None,
    timeout: options.Timeout = None,
    max_cost: options.MaxCost = None,
    as_json: options.AsJson = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Go on with a run in a folder: one that waits for a decision, or was cut off.

    At a terminal the decisions are asked for. Exit codes are those of ask.
    """
    with reported(debug=debug):
        from agent_brain.cli.agents import AgentOptions
        from agent_brain.cli.asking import resume as run
        from agent_brain.cli.deciding import GivenDecisions
        from agent_brain.cli.printers import OutputOptions

        given = GivenDecisions(
            approve=tuple(approve or ()),
            deny=tuple(deny or ()),
            edit=tuple(edit or ()),
            input=tuple(text or ()),
        )
        agent = AgentOptions(
            model=model,
            net=net,
            memory=memory,
            folder=folder,
            session=session,
            tools=tuple(tool or ()),
            servers=tuple(mcp or ()),
            max_steps=max_steps,
            timeout=timeout,
            max_cost=max_cost,
        )
        code = run(given, agent, OutputOptions(as_json=as_json, verbose=verbose, debug=debug))
    _leave(code)


@app.command()
def run(
    *,
    file: Annotated[str, typer.Argument(metavar="FILE", help="A net in a .toml or .yaml file.")],
    question: Annotated[
        list[str], typer.Argument(metavar="QUESTION", help="The words; - reads them from stdin.")
    ],
    model: options.Model = None,
    tool: options.Tools = None,
    mcp: options.Servers = None,
    as_json: options.AsJson = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Ask the agent that a file describes (see agent-brain nets schema)."""
    with reported(debug=debug):
        from agent_brain.cli.agents import AgentOptions
        from agent_brain.cli.asking import ask as run_agent
        from agent_brain.cli.printers import OutputOptions

        agent = AgentOptions(
            model=model, file=file, tools=tuple(tool or ()), servers=tuple(mcp or ())
        )
        output = OutputOptions(as_json=as_json, verbose=verbose, debug=debug)
        code = run_agent(question, agent, output)
    _leave(code)


@app.command()
def chat(
    *,
    model: options.Model = None,
    net: options.NetName = "react",
    memory: options.MemoryName = "messages",
    folder: options.Folder = None,
    session: options.SessionName = None,
    tool: options.Tools = None,
    mcp: options.Servers = None,
    max_steps: options.MaxSteps = None,
    timeout: options.Timeout = None,
    max_cost: options.MaxCost = None,
    as_json: options.AsJson = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
) -> None:
    """Talk with an agent that remembers the conversation.

    Ctrl-C stops an answer, /exit or Ctrl-D leaves. Limits are per question. With piped input every
    line is a question, or the answer to what the agent asks.
    """
    with reported(debug=debug):
        from agent_brain.cli.agents import AgentOptions
        from agent_brain.cli.chatting import chat as run
        from agent_brain.cli.printers import OutputOptions

        agent = AgentOptions(
            model=model,
            net=net,
            memory=memory,
            folder=folder,
            session=session,
            tools=tuple(tool or ()),
            servers=tuple(mcp or ()),
            max_steps=max_steps,
            timeout=timeout,
            max_cost=max_cost,
        )
        output = OutputOptions(as_json=as_json, verbose=verbose, debug=debug)
        code = run(agent, output)
    _leave(code)


def _leave(code: ExitCode) -> None:
    if code is not ExitCode.ANSWERED:
        raise typer.Exit(code)
