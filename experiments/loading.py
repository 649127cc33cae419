"""Tasks from files, functions and task sets by name."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from agent_brain.common.references import load_object
from agent_brain.common.suggest import did_you_mean
from agent_brain.common.values import error_lines
from agent_brain.errors import ExperimentError
from agent_brain.experiments.checks import Check, Contains, Equals, JsonMatches, Matches, Number
from agent_brain.experiments.task import Task, Turn
from agent_brain.memories.message import Message

SETS = ("basics", "game24", "gsm8k", "long_memory", "user_memory")
_CHECKS: dict[str, Callable[[Any], Check]] = {
    "contains": Contains,
    "number": Number,
    "matches": Matches,
    "equals": Equals,
    "json": JsonMatches,
}


def load_tasks(source: str | PathLike[str], **options: Any) -> list[Task]:
    """Return the tasks of a file, of a function, or of a task set by its name.

    ::

        load_tasks("tasks.jsonl")
        load_tasks("basics", n=20)
        load_tasks("my_tasks.py:orders")

    A file is JSON lines (``.jsonl``), JSON (``.json``: a list) or TOML (``.toml``: ``[[tasks]]``).
    Each task in it has an ``id``, the ``turns`` (a text, or a list of texts and of objects with
    ``text``, ``expected``, ``session`` and ``restart``), and what is ``expected``: a text, a
    number, a list, or an object, which is data that the output equals or one check by name:
    ``{"contains": …}``, ``{"number": …}``, ``{"matches": …}``, ``{"equals": …}`` or
    ``{"json": …}``. It may have ``tags``, ``messages`` (objects with ``role`` and ``content``),
    ``max_cost`` and ``source``. Tools of such tasks are those of the experiment.

    Args:
        source: The file; ``"module:name"`` or ``"path/to/file.py:name"`` of a function or a list;
            or the name of a task set: ``basics``, ``game24``, ``gsm8k``, ``long_memory`` or
            ``user_memory``.
        **options: For a function or a task set.

    Raises:
        ExperimentError: There is nothing of that name, or a task is wrong; it says where.
    """
    given: object = source
    text = fspath(source) if isinstance(given, str | PathLike) else None
    if not isinstance(text, str):
        raise ExperimentError(
            f"load_tasks({given!r}): give a file, 'module:function', or one of {', '.join(SETS)}"
        )
    if text in SETS:
        from agent_brain import experiments

        return _called(text, getattr(experiments, text), options)
    path = Path(text)
    if path.suffix.lower() in (".jsonl", ".json", ".toml"):
        if options:
            raise ExperimentError(f"{text}: a file takes no options, such as {next(iter(options))}")
        return _from_file(path)
    if ":" in text:
        return _called(text, load_object(f"tasks={text!r}", text, ExperimentError), options)
    raise ExperimentError(
        f"{text!r} names no tasks: give a file (.jsonl, .json, .toml), 'module:function', or one "
        f"of {', '.join(SETS)}.{did_you_mean(text, SETS)}"
    )


def _called(text: str, thing: object, options: Mapping[str, Any]) -> list[Task]:
    try:
        made: Any = thing(**options) if callable(thing) else thing
    except TypeError as error:
        raise ExperimentError(f"{text}: {error}") from error
    found = list(made) if isinstance(made, Iterable) else [made]
    for task in found:
        if not isinstance(task, Task):
            raise ExperimentError(f"{text} has {task!r}, which is not a Task")
    return found


class _Spec(BaseModel):
    model_config = ConfigDict(extra="forbid")


class _TurnSpec(_Spec):
    text: str
    expected: JsonValue = None
    session: str = "1"
    restart: bool = False


class _MessageSpec(_Spec):
    role: str
    content: str


class _TaskSpec(_Spec):
    id: str
    turns: str | list[str | _TurnSpec]
    expected: JsonValue = None
    tags: list[str] = Field(default_factory=list)
    messages: list[_MessageSpec] = Field(default_factory=list)
    max_cost: float | None = Field(None, gt=0)
    source: str = ""

    def task(self) -> Task:
        turns = [self.turns] if isinstance(self.turns, str) else self.turns
        messages = [Message.model_validate(dict(message)) for message in self.messages]
        said = [turn if isinstance(turn, str) else Turn(**_read(turn)) for turn in turns]
        return Task(**_read(self) | {"turns": said, "messages": messages})


def _read(spec: _TurnSpec | _TaskSpec) -> dict[str, Any]:
    return dict(spec) | {"expected": _expected(spec.expected)}


def _from_file(path: Path) -> list[Task]:
    try:
        text = path.read_text("utf-8-sig")  # editors on Windows begin files with a mark
    except (OSError, UnicodeError) as error:
        raise ExperimentError(f"{path} cannot be read: {error}") from error
    found = []
    for place, data in _data_in(path, text):
        try:
            found.append(_TaskSpec.model_validate(data).task())
        except ValidationError as error:
            problems = "; ".join(error_lines(error, "the task"))
            raise ExperimentError(f"{path}, {place}: {problems}") from error
        except (ExperimentError, ValueError) as error:
            raise ExperimentError(f"{path}, {place}: {error}") from error
    if not found:
        raise ExperimentError(f"{path} has no tasks")
    return found


def _expected(data: JsonValue) -> Any:
    if isinstance(data, dict) and len(data) == 1:
        ((name, value),) = data.items()
        if name in _CHECKS:
            return _CHECKS[name](value)
    return Equals(data) if isinstance(data, bool) else data


def _data_in(path: Path, text: str) -> Iterator[tuple[str, Any]]:
    """Yield where each task of a file is, and its data."""
    kind = path.suffix.lower()
    if kind == ".jsonl":
        for number, line in enumerate(text.split("\n"), 1):  # a text may hold U+2028
            if line.strip():
                yield f"line {number}", _parsed(path, f", line {number}", "JSON", json.loads, line)
        return
    if kind == ".json":
        data = _parsed(path, ", the file", "JSON", json.loads, text)
    else:
        data = _parsed(path, "", "TOML", tomllib.loads, text).get("tasks")
    if not isinstance(data, list):
        raise ExperimentError(f"{path}: give a list of tasks: in TOML, [[tasks]] for each")
    for number, item in enumerate(data, 1):
        yield f"task {number}", item


def _parsed(path: Path, place: str, what: str, parse: Callable[[str], Any], text: str) -> Any:
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        raise ExperimentError(f"{path}{place}: not {what}: {error}") from error
