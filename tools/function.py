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
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, to_json

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
        _check_callable(label, function)
        text, parameter_texts = _read_docstring(_innermost(function))
        self.function = function
        self._is_async = _is_async(function)
        self._parameters, self._model = _arguments_model(
            label, function, parameter_texts, dict(local_names or {})
        )
        self._positional = [name for name, _, by_position in self._parameters if by_position]
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
            model = self._validate_as_json(args, error)
        values = model.__dict__
        return {parameter: values[field] for parameter, field, _ in self._parameters}

    def _validate_as_json(self, args: Mapping[str, Any], error: ValidationError) -> BaseModel:
        """Some types take from JSON what they refuse from Python: ``Literal[Color.RED]``, strict
        dates. Only asked when the fast way, by far the most common, has failed."""
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
        finishes on its own and its result is thrown away.
        """
        return await self.invoke(kwargs)

    async def invoke(self, args: Mapping[str, Any]) -> Any:
        """As :meth:`execute`, with the arguments as one mapping."""
        values = self.validate(args)
        positional = [values.pop(name) for name in self._positional]
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

    Bound methods, objects with ``__call__`` and ``functools.partial`` objects (which need
    ``name=``) are functions too; what a partial has bound is hidden from the model.

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
    for index, parameter in enumerate(_open_parameters(name, function)):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolDefinitionError(
                f"Tool {name!r} takes {parameter}: a model cannot be told what to pass; "
                "name every parameter"
            )
        field = f"p{index}"
        own = Any if parameter.annotation is parameter.empty else parameter.annotation
        fields[field] = _field(parameter, hints.get(parameter.name, own), texts)
        parameters.append((parameter.name, field, parameter.kind is parameter.POSITIONAL_ONLY))
    config = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
    try:
        return parameters, create_model(f"{name}_arguments", __config__=config, **fields)
    except PydanticUserError as error:
        raise ToolDefinitionError(f"Tool {name!r}: {error.message}") from error


def _field(
    parameter: inspect.Parameter, annotation: Any, texts: Mapping[str, str]
) -> tuple[Any, Any]:
    """Annotation and field of one parameter; a ``Field(…)`` of the function's author is kept."""
    options: dict[str, Any] = {"alias": parameter.name}
    if isinstance(parameter.default, FieldInfo):
        annotation = Annotated[annotation, parameter.default]
    elif parameter.default is not parameter.empty:
        options["default"] = parameter.default
    notes = typing.get_args(annotation)[1:] if typing.get_origin(annotation) is Annotated else ()
    described = any(isinstance(note, FieldInfo) and note.description for note in notes)
    if not described and texts.get(parameter.name):
        options["description"] = texts[parameter.name]
    return annotation, Field(**options)


def _without_partials(function: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(function, functools.partial):
        function = function.func
    return function


def _innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside of ``functools.partial`` objects and decorators."""
    return inspect.unwrap(_without_partials(function))


def _check_callable(name: str, function: Callable[..., Any]) -> None:
    if isinstance(function, BaseTool):
        raise ToolDefinitionError(f"{function!r} is a tool already: use it as it is")
    if not callable(function):
        raise ToolDefinitionError(
            f"{function!r} is no function: write @tool or @tool(name=…, …) above a function"
        )
    inner = _without_partials(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise ToolDefinitionError(
            f"Tool {name!r} is a generator: return one value, such as a list, instead of yielding"
        )


def _open_parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """The parameters that the model is to fill in; what a partial has bound is not among them."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise ToolDefinitionError(
            f"Tool {name!r} has no signature that Python can read ({error}): wrap it in a function "
            "with type hints"
        ) from error
    first = parameters[0] if parameters else None
    if first is not None and first.name in ("self", "cls") and first.annotation is first.empty:
        raise ToolDefinitionError(
            f"Tool {name!r} takes {first.name!r}, which no model can fill in: make the tool of the "
            "bound method, as in tool(object.method)"
        )
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound |= function.keywords.keys()
        function = function.func
    return [parameter for parameter in parameters if parameter.name not in bound]


def _type_hints(
    name: str, function: Callable[..., Any], local_names: dict[str, Any]
) -> dict[str, Any]:
    """The hints of the parameters, resolved; what the function returns is not the model's matter."""
    target = _innermost(function)
    if isinstance(target, type):
        target = target.__init__
    elif not inspect.isroutine(target):
        target = type(target).__call__
    hints = {k: v for k, v in getattr(target, "__annotations__", {}).items() if k != "return"}
    try:
        return typing.get_type_hints(
            _Hinted(hints), getattr(target, "__globals__", {}), local_names, include_extras=True
        )
    except Exception as error:  # a hint is code: it may raise anything
        raise ToolDefinitionError(
            f"Tool {name!r} has a type hint that cannot be resolved ({error}): define or import "
            "the type before the function; for a type local to a function, write @tool above the "
            "function where it is defined"
        ) from error


class _Hinted:
    def __init__(self, hints: dict[str, Any]) -> None:
        self.__annotations__ = hints


class _QuietSchema(GenerateJsonSchema):
    """Leaves a default that JSON cannot express out of the schema without a warning."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012


def _plain_schema(name: str, model: type[BaseModel]) -> dict[str, Any]:
    try:
        schema = model.model_json_schema(by_alias=True, schema_generator=_QuietSchema)
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
            key: value
            if not names and key in ("default", "const", "enum", "examples")
            else _without_titles(value, names=not names and key in ("properties", "$defs"))
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

    try:
        parsed = docstring_parser.parse(text)
    except docstring_parser.ParseError:
        return text, {}
    parts = (parsed.short_description, parsed.long_description)
    description = "\n\n".join(part for part in parts if part)
    texts = {
        name.strip(): param.description or ""
        for param in parsed.params
        for name in param.arg_name.split(",")  # NumPy style: "x, y : int"
    }
    return description or text, texts


def _explain(error: ValidationError) -> list[str]:
    return [
        f"{'.'.join(map(str, e['loc'])) or 'arguments'}: {e['msg']}"
        for e in error.errors(include_url=False, include_context=False, include_input=False)
    ]


def _is_async(function: Callable[..., Any]) -> bool:
    function = _without_partials(function)
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        type(function).__call__
    )
