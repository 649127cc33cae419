"""``agent-brain nets`` and what is below it."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

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
        Literal["mermaid", "dot"], typer.Option("--format", help="The diagram's language.")
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
