"""Unions of several objects as output types: which member data is, by the name of the member."""

from __future__ import annotations

import json
import re
import types
import typing
from collections.abc import Mapping
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import InitErrorDetails, PydanticCustomError

from agent_brain.common.values import error_lines, misnamed_fields
from agent_brain.tools.schemas import resolved

T = TypeVar("T")


class Member:
    """A member of a union.

    Attributes:
        adapter: Validates data of it.
        kind: The type.
        name: Its name.
        schema: The JSON Schema of an object with it: of itself, or with the field ``value``.

    Args:
        name: Its name.
        kind: The type.
    """

    def __init__(self, name: str, kind: Any) -> None:
        self.name = name
        self.kind = kind
        self.adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = resolved(self.adapter.json_schema())
        self.is_object = schema.get("type") == "object"
        self._properties = schema.get("properties", {})
        self._open = not self.is_object or bool(schema.get("additionalProperties"))
        if not self.is_object:
            definitions = schema.pop("$defs", {})
            schema = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
            schema |= {"$defs": definitions} if definitions else {}
        self.schema: dict[str, Any] = schema

    def read(self, data: Any) -> Any:
        """Return the value of JSON data; that of a type without fields may stand in ``value``.

        Raises:
            ValidationError: It does not fit.
        """
        if not self.is_object and isinstance(data, dict) and data.keys() == {"value"}:
            data = data["value"]
        return well_named(self.name, self.adapter.validate_json(json.dumps(data)), data)

    def unknown_fields(self, data: Any) -> list[str]:
        """Return the fields in ``data`` that the type does not have."""
        if self._open or not isinstance(data, dict):
            return []
        return [key for key in data if key not in self._properties]


def members_of(kind: Any) -> dict[str, Member]:
    """Return the members of a union with at least two types of objects, by name; else nothing.

    A union with a discriminator says itself which member data is.
    """
    if get_origin(kind) is Annotated:
        kind, *notes = get_args(kind)
        if any(isinstance(note, FieldInfo) and note.discriminator is not None for note in notes):
            return {}
    if get_origin(kind) not in (typing.Union, types.UnionType):
        return {}
    members: dict[str, Member] = {}
    for part in get_args(kind):
        name = name_of(part)
        if name in members:
            name = f"{name}_{len(members) + 1}"
        members[name] = Member(name, part)
    return members if sum(member.is_object for member in members.values()) > 1 else {}


def choose(name: str, members: Mapping[str, Member], data: Any) -> Any:
    """Return the value of ``data``, which names its member, or fits one without unknown fields.

    Args:
        name: The name of the union.
        members: Its members.
        data: JSON data: ``{"type": "NAME", "value": …}``, or the value alone.

    Raises:
        ValidationError: It fits none of them; with the errors of the named one, or of each.
    """
    if isinstance(data, dict) and data.keys() == {"type", "value"} and data["type"] in members:
        return members[data["type"]].read(data["value"])
    if isinstance(data, dict) and data.keys() == {"value"}:
        data = data["value"]
    problems: list[str] = []
    for member in members.values():
        if unknown := member.unknown_fields(data):
            problems.append(f"{member.name}: it has no field {', '.join(map(repr, unknown))}")
            continue
        try:
            return member.read(data)
        except ValidationError as error:
            problems += (f"{member.name}: {line}" for line in error_lines(error))
    raise _unfit(name, members, data, problems)


def well_named(name: str, read: T, data: Any) -> T:
    """Return ``read``, the value of ``data``; see :func:`misnamed_fields`.

    Args:
        name: The name of its type.
        read: The value.
        data: JSON data.

    Raises:
        ValidationError: An object in it has unknown fields, and none of its own.
    """
    if not (problems := [*misnamed_fields(read, data, some=True)]):
        return read
    details: list[InitErrorDetails] = [
        {"type": PydanticCustomError("misnamed", "{what}", {"what": each}), "input": data}
        for each in problems
    ]
    raise ValidationError.from_exception_data(name, details)


def _unfit(
    name: str, members: Mapping[str, Member], data: Any, problems: list[str]
) -> ValidationError:
    what = 'name one of {members} in "type", and give its data in "value" ({problems})'
    names = ", ".join(map(repr, members))
    problem = PydanticCustomError(
        "no_member", what, {"members": names, "problems": "; ".join(problems)}
    )
    return ValidationError.from_exception_data(name, [InitErrorDetails(type=problem, input=data)])


def name_of(kind: Any) -> str:
    """Return the name of a member, without signs that the name of a tool cannot have.

    Args:
        kind: The type, or its name.
    """
    name = getattr(kind, "__name__", None) or str(kind)
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:40]
