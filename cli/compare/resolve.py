"""Make the experiment that a file describes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from agent_brain.cli.compare.file import Entry, ExperimentFile, is_file, refuse
from agent_brain.common.references import is_reference, load_object
from agent_brain.errors import AgentBrainError, ExperimentError
from agent_brain.experiments import Experiment, load_tasks
from agent_brain.experiments.choices.memories import read_memories
from agent_brain.experiments.choices.models import make_models
from agent_brain.experiments.choices.nets import read_nets
from agent_brain.tools import BaseTool
from agent_brain.tools.function import as_tool

_READ: dict[str, Callable[[object], Mapping[str, Any]]] = {
    "nets": read_nets,
    "memories": read_memories,
    "models": make_models,
}


def make_experiment(file: ExperimentFile) -> Experiment:
    """Return the experiment; modules in the folder of the file can be imported from now on.

    Raises:
        UserError: Something in it is wrong, is not there, or does not take its options; the message
            lists every problem.
    """
    folder, problems = file.path.resolve().parent, [*file.problems]
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    given: dict[str, Any] = {}
    for key, entries in file.entries.items():
        if key == "tasks":
            given[key] = _tasks(entries, folder, problems)
            continue
        given[key] = {one.name: (_place(one.what, folder), one.options) for one in entries}
        try:
            found = _READ[key](given[key])
            if key == "models":  # each is made once
                given[key] = found
        except ExperimentError as error:
            if entries:  # otherwise that is said already
                problems += str(error).splitlines()
    tools = _tools(file.tools, folder, problems)
    refuse(file.path, problems)
    if file.limits is not None:
        given["limits"] = file.limits
    try:
        return Experiment(**{"name": file.path.stem, **file.values, **given}, tools=tools)
    except AgentBrainError as error:
        refuse(file.path, [str(error)])
        raise


def _tasks(entries: Sequence[Entry], folder: Path, problems: list[str]) -> list[Any]:
    tasks = []
    for one in entries:
        options = dict(one.options)
        if isinstance(path := options.get("path"), str):
            options["path"] = folder / path
        try:
            tasks += load_tasks(_place(one.what, folder), **options)
        except AgentBrainError as error:
            problems.append(f"{one.place}: {error}")
        except (TypeError, ValueError) as error:  # an option of a wrong kind
            problems.append(f"{one.place}: {type(error).__name__}: {error}")
    return tasks


def _place(what: str, folder: Path) -> str:
    """Return a file, or a file with an object, from the folder of the experiment's file."""
    if is_reference(what):
        module, _, name = what.rpartition(":")
        return f"{folder / module}:{name}" if module.endswith(".py") else what
    return str(folder / what) if is_file(what) else what


def _tools(references: list[str], folder: Path, problems: list[str]) -> list[BaseTool]:
    tools = []
    for reference in references:
        try:
            found: Any = load_object(repr(reference), _place(reference, folder), ExperimentError)
            tools.append(as_tool(found))
        except AgentBrainError as error:
            problems.append(f"tools: {error}")
    return tools
