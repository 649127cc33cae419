"""Checks of values that callers and models pass."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
    from pydantic.fields import FieldInfo
    from pydantic_core import ErrorDetails


def is_count(value: Any, *, least: int = 1) -> bool:
    """Return whether ``value`` is a whole number of at least ``least``; booleans are not."""
    return not isinstance(value, bool) and isinstance(value, Integral) and int(value) >= least


def check_count(
    error: type[Exception], name: str, value: Any, *, least: int = 1, optional: bool = False
) -> None:
    """Raise ``error`` if an option is not a whole number of at least ``least``.

    Args:
        error: The class of the error.
        name: The name of the option.
        value: Its value.
        least: The smallest number that is allowed.
        optional: Whether it may be None.
    """
    if not (is_count(value, least=least) or (optional and value is None)):
        none = ", or None" if optional else ""
        raise error(f"{name}={value!r}: it must be a whole number of at least {least}{none}")


def takes(function: Any, *arguments: str) -> bool:
    """Return whether something is a function that can be called with these arguments."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # a built-in function that does not tell
        return callable(function)
    return True


def check_function(
    error: type[Exception], name: str, value: Any, *arguments: str, optional: bool = False
) -> None:
    """Raise ``error`` if an option is not a function that can be called with these arguments.

    Args:
        error: The class of the error.
        name: The name of the option.
        value: Its value.
        arguments: What it is called with, in order.
        optional: Whether it may be None.
    """
    if not (takes(value, *arguments) or (optional and value is None)):
        none = ", or None" if optional else ""
        raise error(
            f"{name}={value!r:.200}: it must be a function that is called as "
            f"{name}({', '.join(arguments)}){none}"
        )


def is_amount(value: Any, *, zero: bool = False) -> bool:
    """Return whether ``value`` is a number greater than 0, or 0 if ``zero``; booleans are not."""
    if isinstance(value, bool) or not isinstance(value, Real | Decimal):
        return False
    number = float(value)
    return number > 0 or (zero and number == 0)


def check_members(adapter: TypeAdapter[Any]) -> None:
    """Check that pydantic reads the members of the Enums in a type from its own JSON of them.

    Raises:
        ValueError: It does not, as of a member whose value is a tuple.
    """
    from pydantic import TypeAdapter

    for kind in _enums_in(adapter.core_schema):
        own: TypeAdapter[Enum] = TypeAdapter(kind)
        for member in kind:
            try:
                own.validate_json(own.dump_json(member))
            except ValueError:
                raise ValueError(
                    f"JSON does not have the value of {member}: use texts or numbers"
                ) from None


def _enums_in(schema: Any) -> Iterator[type[Enum]]:
    """Yield the Enums in a core schema that no function reads."""
    if isinstance(schema, list | tuple):
        for each in schema:
            yield from _enums_in(each)
    elif isinstance(schema, Mapping):
        kind = str(schema.get("type"))
        if kind == "enum":
            yield schema["cls"]
        elif not kind.startswith("function"):
            yield from _enums_in([*schema.values()])


def error_details(error: ValidationError) -> list[ErrorDetails]:
    """Return what pydantic found wrong, without its links, contexts and inputs.

    Defaults that could not be made, as other fields are wrong, are left out.
    """
    found = error.errors(include_url=False, include_context=False, include_input=False)
    return [each for each in found if each["type"] != "default_factory_not_called"]


PLAIN = "plain"  # the type of an error whose message alone says what is wrong


def error_lines(error: ValidationError, root: str = "") -> Iterator[str]:
    """Yield ``"place.in.the.value: what is wrong"`` for each problem; ``root`` names the value.

    If there are errors of the type ``PLAIN``, it yields their messages alone.
    """
    details = error_details(error)
    if plain := [detail["msg"] for detail in details if detail["type"] == PLAIN]:
        yield from plain
        return
    for detail in details:
        yield error_line(detail, root)


def error_line(detail: ErrorDetails, root: str = "") -> str:
    """Return one problem as a line; see :func:`error_lines`."""
    place = ".".join(map(str, detail["loc"])) or root
    return f"{place}: {detail['msg']}" if place else detail["msg"]


def misnamed_fields(
    read: object, data: Any, place: str = "", *, some: bool = False
) -> Iterator[str]:
    """Yield what is wrong with objects that have unknown fields in place of their own.

    Pydantic ignores unknown fields, and reads an object whose fields all have defaults from any
    JSON. Unknown fields of an object that has all of its own are no mistake, and neither are those
    that its class allows, or reads itself with a validator.

    Args:
        read: What pydantic has read.
        data: What it was read from.
        place: Where in the whole it is.
        some: Whether it is enough that an object has some of its own fields.
    """
    from pydantic import BaseModel, RootModel

    if isinstance(read, RootModel):
        yield from misnamed_fields(read.root, data, place, some=some)
    elif isinstance(read, Mapping) and isinstance(data, Mapping):
        for name, item in read.items():
            yield from misnamed_fields(item, data.get(name), _inside(place, name), some=some)
    elif isinstance(read, list | tuple) and isinstance(data, list | tuple):
        for number, (item, given) in enumerate(zip(read, data, strict=False)):
            yield from misnamed_fields(item, given, _inside(place, number), some=some)
    elif isinstance(data, Mapping) and (names := _names_of_fields(type(read))) is not None:
        if isinstance(read, BaseModel):
            own = read.model_fields_set
        else:
            own = {name for name, keys in names.items() if any(key in data for key in keys)}
        known = {key for name in own for key in names.get(name, ())}
        unknown = [str(key) for key in data if key not in known]
        missing = [name for name in names if name not in own]
        lost = unknown and (missing or not names) and not (some and own)
        if lost and not _reads_unknown(type(read)):
            lacks = f" and lacks {', '.join(map(repr, missing))}" if missing else ""
            at = f"{place}: " if place else ""
            yield (
                f"{at}as {type(read).__name__} it has the unknown fields "
                f"{', '.join(map(repr, unknown))}{lacks}"
            )
        for name, keys in names.items():
            for key in keys:
                if name in own and key in data:
                    item = getattr(read, name, None)
                    yield from misnamed_fields(item, data[key], _inside(place, key), some=some)


def _inside(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


def _names_of_fields(kind: type) -> dict[str, list[str]] | None:
    """Return the fields of a pydantic model or a dataclass, with their names in data."""
    found = getattr(kind, "__pydantic_fields__", None)
    if found is not None:
        return {name: [name, *_aliases(each)] for name, each in found.items()}
    if is_dataclass(kind):
        return {each.name: [each.name] for each in fields(kind) if each.init}
    return None


def _aliases(field: FieldInfo) -> Iterator[str]:
    alias = field.validation_alias or field.alias
    for choice in getattr(alias, "choices", [alias]):
        path = getattr(choice, "path", [choice])
        if isinstance(path[0], str):
            yield path[0]


def _reads_unknown(kind: Any) -> bool:
    """Return whether a class allows unknown fields, or has a validator of what it is read from."""
    config = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", {})
    validators = getattr(kind, "__pydantic_decorators__", None)
    return config.get("extra") == "allow" or any(
        each.info.mode != "after"
        for each in (validators.model_validators.values() if validators else ())
    )
