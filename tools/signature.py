"""Read a function's signature: the validator of its arguments and their JSON Schema."""

from __future__ import annotations

import functools
import inspect
import json
import typing
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Annotated, Any, NamedTuple, cast

from pydantic import ConfigDict, Field, TypeAdapter
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import PydanticSerializationError, SchemaValidator
from typing_extensions import TypedDict

from agent_brain.common.errors import ToolDefinitionError
from agent_brain.tools.context import ToolContext
from agent_brain.tools.schemas import reworded

_typed_dict: Any = TypedDict  # type checkers know it with literal fields only


class Signature(NamedTuple):
    """The parameters of a function that a model fills in."""

    validator: SchemaValidator  # turns arguments into coerced values by name
    schema: dict[str, Any]
    positional: list[str]  # passed by position
    context: str | None  # takes the ToolContext


def read_signature(
    name: str, function: Callable[..., Any], texts: Mapping[str, str], local_names: dict[str, Any]
) -> Signature:
    """Read the signature of ``function``; its hints may refer to ``local_names``."""
    hints = _type_hints(name, function, local_names)
    fields: dict[str, Any] = {}
    positional: list[str] = []
    context: str | None = None
    for parameter in _open_parameters(name, function):
        if is_context(hints.get(parameter.name)):
            if context is not None or parameter.kind is parameter.POSITIONAL_ONLY:
                raise ToolDefinitionError(
                    f"Tool {name!r} can take its ToolContext once, by keyword: {parameter}"
                )
            context = parameter.name
            continue
        own = Any if parameter.annotation is parameter.empty else parameter.annotation
        hint = hints.get(parameter.name, own)
        fields[parameter.name] = _field(parameter, hint, texts.get(parameter.name, ""))
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(parameter.name)
    adapter = _adapter(name, fields)
    return Signature(
        cast("SchemaValidator", adapter.validator),
        _schema(name, adapter),
        positional,
        context,
    )


def is_context(hint: Any) -> bool:
    """Return whether a parameter with this hint takes a ToolContext, perhaps as ``… | None``."""
    kinds = [hint, *typing.get_args(hint)]
    return any((typing.get_origin(kind) or kind) is ToolContext for kind in kinds)


def without_partials(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function that nested ``functools.partial`` objects call."""
    while isinstance(function, functools.partial):
        function = function.func
    return function


def innermost(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function inside of ``functools.partial`` objects and decorators."""
    inside: Callable[..., Any] = inspect.unwrap(without_partials(function))
    return inside


def _adapter(name: str, fields: dict[str, Any]) -> TypeAdapter[Any]:
    try:
        # a dict rather than a model: its keys may have any name, and it is cheaper to validate
        arguments = _typed_dict(f"{name}_arguments", fields)
        arguments.__pydantic_config__ = ConfigDict(extra="forbid", arbitrary_types_allowed=False)
        return TypeAdapter(arguments)
    except PydanticUserError as error:
        raise ToolDefinitionError(f"Tool {name!r}: {error.message}") from error


def _field(parameter: inspect.Parameter, annotation: Any, text: str) -> Any:
    """Return the annotation of one parameter; a ``Field(…)`` written by the user is kept."""
    options: dict[str, Any] = {}
    if isinstance(parameter.default, FieldInfo):
        annotation = Annotated[annotation, parameter.default]
    elif parameter.default is not parameter.empty:
        options["default"] = parameter.default
    notes = typing.get_args(annotation)[1:] if typing.get_origin(annotation) is Annotated else ()
    described = any(isinstance(note, FieldInfo) and note.description for note in notes)
    if text and not described:
        options["description"] = text
    return Annotated[annotation, Field(**options)] if options else annotation


def _open_parameters(name: str, function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters that no partial has bound."""
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
            f"Tool {name!r} takes {first.name!r}, which no model can fill in: make the tool from "
            "the bound method, as in tool(object.method)"
        )
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound |= function.keywords.keys()
        function = function.func
    found = [parameter for parameter in parameters if parameter.name not in bound]
    for parameter in found:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ToolDefinitionError(
                f"Tool {name!r} takes {parameter}: a model cannot know what to pass; "
                "name every parameter"
            )
    return found


def _type_hints(
    name: str, function: Callable[..., Any], local_names: dict[str, Any]
) -> dict[str, Any]:
    """Return the resolved hints of the parameters; the return annotation may be unresolvable."""
    target: Any = innermost(function)
    if isinstance(target, type):
        target = vars(target).get("__init__", target)
    elif not inspect.isroutine(target):
        target = type(target).__call__
    annotations = getattr(target, "__annotations__", {}).items()
    hints = {name: hint for name, hint in annotations if name != "return"}
    hinted: Any = SimpleNamespace(__annotations__=hints)  # get_type_hints reads any such object
    names = getattr(target, "__globals__", {})
    try:
        return typing.get_type_hints(hinted, names, local_names, include_extras=True)
    except Exception as error:  # a hint is code: it may raise anything
        raise ToolDefinitionError(
            f"Tool {name!r} has a type hint that cannot be resolved ({error}): define or import "
            "the type before the function; for a type local to a function, write @tool above the "
            "function where it is defined"
        ) from error


class _QuietSchema(GenerateJsonSchema):
    """Omits defaults that JSON cannot express, without a warning."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}  # noqa: RUF012

    def encode_default(self, dft: Any) -> Any:
        default = super().encode_default(dft)
        try:
            json.dumps(default, allow_nan=False)
        except ValueError as error:  # NaN and infinity
            raise PydanticSerializationError(str(error)) from error
        return default


def _schema(name: str, adapter: TypeAdapter[Any]) -> dict[str, Any]:
    try:
        schema = adapter.json_schema(by_alias=True, schema_generator=_QuietSchema)
    except PydanticUserError as error:
        raise ToolDefinitionError(
            f"Tool {name!r} has a parameter that JSON cannot express: {error.message}"
        ) from error
    without_titles = reworded(
        {"properties": {}, **schema}, lambda key, text: None if key == "title" else text
    )
    return cast("dict[str, Any]", without_titles)
