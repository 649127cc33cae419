"""Pydantic models from values that need no validation."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

from pydantic import BaseModel

M = TypeVar("M", bound=BaseModel)
MOST_SHARED = 29  # keys of an object that share the table of its class

# The slots' own setters: object.__setattr__ would look each of them up at every call.
set_dict, set_names, set_extra, set_private = (
    vars(BaseModel)[f"__{name}__"].__set__
    for name in ("dict", "pydantic_fields_set", "pydantic_extra", "pydantic_private")
)


def assembler(model: type[M]) -> Callable[[dict[str, Any]], M]:
    """Return a function that makes a ``model`` of a dict with every field, without validation."""
    names = set(model.model_fields)  # one set for all: with every name in it, nothing is added
    new = model.__new__

    def assemble(values: dict[str, Any]) -> M:
        made = new(model)
        set_dict(made, values)
        set_names(made, names)
        set_extra(made, None)
        set_private(made, None)
        return made

    return assemble


def template(model: type[BaseModel], values: dict[str, Any]) -> dict[str, Any]:
    """Return ``values`` as a dict to copy: instances of ``model`` share its table of keys.

    Copies take less memory and time than a new dict with the same keys (PEP 412). More keys than
    CPython shares are in a dict without spare room.
    """
    if len(values) > MOST_SHARED:
        return {**values}
    made = model.__new__(model)
    for name, value in values.items():
        object.__setattr__(made, name, value)
    return vars(made)


def maker_of_defaults(
    model: type[BaseModel], *, without: Collection[str] = ()
) -> Callable[[], dict[str, Any]]:
    """Return a function that makes the default of every field of ``model``, but those named."""
    fields = [(name, field) for name, field in model.model_fields.items() if name not in without]
    fixed = template(model, {name: field.default for name, field in fields})
    made = {name: field.default_factory for name, field in fields if field.default_factory}

    def make() -> dict[str, Any]:
        values = fixed.copy()
        for name, factory in made.items():
            values[name] = factory()  # type: ignore[call-arg]  # none of ours takes arguments
        return values

    return make
