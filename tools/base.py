"""The base class of tools."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, ClassVar, Self, TypeAlias

from agent_brain.common.aio import maybe_await
from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.secrets import get_logger
from agent_brain.common.text import shorten
from agent_brain.common.values import check_count, is_amount, is_count, takes
from agent_brain.tools.action import thawed
from agent_brain.tools.errors import ToolArgumentsError
from agent_brain.tools.limiter import Limiter, read_rate
from agent_brain.tools.schemas import Schema, read_schema

logger = get_logger(__name__)

Approval: TypeAlias = bool | Callable[[dict[str, Any]], object]

RESULT_TOKENS = 10_000
"""The longest result of functions and of the tools of MCP servers, unless they say otherwise."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


class BaseTool(ABC):
    """Base class for tools: functions that a model may call by name.

    Most tools are made from a function, see :func:`agent_brain.tools.tool`. Subclass it for a tool
    with a JSON Schema of its own. A tool holds configuration only, and any number of its calls may
    run at once::

        from agent_brain import BaseTool

        class Weather(BaseTool):
            def __init__(self) -> None:
                properties = {"city": {"type": "string"}}
                schema = {"type": "object", "properties": properties, "required": ["city"]}
                super().__init__("weather", "Return the weather.", schema, timeout=10)

            async def execute(self, city: str) -> str:
                return f"Sunny in {city}"

    Args:
        name: Name for the model: 1 to 64 of ``A-Z a-z 0-9 _ -``.
        description: What it does and when to use it, for the model.
        input_schema: JSON Schema of an object: the arguments by name.
        timeout: Seconds after which a call is cancelled and reported as an error; None waits.
        requires_approval: True stops the run before each call until a person approves it; a
            function of the validated arguments (a dict), sync or async, decides per call. If it
            raises, approval is required.
        idempotent: Running a call twice has the same effect as running it once, so an interrupted
            call may be repeated.
        max_result_tokens: Longer results are shortened to this many estimated tokens (head and
            tail are kept), and the model is offered a tool that reads the rest; None keeps all.
        max_concurrency: Calls that may run at once in the whole process; others wait.
        repeatable: Repeating a call is normal, as in polling: its calls are ignored when the run is
            checked for loops.
        rate: Calls that may begin in a span of time, as ``"10/min"``, ``"3/10s"`` or
            ``(calls, seconds)``; others wait.

    Raises:
        ToolDefinitionError: A name or schema that no model API accepts, or an invalid limit.
    """

    nested: ClassVar[bool] = False  # the Brain runs it as a branch of the calling run
    always_offered: bool = False  # also if tools are to be searched for (ToolSearch)

    def __init__(
        self,
        name: str,
        description: str,
        input_schema: dict[str, Any],
        *,
        timeout: float | None = None,
        requires_approval: Approval = False,
        idempotent: bool = False,
        max_result_tokens: int | None = None,
        max_concurrency: int | None = None,
        rate: str | tuple[int, float] | None = None,
        repeatable: bool = False,
    ) -> None:
        self.name = name
        self.description = description
        self.input_schema = input_schema
        self.timeout = timeout
        self.requires_approval = requires_approval
        self.idempotent = idempotent
        self.max_result_tokens = max_result_tokens
        self.repeatable = repeatable
        self.limiter: Limiter | None = None
        problems = self._problems()
        try:
            check_count(ValueError, "max_concurrency", max_concurrency, optional=True)
            if max_concurrency is not None or rate is not None:
                self.limiter = Limiter(max_concurrency, None if rate is None else read_rate(rate))
        except (TypeError, ValueError) as error:
            problems.append(str(error))
        self._refuse(problems)

    def _problems(self) -> list[str]:
        found = []
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            found.append("its name must be 1 to 64 letters, digits, '_' or '-'")
        schema: Any = self.input_schema
        if not isinstance(schema, dict):
            found.append('its input_schema must be a JSON Schema with "type": "object"')
        elif type(self).validate is BaseTool.validate:
            found += self._schema_problems()
        elif schema.get("type") != "object":
            found.append('its input_schema must have "type": "object"')
        if self.timeout is not None and not is_amount(self.timeout):
            found.append(f"its timeout must be greater than 0 seconds, not {self.timeout!r}")
        if self.max_result_tokens is not None and not is_count(self.max_result_tokens):
            found.append(f"max_result_tokens must be at least 1, not {self.max_result_tokens!r}")
        for name in ("idempotent", "repeatable"):
            if not isinstance(getattr(self, name), bool):
                found.append(f"{name} must be True or False, not {getattr(self, name)!r}")
        approval: Any = self.requires_approval
        if not (isinstance(approval, bool) or takes(approval, "arguments")):
            found.append("requires_approval must be True, False or a function of the arguments")
        return found

    def _schema_problems(self) -> list[str]:
        is_object = self.input_schema.get("type") == "object"
        found = [] if is_object else ['it must have "type": "object" at its root']
        found += self._schema.problems
        for pattern in self._schema.unchecked:
            logger.info(
                "Tool %r: arguments are not checked against the pattern %r, which cannot be "
                "matched safely (the extra agent-brain[search] supports more patterns)",
                self.name,
                shorten(pattern, 40),
            )
        return [f"its input_schema is not usable: {problem}" for problem in found]

    def to_dict(self) -> dict[str, Any]:
        """Return ``{name: {"description": …, "input_schema": …}}``."""
        return {self.name: {"description": self.description, "input_schema": self.input_schema}}

    @abstractmethod
    async def execute(self, **kwargs: Any) -> Any:
        """Run a call. The model gets text unchanged, and any other value as JSON.

        Raises:
            ToolError: Its text goes to the model as an error. So does any other exception, which
                is also kept on the event of the call.
        """

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Check ``args`` against the input schema and return the arguments of ``execute``.

        Raises:
            ToolArgumentsError: All problems, in one error.
        """
        given = thawed(args)
        problems = self._schema.errors(given)
        if problems:
            raise ToolArgumentsError(self.name, problems)
        return given

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """Validate ``args``, then execute.

        Raises:
            ToolArgumentsError: The arguments are invalid; nothing was executed.
        """
        return await self.execute(**self.validate(args))

    async def needs_approval(self, args: Mapping[str, Any]) -> bool:
        """Return whether a person must approve a call with ``args`` before it runs.

        A call with invalid arguments needs no approval, as it will not run.
        """
        if self.requires_approval is False:
            return False
        try:
            valid = self.validate(args)
            if self.requires_approval is True:
                return True
            return bool(await maybe_await(self.requires_approval(valid)))
        except ToolArgumentsError:
            return False
        except Exception:  # when in doubt, a person decides
            return True

    def renamed(self, name: str) -> BaseTool:
        """Return the same tool under another name; limits are shared with this one."""
        return RenamedTool(self, name)

    def _copy_as(self, name: str) -> Self:
        """Return a copy with another name, for tools that do not use their name."""
        copied = type(self).__new__(type(self))
        vars(copied).update(vars(self), name=name)
        copied._refuse(copied._problems())
        return copied

    def _refuse(self, problems: list[str]) -> None:
        if problems:
            raise ToolDefinitionError(f"Tool {self.name!r} cannot be used: " + "; ".join(problems))

    @cached_property
    def _schema(self) -> Schema:
        return read_schema(self.input_schema)

    def __deepcopy__(self, memo: dict[int, Any]) -> BaseTool:
        return self

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


class RenamedTool(BaseTool):
    """A tool that runs another tool, under another name. Made by :meth:`BaseTool.renamed`."""

    def __init__(self, wrapped: BaseTool, name: str) -> None:
        options = ("timeout", "requires_approval", "idempotent", "repeatable", "max_result_tokens")
        super().__init__(
            name,
            wrapped.description,
            wrapped.input_schema,
            **{option: getattr(wrapped, option) for option in options},
        )
        self.wrapped = wrapped
        self.always_offered = wrapped.always_offered
        self.limiter = wrapped.limiter

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Validate like the wrapped tool; errors carry the new name."""
        try:
            return self.wrapped.validate(args)
        except ToolArgumentsError as error:
            raise ToolArgumentsError(self.name, error.problems) from None

    async def execute(self, **kwargs: Any) -> Any:
        """Run the wrapped tool."""
        return await self.wrapped.execute(**kwargs)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """Validate ``args``, then run the wrapped tool."""
        self.validate(args)
        return await self.wrapped.invoke(args)

    def renamed(self, name: str) -> BaseTool:
        """Return the wrapped tool under yet another name."""
        return self.wrapped.renamed(name)
