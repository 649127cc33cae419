"""How commands are written: their options here, what they do in a module that is imported later.

A command of click is a function without a body: its docstring is the help, its options are the
arguments of :func:`runs`, and what it runs is named by a text, so that ``agent-brain --help`` and
Tab load nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from importlib import import_module
from inspect import iscoroutine
from typing import Any

import click

from agent_brain.cli.exit_codes import exit_on_error
from agent_brain.cli.options import DEBUG, Decorator, Options

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
