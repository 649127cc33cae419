"""The commands. Each imports what it needs when it is called. Private."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from agent_brain.cli.exit_codes import ExitCode
from agent_brain.cli.mcp import mcp
from agent_brain.cli.options import (
    DecisionOptions,
    OutputOptions,
    StoredAgentOptions,
    option,
    with_options,
)

Question = Annotated[
    list[str], typer.Argument(metavar="QUESTION", help="The words; - reads them from stdin.")
]

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
nets_app = typer.Typer(invoke_without_command=True)
app.add_typer(nets_app, name="nets")


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer passes it by position
    if wanted:
        from importlib.metadata import version

        typer.echo(f"agent-brain {version('agent-brain')}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, option("--version", None, "Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
@with_options
def demo(
    *,
    question: Annotated[
        list[str] | None,
        typer.Argument(metavar="QUESTION", help="Your own question.", show_default=False),
    ] = None,
) -> ExitCode:
    """Watch an agent think, call tools and answer: offline, without a key."""
    from agent_brain.cli.chat import DEMO_QUESTIONS, show_demo

    return show_demo([" ".join(question)] if question else DEMO_QUESTIONS)


@app.command()
@with_options
def ask(*, question: Question, agent: StoredAgentOptions, output: OutputOptions) -> ExitCode:
    """Ask one question.

    On a terminal everything is shown as it happens. In a pipe, stdout gets the answer alone and
    stderr the steps that led to it.

    Exit codes: 0 answered, 1 failed, 2 wrong usage, 3 stopped by a limit, stuck or waiting for a
    person, 130 cancelled.
    """
    from agent_brain.cli.chat import ask

    return ask(question, agent, output)


@app.command()
@with_options
def run(
    *,
    net: Annotated[str, typer.Argument(metavar="FILE", help="A net in a .toml or .yaml file.")],
    question: Question,
    agent: StoredAgentOptions,
    output: OutputOptions,
) -> ExitCode:
    """Ask the agent that a file describes (see agent-brain nets schema).

    The options given here override the file. Exit codes are those of ask.
    """
    from agent_brain.cli.chat import ask
    from agent_brain.cli.net_reference import require_file

    require_file(net)
    return ask(question, agent, output)


@app.command()
@with_options
def resume(
    *, decisions: DecisionOptions, agent: StoredAgentOptions, output: OutputOptions
) -> ExitCode:
    """Continue a stored run that waits for a decision or was interrupted.

    On a terminal, it asks for the decisions. Exit codes are those of ask.
    """
    from agent_brain.cli.chat import resume

    return resume(decisions, agent, output)


@app.command()
@with_options
def chat(*, agent: StoredAgentOptions, output: OutputOptions) -> ExitCode:
    """Talk with an agent that remembers the conversation.

    Ctrl-C stops an answer, /exit or Ctrl-D ends the chat. Limits apply to each question. With piped
    input every line is a question, or the answer to what the agent asks.
    """
    from agent_brain.cli.chat import chat

    return chat(agent, output)


app.command()(mcp)


@nets_app.callback()
@with_options
def nets(
    context: typer.Context,
    *,
    draw: Annotated[str | None, option("--draw", "NAME", "Write this net as a diagram.")] = None,
    language: Annotated[
        Literal["mermaid", "dot", "svg"], typer.Option("--format", help="The diagram's format.")
    ] = "mermaid",
) -> None:
    """List the nets, or draw one."""
    from agent_brain.cli.net_reference import draw_net
    from agent_brain.nets import describe_net, net_names

    if context.invoked_subcommand is not None:
        return
    if draw is not None:
        draw_net(draw, language)
    else:
        names = net_names()
        width = max(map(len, names), default=0)
        for name in names:
            print(f"{name.ljust(width)}  {describe_net(name)}".rstrip())


@nets_app.command()
@with_options
def check(
    net: Annotated[str, typer.Argument(metavar="NET", help="A name, a file, or module:name.")],
) -> ExitCode:
    """Report every problem of a net: a file, an object in a module, or a registered net.

    Exit codes: 0 no problems, 1 problems, 2 there is no such net.
    """
    from agent_brain.cli.net_reference import check_net

    return check_net(net)


@nets_app.command()
@with_options
def schema() -> None:
    """Write the JSON Schema of net files."""
    import json

    from agent_brain.brainfile import file_schema

    print(json.dumps(file_schema(), indent=2))
