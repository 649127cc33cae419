"""Make the experiment that a file describes. Private."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from agent_brain.cli.compare.choices import Choice, is_file, is_reference
from agent_brain.cli.compare.settings import ExperimentFile, refuse
from agent_brain.demo import DemoLLM
from agent_brain.errors import AgentBrainError, ExperimentError
from agent_brain.experiments import Experiment, RuleBasedLLM, Task, load_tasks
from agent_brain.experiments.choices.memories import read_memories
from agent_brain.experiments.choices.models import read_models
from agent_brain.experiments.choices.nets import read_nets
from agent_brain.experiments.choices.references import load_object
from agent_brain.states import LLM, LiteLLM
from agent_brain.states.models.resolve import made_of_names
from agent_brain.tools import BaseTool
from agent_brain.tools.function import as_tool
from agent_brain.tools.suggest import wrong_option

_RULES: dict[str, Callable[..., LLM]] = {"demo": DemoLLM, "rule-based": RuleBasedLLM}


def make_experiment(file: ExperimentFile) -> Experiment:
    """Return the experiment; modules in the folder of the file can be imported from now on.

    Raises:
        UserError: Something in it is wrong, is not there, or does not take its options; the message
            lists every problem.
    """
    folder, problems = file.path.resolve().parent, [*file.problems]
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    found: dict[str, Any] = {key: {} for key in file.choices}
    for key, choices in file.choices.items():
        for choice in choices:
            try:
                found[key][choice.name] = _READ[key](choice, folder)
            except AgentBrainError as error:
                says_where = str(error).startswith(f"{key}[")
                problems.append(str(error) if says_where else f"{choice.place}: {error}")
            except (TypeError, ValueError) as error:  # an option of a wrong kind
                problems.append(f"{choice.place}: {type(error).__name__}: {error}")
    tools = _tools(file.tools, folder, problems)
    refuse(file.path, problems)
    found["tasks"] = [task for tasks in found["tasks"].values() for task in tasks]
    if file.limits is not None:
        found["limits"] = file.limits
    try:
        return Experiment(**{"name": file.path.stem, **file.values, **found}, tools=tools)
    except AgentBrainError as error:
        refuse(file.path, [str(error)])
        raise


def _net(choice: Choice, folder: Path) -> Any:
    given = _place(choice.what, folder), choice.options
    read_nets({choice.name: given})
    return given


def _memory(choice: Choice, folder: Path) -> Any:
    given = _place(choice.what, folder), choice.options
    read_memories({choice.name: given})
    return given


def _model(choice: Choice, folder: Path) -> LLM | str:
    if is_reference(choice.what):
        thing: Any = load_object(repr(choice.what), _place(choice.what, folder))
        llm: LLM | str = (
            thing if isinstance(thing, LLM) and not choice.options else _called(thing, choice)
        )
    elif choice.options:
        llm = _called(_RULES.get(choice.what) or partial(LiteLLM, choice.what), choice)
        made_of_names.add(llm)  # the experiment closes it
    else:
        llm = choice.what
    read_models({choice.name: llm})
    return llm


def _called(make: Any, choice: Choice) -> LLM:
    if isinstance(make, LLM) or not callable(make):
        raise ExperimentError(f"{choice.what!r} is {make!r}: options go with a function or a class")
    if (problem := wrong_option(make, choice.options)) is not None:
        raise ExperimentError(problem)
    made = make(**choice.options)
    if not isinstance(made, LLM):
        raise ExperimentError(f"{choice.what!r} returned {made!r}, which is not a model")
    return made


def _tasks(choice: Choice, folder: Path) -> list[Task]:
    options = dict(choice.options)
    if isinstance(path := options.get("path"), str):
        options["path"] = folder / path
    return load_tasks(_place(choice.what, folder), **options)


def _place(what: str, folder: Path) -> str:
    """Return a file, or a file with an object, from the folder of the experiment's file."""
    if is_reference(what):
        module, _, name = what.rpartition(":")
        return f"{folder / module}:{name}" if module.endswith(".py") else what
    return str(folder / what) if is_file(what) else what


_READ: dict[str, Callable[[Choice, Path], Any]] = {
    "nets": _net,
    "memories": _memory,
    "models": _model,
    "tasks": _tasks,
}


def _tools(references: list[str], folder: Path, problems: list[str]) -> list[BaseTool]:
    tools = []
    for reference in references:
        try:
            tools.append(as_tool(load_object(repr(reference), _place(reference, folder))))  # type: ignore[arg-type]
        except AgentBrainError as error:
            problems.append(f"tools: {error}")
    return tools
