"""The file of an experiment, as it is written. Private."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError
from pydantic_core import ErrorDetails

from agent_brain.cli.compare.choices import Choice, read_choices
from agent_brain.cli.exit_codes import UserError
from agent_brain.errors import AgentBrainError
from agent_brain.limits import Limits
from agent_brain.tools.suggest import did_you_mean
from agent_brain.tools.values import error_details, error_line

_CHOICES = ("nets", "memories", "models", "tasks")


class Settings(BaseModel):
    """The keys of a file; what they mean and their defaults are those of ``Experiment``."""

    model_config = ConfigDict(extra="forbid", strict=True)

    name: str = Field("", min_length=1)
    nets: JsonValue
    memories: JsonValue = None
    models: JsonValue = None
    tasks: JsonValue
    tools: list[str] = []
    limits: dict[str, JsonValue] = {}
    repeat: int = Field(1, ge=1)
    at_once: int = Field(8, ge=1)
    model_at_once: JsonValue = None
    base: str = Field("", min_length=1)
    seed: int = 0
    max_cost: float = Field(0, gt=0)
    max_seconds: float = Field(0, gt=0)
    case_max_cost: float = Field(0, gt=0)
    case_seconds: float = Field(0, gt=0)
    trace: bool = True
    keep_sessions: bool = True

    def given(self) -> dict[str, Any]:
        """Return the keys that are plain values, and were given."""
        special = {*_CHOICES, "tools", "limits"}
        return {name: getattr(self, name) for name in self.model_fields_set - special}


@dataclass(frozen=True, slots=True)
class ExperimentFile:
    """The checked contents of a file.

    Attributes:
        path: The file.
        choices: What it names, by key: nets, memories, models and tasks.
        tools: References to tools.
        limits: Limits of each turn; None if it sets none.
        values: Its other keys, by name.
        problems: What is wrong with it; then the rest may not be all.
    """

    path: Path
    choices: dict[str, list[Choice]]
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
    problems: list[str] = []
    settings = _settings(data, problems)
    choices = {
        key: [_own_tasks(path)] if _are_tasks(key, value) else read_choices(key, value, problems)
        for key in _CHOICES
        if (value := data.get(key)) is not None
    }
    limits = _limits(data.get("limits"), problems)
    tools, values = ([], {}) if settings is None else (settings.tools, settings.given())
    return ExperimentFile(path, choices, tools, limits, values, problems)


def _are_tasks(key: str, value: object) -> bool:
    """Return whether a file has tasks of its own, ``[[tasks]]``."""
    return key == "tasks" and isinstance(value, list) and any(isinstance(v, dict) for v in value)


def _own_tasks(path: Path) -> Choice:
    return Choice("tasks", "tasks", str(path.resolve()), {})


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


def _settings(data: dict[str, Any], problems: list[str]) -> Settings | None:
    try:
        return Settings.model_validate(data)
    except ValidationError as error:
        problems += map(_problem, error_details(error))
        return None


def _problem(detail: ErrorDetails) -> str:
    key = detail["loc"][0]
    if detail["type"] == "extra_forbidden":
        known = list(Settings.model_fields)
        hint = did_you_mean(key, known) or f" There are: {', '.join(known)}"
        return f"{key}: there is no such key.{hint}"
    if detail["type"] == "missing":
        return f"{key} is missing: what is compared, or on which tasks?"
    return error_line(detail)


def _limits(table: object, problems: list[str]) -> Limits | None:
    if not isinstance(table, dict):
        return None  # it was not given, or its type is a problem already
    known = [field.name for field in fields(Limits)]
    unknown = [name for name in table if name not in known]
    for name in unknown:
        hint = did_you_mean(name, known) or f" There are: {', '.join(known)}"
        problems.append(f"limits.{name}: there is no such limit.{hint}")
    try:
        return Limits(**{name: table[name] for name in table if name in known})
    except AgentBrainError as error:
        problems.append(f"limits: {error}")
        return None
