"""``@tool``: a tool from a function, its schema from the type hints and the docstring."""

from __future__ import annotations

import functools
import inspect
import sys
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, overload

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo

from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolArgumentsError, ToolDefinitionError


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
        label = name or getattr(function, "__name__", "")
        text, parameter_texts = _read_docstring(function)
        self.function = function
        self._is_async = _is_async(function)
        self._parameters, self._model = _arguments_model(
            label, function, parameter_texts, dict(local_names or {})
        )
        schema = _plain_schema(label, self._model)
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
            raise ToolArgumentsError(self.name, _explain(error)) from None
        values = model.__dict__
        return {parameter: values[field] for parameter, field, _ in self._parameters}

    async def execute(self, **kwargs: Any) -> Any:
        """Validate and coerce ``kwargs``, then run the function; a sync one in a worker thread.

        A cancelled call of a sync function returns at once; the thread, which Python cannot stop,
        finishes on its own and its result is thrown away.
        """
        return await self.invoke(kwargs)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """As :meth:`execute`, with the arguments as one mapping."""
        values = self.validate(args)
        positional = [values.pop(name) for name, _, by_position in self._parameters if by_position]
        if self._is_async:
            return await self.function(*positional, **values)
        call = functools.partial(self.function, *positional, **values)
        result = await anyio.to_thread.run_sync(call, abandon_on_cancel=True)
        return await result if inspect.isawaitable(result) else result


@overload
def tool(function: Callable[..., Any], /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    timeout: float | None = ...,
    requires_approval: bool = ...,
    idempotent: bool = ...,
    max_result_tokens: int | None = ...,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of a sync or async function.

    The description is the docstring's text; parameters are described by the docstring (Google,
    NumPy and Sphinx styles) or by ``Annotated[..., Field(description=…)]``, which wins. Hints may
    be anything pydantic knows: enums, models, unions, ``Literal``, containers.

    Args:
        function: The function, when used as ``@tool`` without brackets.
        **options: ``name``, ``description`` and the options of :class:`BaseTool`.

    Raises:
        ToolDefinitionError: The signature cannot be offered to a model (``*args``, ``**kwargs``, a
            hint that cannot be resolved or has no JSON schema).
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
        f"{value!r} is not a tool: pass a BaseTool, or a function with type hints and a docstring"
    )


_Parameters = list[tuple[str, str, bool]]  # (parameter, field of the model, passed by position)


def _arguments_model(
    name: str, function: Callable[..., Any], texts: dict[str, str], local_names: dict[str, Any]
) -> tuple[_Parameters, type[BaseModel]]:
    """A model with one field a parameter; aliases let a parameter have any name."""
    hints = _type_hints(name, function, local_names)
    parameters: _Parameters = []
    fields: dict[str, Any] = {}
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolDefinitionError(
                f"Tool {name!r} takes {parameter}: a model cannot be told what to pass; "
                "name every parameter"
            )
        field = f"p{index}"
        default = ... if parameter.default is parameter.empty else parameter.default
        annotation = hints.get(parameter.name, Any)
        if isinstance(default, FieldInfo) and default.metadata:
            annotation = Annotated[annotation, *default.metadata]
        fields[field] = (annotation, _field(parameter.name, default, texts.get(parameter.name)))
        parameters.append((parameter.name, field, parameter.kind is parameter.POSITIONAL_ONLY))
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        return parameters, create_model(f"{name}_arguments", __config__=config, **fields)
    except PydanticUserError as error:
        raise ToolDefinitionError(f"Tool {name!r}: {error.message}") from error


def _field(alias: str, default: Any, text: str | None) -> Any:
    """The field of one parameter; ``default`` may be a ``Field(…)`` of the function's author."""
    if not isinstance(default, FieldInfo):
        return Field(default, alias=alias, description=text)
    return Field(
        default.default,
        default_factory=default.default_factory,  # type: ignore[arg-type]
        alias=alias,
        description=default.description or text,
    )


def _type_hints(
    name: str, function: Callable[..., Any], local_names: dict[str, Any]
) -> dict[str, Any]:
    target = function if inspect.isroutine(function) else type(function).__call__
    try:
        return typing.get_type_hints(target, localns=local_names, include_extras=True)
    except (NameError, TypeError) as error:
        raise ToolDefinitionError(
            f"Tool {name!r} has a type hint that cannot be resolved ({error}): define or import "
            "the type before the function"
        ) from error


def _plain_schema(name: str, model: type[BaseModel]) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True)
    except PydanticUserError as error:
        raise ToolDefinitionError(
            f"Tool {name!r} has a parameter that JSON cannot express: {error.message}"
        ) from error
    return typing.cast(dict[str, Any], _without_titles(schema))


def _without_titles(node: Any, *, names: bool = False) -> Any:
    """``node`` less the titles that pydantic adds: they cost tokens and say nothing.

    ``names`` tells that the keys of ``node`` are property names, where "title" may be one.
    """
    if isinstance(node, dict):
        return {
            key: _without_titles(value, names=not names and key in ("properties", "$defs"))
            for key, value in node.items()
            if names or key != "title" or not isinstance(value, str)
        }
    return [_without_titles(item) for item in node] if isinstance(node, list) else node


def _read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The text of a docstring, and what it says of each parameter."""
    text = inspect.getdoc(function) or ""
    if not text:
        return "", {}
    import docstring_parser

    parsed = docstring_parser.parse(text)
    parts = (parsed.short_description, parsed.long_description)
    description = "\n\n".join(part for part in parts if part)
    return description or text, {p.arg_name: p.description or "" for p in parsed.params}


def _explain(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}"
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _is_async(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)
    )
