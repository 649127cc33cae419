"""The file of an experiment, as it is written."""

from __future__ import annotations

import tomllib
from collections.abc import Collection
from dataclasses import dataclass, fields
from inspect import signature
from pathlib import Path
from typing import Any

from agent_brain.cli.compare.entries import ONE, Entry, read_entries
from agent_brain.cli.exit_codes import UserError
from agent_brain.common.suggest import did_you_mean
from agent_brain.errors import AgentBrainError
from agent_brain.experiments import Experiment
from agent_brain.experiments.settings import field_faults
from agent_brain.limits import Limits

_SPECIAL = {*ONE, "tools", "limits"}
_KEYS = [key for key in signature(Experiment).parameters if key not in {"net_options", "stuck"}]
_MISSING = "what is compared, or on which tasks?"


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
    values = {key: data[key] for key in _KEYS if key in data and key not in _SPECIAL}
    tools = data.get("tools", [])
    problems = [
        *(f"{key} is missing: {_MISSING}" for key in ("nets", "tasks") if key not in data),
        *field_faults(values),
        *(_unknown(key, "key", key, _KEYS) for key in data if key not in _KEYS),
    ]
    if not isinstance(tools, list) or not all(isinstance(tool, str) for tool in tools):
        problems.append(f"tools={tools!r}: a list of texts, such as ['my_tools.py:search']")
        tools = []
    entries = {
        key: [_own_tasks(path)] if _are_tasks(key, value) else read_entries(key, value, problems)
        for key in ONE
        if (value := data.get(key)) is not None
    }
    limits = _limits(data.get("limits"), problems)
    return ExperimentFile(path, entries, tools, limits, values, problems)


def _are_tasks(key: str, value: object) -> bool:
    """Return whether a file has tasks of its own, ``[[tasks]]``."""
    return key == "tasks" and isinstance(value, list) and any(isinstance(v, dict) for v in value)


def _own_tasks(path: Path) -> Entry:
    return Entry("tasks", "tasks", str(path.resolve()), {})


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
        twice = "overwrite" in str(error) or "mutate" in str(error) or "twice" in str(error)
        hint = ". A key is either a list or tables: write all as [KEY.NAME]" if twice else ""
        raise UserError(f"{path} is not TOML: {error}{hint}") from error
    except OSError as error:
        raise UserError(f"{str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"{path} cannot be read: {error}") from error


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
