"""The settings of an experiment, beside what it compares."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, TypeAlias

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.values import is_amount, is_count
from agent_brain.errors import ExperimentError
from agent_brain.experiments.task import MakeTools, Task, is_name
from agent_brain.limits import Limits
from agent_brain.stuck import StuckPolicy
from agent_brain.tools.toolset import ToolLike, collect

_Field: TypeAlias = tuple[Callable[[Any], bool], str]
_COUNT: _Field = is_count, "a whole number, at least 1"
_AMOUNT: _Field = lambda v: v is None or is_amount(v), "a number above 0, or None for no limit"
_BOOL: _Field = lambda v: isinstance(v, bool), "True or False"
_FIELDS: dict[str, _Field] = {
    "name": (is_name, "a name that is not empty"),
    "repeat": _COUNT,
    "at_once": _COUNT,
    "seed": (lambda v: isinstance(v, int) and not isinstance(v, bool), "a whole number"),
    "max_cost": _AMOUNT,
    "max_seconds": _AMOUNT,
    "case_max_cost": _AMOUNT,
    "case_seconds": _AMOUNT,
    "limits": (lambda v: isinstance(v, Limits), "pass limits=Limits(…)"),
    "stuck": (
        lambda v: v is None or isinstance(v, StuckPolicy),
        "pass stuck=StuckPolicy(…), or None",
    ),
    "trace": _BOOL,
    "keep_sessions": _BOOL,
    "version": (lambda v: v is None or is_name(v), "a text that is not empty, or None"),
    "tools": (
        lambda v: callable(v) or (isinstance(v, Iterable) and not isinstance(v, str)),
        "a list of tools, or a function that makes it",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of an experiment; :class:`Experiment` says what they mean."""

    name: str
    tools: Iterable[ToolLike] | MakeTools
    limits: Limits
    stuck: StuckPolicy | None
    repeat: int
    seed: int
    at_once: int
    model_at_once: int | Mapping[str, int] | None
    max_cost: float | None
    max_seconds: float | None
    case_max_cost: float | None
    case_seconds: float | None
    trace: bool
    keep_sessions: bool
    version: str | None

    def __post_init__(self) -> None:
        if faults := [*field_faults({name: getattr(self, name) for name in _FIELDS})]:
            raise ExperimentError("\n".join(faults))
        if not callable(self.tools):
            object.__setattr__(self, "tools", tuple(self.tools))  # each case reads them
        _check_tools("tools=", self.tools)

    def check_tools(self, task: Task) -> None:
        """Check the tools of a task, together with these.

        Raises:
            ExperimentError: One of them is not a tool, or two have one name.
        """
        _check_tools(f"Task {task.id!r}: tools=", task.tools, self.tools)

    def check_models(self, models: Iterable[str]) -> None:
        """Check ``model_at_once``.

        Raises:
            ExperimentError: It names another model, or a number is below 1.
        """
        given = self.model_at_once
        if given is None or is_count(given):
            return
        if not isinstance(given, Mapping):
            raise ExperimentError(
                f"model_at_once={given!r}: a whole number, at least 1, or a dict by model"
            )
        known = list(models)
        for name, count in given.items():
            if name not in known:
                raise ExperimentError(
                    f"model_at_once has {name!r}, which is not a model of the experiment: they are "
                    f"{', '.join(known)}"
                )
            if not is_count(count):
                raise ExperimentError(
                    f"model_at_once[{name!r}]={count!r}: a whole number, at least 1"
                )

    def at_once_for(self, model: str) -> int:
        """Return how many cases of a model may run at once."""
        given = self.model_at_once
        if given is None:
            return self.at_once
        return given.get(model, self.at_once) if isinstance(given, Mapping) else given

    def make_tools(self) -> list[ToolLike]:
        """Return the tools of one case, beside those of its task."""
        return list(self.tools() if callable(self.tools) else self.tools)

    def limits_in_words(self) -> dict[str, Any]:
        """Return the limits that are set, as plain data."""
        found = {**asdict(self.limits), "case_seconds": self.case_seconds}
        found |= {"case_max_cost": self.case_max_cost, "max_cost": self.max_cost}
        found |= {"max_seconds": self.max_seconds}
        return {name: value for name, value in found.items() if value not in (None, False)}


def field_faults(values: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with each of some settings, such as ``"seed='x': a whole number"``."""
    for name, (fits, what) in _FIELDS.items():
        if name in values and not fits(values[name]):
            yield f"{name}={values[name]!r}: {what}"


def _check_tools(where: str, *given: Iterable[ToolLike] | MakeTools) -> None:
    """Check tools, without those that a function makes for each case."""
    try:
        collect([tool for tools in given if not callable(tools) for tool in tools], {})
    except ToolDefinitionError as error:
        raise ExperimentError(f"{where}: {error}") from error
