"""Read the file of an experiment, and make the experiment that it describes."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple

from agent_brain.cli.exit_codes import UserError
from agent_brain.common.references import is_reference, load_object
from agent_brain.common.suggest import did_you_mean
from agent_brain.errors import AgentBrainError, ExperimentError
from agent_brain.experiments import Experiment, load_tasks
from agent_brain.experiments.choices.memories import read_memories
from agent_brain.experiments.choices.models import make_models
from agent_brain.experiments.choices.nets import read_nets
from agent_brain.experiments.settings import field_faults
from agent_brain.limits import Limits
from agent_brain.tools import BaseTool
from agent_brain.tools.function import as_tool

ONE = {"nets": "net", "memories": "memory", "models": "model", "tasks": "set"}
"""The key by which a table of each list says what it is."""

_EXAMPLES = {
    "nets": '["react", "plan_execute"]',
    "memories": '["messages", "vector"]',
    "models": '["openai/gpt-4.1-mini", "rule-based"]',
    "tasks": '["basics", "my_tasks.toml"]',
}
_FILES = (".toml", ".yaml", ".yml", ".json", ".jsonl")
_KEYS = [key for key in signature(Experiment).parameters if key not in {"net_options", "stuck"}]
_MISSING = "what is compared, or on which tasks?"


class Entry(NamedTuple):
    """One of the nets, memories, models or task sets of a file.

    Attributes:
        place: Where it is in the file, such as ``memories.short``.
        name: Its name in the experiment.
        what: What it is: a registered name, a file, or ``module:object``.
        options: Its options.
    """

    place: str
    name: str
    what: str
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """The checked contents of a file.

    Attributes:
        path: The file.
        entries: What it names, by key: nets, memories, models and tasks.
        tools: References to tools.
        limits: Limits of each turn; None if it sets none.
        values: Its other keys, by name.
        problems: What is wrong with it; then the rest may not be all.
    """

    path: Path
    entries: dict[str, list[Entry]]
    tools: list[str]
    limits: Limits | None
    values: dict[str, Any]
    problems: list[str]


def read_experiment_file(path: Path) -> ExperimentFile:
    """Return the contents of a file.

    Raises:
        UserError: It cannot be read.
    """
    data = _read_toml(path)
    values = {k: data[k] for k in _KEYS if k in data and k not in {*ONE, "tools", "limits"}}
    tools = data.get("tools", [])
    problems = [
        *(f"{key} is missing: {_MISSING}" for key in ("nets", "tasks") if key not in data),
        *field_faults(values),
        *(_unknown(key, "key", key, _KEYS) for key in data if key not in _KEYS),
    ]
    if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
        problems.append(f"tools={tools!r}: a list of texts, such as ['my_tools.py:search']")
        tools = []
    entries = {key: _entries(path, key, data[key], problems) for key in ONE if key in data}
    limits = _limits(data.get("limits"), problems)
    return ExperimentFile(path, entries, tools, limits, values, problems)


def refuse(path: Path, problems: list[str]) -> None:
    """Raise an error that lists the problems of a file, if there are any.

    Raises:
        UserError: There are.
    """
    if problems:
        lines = [f"  - {problem}" for problem in problems]
        raise UserError("\n".join([f"{path} is not an experiment:", *lines]))


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        twice = any(word in str(error) for word in ("overwrite", "mutate", "twice"))
        hint = ". A key is either a list or tables: write all as [KEY.NAME]" if twice else ""
        raise UserError(f"{path} is not TOML: {error}{hint}") from error
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}") from error


def _entries(path: Path, key: str, value: object, problems: list[str]) -> list[Entry]:
    """Return what a text, a list or a table of the file names."""
    if isinstance(value, list) and key == "tasks" and any(isinstance(v, dict) for v in value):
        return [Entry("tasks", "tasks", str(path.resolve()), {})]  # tasks of its own: [[tasks]]
    found: list[Entry] = []
    before = len(problems)
    if isinstance(value, Mapping):
        for name, entry in value.items():
            found += _from_table(key, name, entry, problems)
    elif isinstance(value, str | list):
        for entry in [value] if isinstance(value, str) else value:
            if isinstance(entry, str) and entry.strip():
                found.append(Entry(key, short_name(entry), entry, {}))
            else:
                problems.append(
                    f"{key}: {entry!r} is not a name. For options, write each of them as a table "
                    f"[{key}.NAME]"
                )
    if not found and len(problems) == before:
        problems.append(f"{key}: write {key} = {_EXAMPLES[key]}, or tables [{key}.NAME]")
    names = [entry.name for entry in found]
    problems += [
        f"{key}: two are named {name!r}. Name them yourself: [{key}.NAME]"
        for name in dict.fromkeys(name for name in names if names.count(name) > 1)
    ]
    return found


def _from_table(key: str, name: str, entry: object, problems: list[str]) -> Iterator[Entry]:
    """Yield what a table names, if that can be told."""
    place, one = f"{key}.{name}", ONE[key]
    if not isinstance(entry, str | Mapping):
        problems.append(f"{place} is {entry!r}: write a table, such as [{place}] {one} = …")
        return
    options = {one: entry} if isinstance(entry, str) else dict(entry)
    what = options.pop(one, name)
    if isinstance(what, str) and what.strip():
        yield Entry(place, name, what, options)
    else:
        problems.append(f"{place}.{one} is {what!r}: write a name, a file or module:object")


def short_name(text: str) -> str:
    """Return what an experiment calls an entry: the last part of a file or a reference."""
    if is_reference(text):
        return text.rpartition(":")[2]
    return Path(text).stem if is_file(text) else text


def is_file(text: str) -> bool:
    """Return whether ``text`` is the path of a file of data."""
    return Path(text).suffix.lower() in _FILES


def _unknown(place: str, what: str, name: str, known: Collection[str]) -> str:
    hint = did_you_mean(name, known) or f" There are: {', '.join(known)}"
    return f"{place}: there is no such {what}.{hint}"


def _limits(table: object, problems: list[str]) -> Limits | None:
    if table is None:
        return None
    if not isinstance(table, dict):
        problems.append(f"limits={table!r}: a table, [limits]")
        return None
    known = [field.name for field in fields(Limits)]
    unknown = [name for name in table if name not in known]
    problems += [_unknown(f"limits.{name}", "limit", name, known) for name in unknown]
    try:
        return Limits(**{name: table[name] for name in table if name in known})
    except AgentBrainError as error:
        problems.append(f"limits: {error}")
        return None


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
