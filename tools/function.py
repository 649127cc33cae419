"""``@tool``: make tools from functions, with schemas from type hints and docstrings."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Generator, Mapping
from typing import Any, Self, overload

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from agent_brain.common.aio import is_async_function, maybe_await, run_in_thread
from agent_brain.common.errors import ToolDefinitionError
from agent_brain.common.values import error_lines, misnamed_fields
from agent_brain.tools.action import PLAIN, Action, thawed
from agent_brain.tools.base import RESULT_TOKENS, Approval, BaseTool
from agent_brain.tools.context import ToolContext, current_call
from agent_brain.tools.errors import ToolArgumentsError
from agent_brain.tools.signature import innermost, read_signature, without_partials


class FunctionTool(BaseTool):
    """A tool made from a function by :func:`tool`. Calling it calls the function itself."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        local_names: Mapping[str, Any] | None = None,
        max_result_tokens: int | None = RESULT_TOKENS,
        **options: Any,
    ) -> None:
        label = name or str(getattr(function, "__name__", ""))
        _check_callable(label, function)
        text, texts = _read_docstring(innermost(function))
        signature = read_signature(label, function, texts, dict(local_names or {}))
        self.function = function
        self._is_async = is_async_function(without_partials(function))
        self._validator = signature.validator
        self._positional = signature.positional
        self._context = signature.context
        super().__init__(
            label,
            text if description is None else description,
            signature.schema,
            max_result_tokens=max_result_tokens,
            **options,
        )
        functools.update_wrapper(self, function, updated=())

    @property
    def takes_context(self) -> bool:
        """Whether the function takes a :class:`ToolContext`: its result may depend on the run."""
        return self._context is not None

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped function: no validation, no thread."""
        return self.function(*args, **kwargs)

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Return ``args`` coerced to the annotated types.

        Raises:
            ToolArgumentsError: All problems, in one error.
        """
        try:
            values: dict[str, Any] = self._validator.validate_python(thawed(args))
        except ValidationError as error:
            values = self._validate_as_json(args, error)
        if PLAIN.issuperset(map(type, args.values())):
            return values
        if problems := [*misnamed_fields(values, args)]:
            raise ToolArgumentsError(self.name, problems)
        return values

    def _validate_as_json(self, args: Mapping[str, Any], error: ValidationError) -> dict[str, Any]:
        """Validate as JSON, from which strict types accept what they refuse from Python."""
        try:
            values: dict[str, Any] = self._validator.validate_json(to_json(args))
            return values
        except ValidationError as as_json:
            error = as_json
        except PydanticSerializationError:  # a caller in Python passed what JSON cannot express
            pass
        raise ToolArgumentsError(self.name, list(error_lines(error, "arguments"))) from None

    async def execute(self, **kwargs: Any) -> Any:
        """Validate and coerce ``kwargs``, then run the function; a sync one in a worker thread.

        A cancelled call of a sync function returns at once; its thread, which Python cannot stop,
        continues and its result is discarded. A program that exits meanwhile says that it waits.
        """
        return await self._call(kwargs)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """Run the function like :meth:`execute`, with the arguments as one mapping."""
        if type(self).execute is not FunctionTool.execute:  # of a subclass
            return await super().invoke(args)
        return await self._call(args)

    async def _call(self, args: Mapping[str, Any]) -> Any:
        values = self.validate(args)
        if self._context is not None:
            values[self._context] = current_call() or ToolContext(Action(name=self.name))
        positional = [values.pop(name) for name in self._positional] if self._positional else ()
        if self._is_async:
            return await self.function(*positional, **values)
        call = functools.partial(self.function, *positional, **values)
        return await maybe_await(await run_in_thread(self.name, lambda: _read(call())))

    def over(self, function: Callable[..., Any]) -> Self:
        """Return the same tool for another function of the same signature, without reading it."""
        copied = self._copy_as(self.name)
        copied.function = function
        return copied

    def renamed(self, name: str) -> Self:
        """Return the same tool under another name; limits are shared with this one."""
        return self._copy_as(name)


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    timeout: float | None = ...,
    requires_approval: Approval = ...,
    idempotent: bool = ...,
    max_result_tokens: int | None = ...,
    max_concurrency: int | None = ...,
    rate: str | tuple[int, float] | None = ...,
    repeatable: bool = ...,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool from a sync or async function.

    ::

        from agent_brain import tool

        @tool(timeout=10)
        async def get_weather(city: str) -> str:
            "Return the weather in a city."
            return f"Sunny in {city}"

    The description is the docstring's text; parameters are described by the docstring (Google,
    NumPy and Sphinx styles) or by ``Annotated[..., Field(description=…)]``, which takes precedence.
    Hints may be anything pydantic supports: enums, models, unions, ``Literal``, containers.

    Bound methods, objects with ``__call__`` and ``functools.partial`` objects (which need
    ``name=``) work too. Parameters that a partial has bound are hidden from the model, and so is a
    parameter annotated :class:`ToolContext`, which receives the current call.

    Args:
        function: The function, when used as ``@tool`` without parentheses.
        **options: ``name``, ``description`` and the options of :class:`BaseTool`;
            ``max_result_tokens`` is 10,000 unless given, and None for no limit.

    Raises:
        ToolDefinitionError: The signature cannot be offered to a model (``*args``, ``**kwargs``, an
            unbound ``self``, a hint that cannot be resolved or has no JSON schema), or it is a
            generator.
    """
    names = dict(sys._getframe(1).f_locals)
    if function is not None:
        return FunctionTool(function, local_names=names)

    def decorate(function: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(function, local_names=names, **options)

    return decorate


def as_tool(value: BaseTool | Callable[..., Any]) -> BaseTool:
    """Return ``value`` if it is a tool, else a tool made from the function.

    Raises:
        ToolDefinitionError: It is neither a tool nor a function.
    """
    if isinstance(value, BaseTool):
        return value
    if isinstance(value, type) and issubclass(value, BaseTool):
        raise ToolDefinitionError(
            f"{value.__name__} is a tool class, not a tool: pass an instance, {value.__name__}(…)"
        )
    if callable(value):
        return FunctionTool(value)
    raise ToolDefinitionError(
        f"{value!r} is not a tool: pass a BaseTool, or a function with type hints and a docstring "
        "(MCP servers are for 'await Brain.create(tools=[…])')"
    )


def _read(value: Any) -> Any:
    """Return a list of what a generator, or another lazy iterator, yields; else ``value``."""
    return list(value) if isinstance(value, Generator | map | filter | zip) else value


def _check_callable(name: str, function: Callable[..., Any]) -> None:
    if isinstance(function, BaseTool):
        raise ToolDefinitionError(f"{function!r} is already a tool: use it directly")
    if not callable(function):
        raise ToolDefinitionError(
            f"{function!r} is not a function: write @tool or @tool(name=…, …) above a function"
        )
    inner = without_partials(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ToolDefinitionError(
            f"Tool {name!r} is a generator: return one value, such as a list, instead of yielding"
        )


def _read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Return the description in a docstring, and its descriptions of parameters."""
    text = inspect.getdoc(function) or ""
    if not text:
        return "", {}
    import docstring_parser

    parsed = docstring_parser.parse(text)  # of several styles: one of them takes any text
    parts = (parsed.short_description, parsed.long_description)
    description = "\n\n".join(part for part in parts if part)
    texts = {
        name.strip(): param.description or ""
        for param in parsed.params
        for name in param.arg_name.split(",")  # NumPy style: "x, y : int"
    }
    return description or text, texts
