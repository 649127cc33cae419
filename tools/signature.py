"""From a signature to a pydantic model of the arguments, and to the JSON Schema of a tool."""

from __future__ import annotations

import functools
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError

from agent_brain.tools.context import ToolContext
from agent_brain.tools.errors import ToolDefinitionError

Parameters = list[tuple[str, str, bool]]  # (parameter, field of the model, passed by position)


def arguments_model(
    name: str, function: Callable[..., Any], texts: dict[str, str], local_names: dict[str, Any]
) -> tuple[Parameters, type[BaseModel], str | None]:
    """A model with one field a parameter; aliases let a parameter have any name.

    Returns:
        The parameters, the model, and the parameter that takes the :class:`ToolContext`, if any.
    """
    hints = _type_hints(name, function, local_names)
    parameters: Parameters = []
    fields: dict[str, Any] = {}
    context: str | None = None
    for index, parameter in enumerate(_open_parameters(name, function)):
        if is_context(hints.get(parameter.name)):
            if context is not None or parameter.kind is parameter.POSITIONAL_ONLY:
                raise ToolDefinitionError(
                    f"Tool {name!r} can take its ToolContext once, by keyword: {parameter}"
                )
            context = parameter.name
            continue
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
        model = create_model(f"{name}_arguments", __config__=config, **fields)
    except PydanticUserError as error:
        raise ToolDefinitionError(f"Tool {name!r}: {error.message}") from error
    return parameters, model, context


def is_context(hint: Any) -> bool:
    """Whether a parameter of that hint takes the :class:`ToolContext`, perhaps as ``… | None``."""
    return hint is ToolContext or ToolContext in typing.get_args(hint)


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


def without_partials(function: Callable[..., Any]) -> Callable[..., Any]:
    """What a ``functools.partial`` object calls in the end."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function inside of ``functools.partial`` objects and decorators."""
    inside: Callable[..., Any] = inspect.unwrap(without_partials(function))
    return inside


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
    """The hints of the parameters, resolved; what is returned is not the model's matter."""
    target: Any = innermost(function)
    if isinstance(target, type):
        target = vars(target).get("__init__", target)
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

    def encode_default(self, dft: Any) -> Any:
        default = super().encode_default(dft)
        try:
            json.dumps(default, allow_nan=False)
        except ValueError as error:  # NaN and infinity, which JSON does not have
            raise PydanticSerializationError(str(error)) from error
        return default


def plain_schema(name: str, model: type[BaseModel]) -> dict[str, Any]:
    """The JSON Schema of the arguments, as short as it can be said."""
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
