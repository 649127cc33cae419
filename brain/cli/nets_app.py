"""``agent-brain nets`` and what is below it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from agent_brain.cli import options
from agent_brain.cli.exits import reported

nets_app = typer.Typer(invoke_without_command=True)


@nets_app.callback()
def nets(
    context: typer.Context,
    *,
    draw: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Write this net as a diagram.", show_default=False),
    ] = None,
    language: Annotated[
        Literal["mermaid", "dot", "svg"], typer.Option("--format", help="The diagram's language.")
    ] = "mermaid",
) -> None:
    """List the nets, or draw one."""
    if context.invoked_subcommand is not None:
        return
    with reported(debug=False):
        from agent_brain.cli.drawing import draw_net, list_nets

        if draw is None:
            list_nets()
        else:
            draw_net(draw, language)


@nets_app.command()
def check(
    net: Annotated[str, typer.Argument(metavar="NET", help="A name, a file, or module:name.")],
    *,
    debug: options.Debug = False,
) -> None:
    """Say everything that is wrong with a net: a file, an object in a module, a registered one.

    Exit codes: 0 nothing wrong, 1 problems, 2 there is no such net.
    """
    with reported(debug=debug):
        from agent_brain.cli.netlike import check as look

        code = look(net)
    if code:
        raise typer.Exit(code)


@nets_app.command()
def schema() -> None:
    """Write the JSON Schema of net files."""
    with reported(debug=False):
        from agent_brain.cli.netlike import print_schema

        print_schema()
