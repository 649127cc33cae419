"""Structured content of messages: plain data, and the pydantic models that it becomes again."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from pydantic import BaseModel, JsonValue, ValidationError

from agent_brain.common.registry import Registry
from agent_brain.common.values import error_lines
from agent_brain.memories.errors import MemoryDefinitionError, MemoryUseError

DATA = "structured_data"
"""The key in the metadata of a message under which its structured content is stored."""

_M = TypeVar("_M", bound=BaseModel)
_registry = Registry[BaseModel]("schema", MemoryDefinitionError, {})


def register_schema(schema: type[_M], name: str | None = None) -> type[_M]:
    """Register a pydantic model, so that messages can hold its objects; return it.

    Loading a message imports nothing by name: its data becomes an object of a model that this
    program has registered, or stays data. Also a decorator::

        @register_schema
        class City(BaseModel):
            name: str

        message = Message.assistant("It is Porto.").with_data(City(name="Porto"))
        assert message.data(City) == City(name="Porto")

    Args:
        schema: The model.
        name: What it is stored under; by default the name of the class. Case is ignored.

    Raises:
        MemoryDefinitionError: It is not a pydantic model, or the name belongs to another one.
    """
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        raise MemoryDefinitionError(f"{schema!r} is not a pydantic model: register its class")
    _registry.register(name or schema.__name__, schema)
    return schema


def to_data(value: BaseModel) -> dict[str, JsonValue]:
    """Return an object of a registered model as plain data.

    Raises:
        MemoryUseError: Its model is not registered.
    """
    for name, schema in _registry.factories.items():
        if schema is type(value):
            return {"schema": name, "value": value.model_dump(mode="json")}
    raise MemoryUseError(
        f"{type(value).__name__} is not registered: call register_schema() with its class"
    )


def from_data(stored: Any) -> BaseModel | None:
    """Return what :func:`to_data` has made plain data of; None if it has not.

    Raises:
        MemoryUseError: Its model is not registered, or the data does not fit it.
    """
    if not isinstance(stored, dict) or stored.keys() != {"schema", "value"}:
        return None
    name, value = str(stored["schema"]), stored["value"]
    schema = _registry.find(name)
    if schema is None:
        known = ", ".join(_registry.names()) or "none"
        raise MemoryUseError(
            f"There is no schema named {name!r}; registered are: {known}. Call register_schema() "
            "with its class before messages are read"
        )
    try:
        return cast("type[BaseModel]", schema).model_validate(value)
    except ValidationError as error:
        wrong = "; ".join(error_lines(error, name))
        raise MemoryUseError(f"The data of a message does not fit its schema: {wrong}") from error
