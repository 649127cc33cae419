"""The schema by which pydantic reads events from JSON."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, get_args, get_type_hints

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from agent_brain.states.errors import RecordedError
from agent_brain.states.events import KINDS, AgentEvent, Event, OtherEvent, Position


def event_schema(kind: type[Event], handler: GetCoreSchemaHandler) -> CoreSchema:
    """Return the schema of an event class; in a union, ``kind`` selects the class.

    That of ``Event`` reads events of all kinds.
    """
    if kind is Event:
        return _any_event_schema(handler)
    place = {
        "kind": core_schema.typed_dict_field(core_schema.literal_schema([kind.kind])),
        "run_id": core_schema.typed_dict_field(core_schema.str_schema()),
        "step": core_schema.typed_dict_field(core_schema.int_schema()),
        "state": core_schema.typed_dict_field(
            core_schema.nullable_schema(core_schema.str_schema())
        ),
        "path": core_schema.typed_dict_field(core_schema.list_schema(core_schema.str_schema())),
    }
    hints = get_type_hints(kind)
    fields = {
        field.name: core_schema.typed_dict_field(
            _field_schema(hints[field.name], handler), required=_is_required(field)
        )
        for field in dataclasses.fields(kind)
        if field.name != "at"
    }

    def build(data: dict[str, Any]) -> Event:
        position = Position(data["run_id"], data["step"], data["state"], tuple(data["path"]))
        return kind(**{name: data[name] for name in fields if name in data}, at=position)

    def of_this_kind(data: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
        found = data.get("kind") if isinstance(data, dict) else None
        if found != kind.kind:  # a single line in the error of a union
            raise PydanticCustomError("kind", "kind is not {kind}", {"kind": repr(kind.kind)})
        return validate(data)

    written = core_schema.no_info_wrap_validator_function(
        of_this_kind, core_schema.typed_dict_schema({**place, **fields}, extra_behavior="ignore")
    )
    from_data = core_schema.no_info_after_validator_function(build, written)
    as_it_is = core_schema.is_instance_schema(kind)
    return core_schema.json_or_python_schema(
        json_schema=from_data,
        python_schema=core_schema.union_schema([as_it_is, from_data]),
        serialization=core_schema.plain_serializer_function_ser_schema(kind.to_dict),
    )


def _any_event_schema(handler: GetCoreSchemaHandler) -> CoreSchema:
    def read(data: Any, validate: core_schema.ValidatorFunctionWrapHandler) -> Any:
        if isinstance(data, Event):
            return data
        kind = data.get("kind") if isinstance(data, dict) else None
        if not isinstance(kind, str) or kind in KINDS:
            return validate(data)
        places = ("run_id", "step", "state", "path")
        run_id, step, state, path = (data.get(name) for name in places)
        position = Position(run_id or "", step or 0, state, tuple(path or ()))
        fields = {name: data[name] for name in data if name != "kind" and name not in places}
        return OtherEvent(kind, fields, at=position)

    return core_schema.no_info_wrap_validator_function(
        read,
        handler.generate_schema(AgentEvent),
        serialization=core_schema.plain_serializer_function_ser_schema(
            lambda event: event.to_dict()
        ),
    )


def _is_required(field: dataclasses.Field[Any]) -> bool:
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def _field_schema(hint: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
    if hint is Exception:
        return _error_schema()
    if Exception in get_args(hint):
        return core_schema.nullable_schema(_error_schema())
    if hint is float:  # NaN was written as null
        number = core_schema.nullable_schema(core_schema.float_schema())
        return core_schema.no_info_after_validator_function(
            lambda value: math.nan if value is None else value, number
        )
    return handler.generate_schema(hint)


def _error_schema() -> CoreSchema:
    text = core_schema.typed_dict_field(core_schema.str_schema())
    written = core_schema.typed_dict_schema({"type": text, "message": text})
    return core_schema.no_info_after_validator_function(
        lambda data: RecordedError(data["type"], data["message"]), written
    )
