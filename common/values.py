"""Checks of values that callers and models pass."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from decimal import Decimal
from enum import Enum
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError
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
