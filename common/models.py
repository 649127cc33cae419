"""Objects that are made often: models that need no validation, and frozen dataclasses."""

from __future__ import annotations

import dataclasses
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


def set_slots_directly(kind: type) -> None:
    """Give a frozen dataclass with slots an ``__init__`` that takes half the time.

    The one that ``dataclass`` writes looks up ``object.__setattr__`` and the slot for each field.

    Args:
        kind: The class. One without fields, with a ``default_factory`` or ``__post_init__`` is left
            as it is.
    """
    fields = sorted(dataclasses.fields(kind), key=lambda field: bool(field.kw_only))
    made = any(field.default_factory is not dataclasses.MISSING for field in fields)
    if made or not fields or hasattr(kind, "__post_init__"):
        return
    names: dict[str, Any] = {}
    parameters = ["self"]
    for field in fields:
        if field.kw_only and "*" not in parameters:
            parameters.append("*")
        names[f"set_{field.name}"] = getattr(kind, field.name).__set__
        names[f"default_{field.name}"] = field.default
        required = field.default is dataclasses.MISSING
        parameters.append(field.name if required else f"{field.name}=default_{field.name}")
    body = [f"    set_{field.name}(self, {field.name})" for field in fields]
    source = "\n".join([f"def __init__({', '.join(parameters)}):", *body])
    exec(source, names)  # noqa: S102 - as dataclasses does
    init = names["__init__"]
    init.__annotations__ = kind.__init__.__annotations__  # type: ignore[misc]
    init.__qualname__ = f"{kind.__qualname__}.__init__"
    kind.__init__ = init  # type: ignore[misc]
