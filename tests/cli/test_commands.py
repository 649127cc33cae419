"""What commands run takes what they pass: their options by name."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import click
import pytest

from agent_brain.cli.app import app
from agent_brain.cli.options import OPTIONS, load


def commands(group: click.Group) -> Iterator[click.Command]:
    for command in group.commands.values():
        if hasattr(command.callback, "target"):
            yield command
        if isinstance(command, click.Group):
            yield from commands(command)


@pytest.mark.parametrize("command", [*commands(app)], ids=lambda command: str(command.name))
def test_a_command_runs_a_function_that_takes_its_options(command: click.Command) -> None:
    function = load(command.callback.target)  # type: ignore[union-attr]
    given = {parameter.name for parameter in command.params} - OPTIONS

    inspect.signature(function).bind(options=None, **dict.fromkeys(map(str, given)))


def test_all_commands_name_what_they_run() -> None:
    named = {command.name for command in commands(app)}

    assert named >= {"ask", "chat", "compare", "nets", "serve", "worker", "list", "rm", "salvage"}
