"""``@tool``: a tool from a function, its schema from the type hints and the docstring."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Mapping
from typing import Any, Self, overload

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from agent_brain.tools.action import Action
from agent_brain.tools.base import Approval, BaseTool
from agent_brain.tools.context import ToolContext, current_call
from agent_brain.tools.docstrings import read_docstring
from agent_brain.tools.errors import ToolArgumentsError, ToolDefinitionError
from agent_brain.tools.signature import (
    arguments_model,
    innermost,
    plain_schema,
    without_partials,
)
from agent_brain.tools.threads import run_in_thread


class FunctionTool(BaseTool):
    """A function as a tool. Made by :func:`tool`; still callable as the function it wraps."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        local_names: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        label = name or str(getattr(function, "__name__", ""))
        _check_callable(label, function)
        text, parameter_texts = read_docstring(innermost(function))
        self.function = function
        self._is_async = _is_async(function)
        self._parameters, self._model, self._context = arguments_model(
            label, function, parameter_texts, dict(local_names or {})
        )
        self._positional = [name for name, _, by_position in self._parameters if by_position]
        schema = plain_schema(label, self._model)
        super().__init__(label, text if description is None else description, schema, **options)
        functools.update_wrapper(self, function, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the wrapped function itself: no validation, no thread."""
        return self.function(*args, **kwargs)

    def validate(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """Coerce ``args`` to the annotated types.

        Raises:
            ToolArgumentsError: Every problem found, in one error.
        """
        try:
            model = self._model.model_validate(args)
        except ValidationError as error:
            model = self._validate_as_json(args, error)
        values = model.__dict__
        return {parameter: values[field] for parameter, field, _ in self._parameters}

    def _validate_as_json(self, args: Mapping[str, Any], error: ValidationError) -> BaseModel:
        """Ask again as JSON, from which strict types take what they refuse from Python.

        Only when the fast way, by far the most common, has failed.
        """
        try:
            return self._model.model_validate_json(to_json(args))
        except ValidationError as as_json:
            error = as_json
        except PydanticSerializationError:  # a caller in Python passed what JSON cannot express
            pass
        raise ToolArgumentsError(self.name, _explain(error)) from None

    async def execute(self, **kwargs: Any) -> Any:
        """Validate and coerce ``kwargs``, then run the function; a sync one in a worker thread.

        A cancelled call of a sync function returns at once; the thread, which Python cannot stop,
        finishes on its own and its result is thrown away; a program that ends meanwhile says that
        it waits for it.
        """
        return await self.invoke(kwargs)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """As :meth:`execute`, with the arguments as one mapping."""
        values = self.validate(args)
        if self._context is not None:
            values[self._context] = current_call() or ToolContext(Action(name=self.name))
        positional = [values.pop(name) for name in self._positional]
        if self._is_async:
            return await self.function(*positional, **values)

        call = functools.partial(self.function, *positional, **values)
        result = await run_in_thread(self.name, call)
        return await result if inspect.isawaitable(result) else result

    def renamed(self, name: str) -> Self:
        """The same tool under another name; limits are shared with this one."""
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
    """Make a tool of a sync or async function.

    The description is the docstring's text; parameters are described by the docstring (Google,
    NumPy and Sphinx styles) or by ``Annotated[..., Field(description=…)]``, which wins. Hints may
    be anything pydantic knows: enums, models, unions, ``Literal``, containers.

    Bound methods, objects with ``__call__`` and ``functools.partial`` objects (which need
    ``name=``) are functions too; what a partial has bound is hidden from the model. So is a
    parameter annotated :class:`ToolContext`: the function is given the call it serves.

    Args:
        function: The function, when used as ``@tool`` without brackets.
        **options: ``name``, ``description`` and the options of :class:`BaseTool`.

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
    """``value`` if it is a tool, else a tool made of the function it is.

    Raises:
        ToolDefinitionError: It is neither.
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


def _check_callable(name: str, function: Callable[..., Any]) -> None:
    if isinstance(function, BaseTool):
        raise ToolDefinitionError(f"{function!r} is a tool already: use it as it is")
    if not callable(function):
        raise ToolDefinitionError(
            f"{function!r} is no function: write @tool or @tool(name=…, …) above a function"
        )
    inner = without_partials(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ToolDefinitionError(
            f"Tool {name!r} is a generator: return one value, such as a list, instead of yielding"
        )


def _explain(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}"
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _is_async(function: Callable[..., Any]) -> bool:
    function = without_partials(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )
