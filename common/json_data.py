"""Objects as JSON data of which equal objects can be made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import fields, is_dataclass
from functools import cache, partial
from typing import Any

from pydantic import AliasChoices, BaseModel
from pydantic_core import to_jsonable_python

_PLAIN = (str, int, float, bool, type(None))
_UNKNOWN: Any = object()


def data_of(
    value: Any,
    written: Any = _UNKNOWN,
    *,
    by_alias: bool = False,
    fallback: Callable[[Any], Any] | None = None,
) -> Any:
    """Return ``value`` as JSON data of which an equal object can be made.

    It has all fields, also those with ``exclude=True``, and secrets in plain text. It is read with
    ``by_name=True``.

    Args:
        value: The object.
        written: How pydantic writes it by the schema of its type, with the names of fields
            (``by_alias=False``) and ``round_trip=True``. Default: by its own class.
        by_alias: Whether fields have the names that the JSON Schema of the class gives them.
        fallback: Writes what pydantic cannot.

    Raises:
        PydanticSerializationError: It is not data.
    """
    if type(value) in _PLAIN:
        return value if written is _UNKNOWN else written
    within = partial(data_of, by_alias=by_alias, fallback=fallback)
    if isinstance(value, _secrets()):
        return within(value.get_secret_value())
    if written is _UNKNOWN:
        written = to_jsonable_python(value, by_alias=False, round_trip=True, fallback=fallback)
    if getattr(value, "__pydantic_root_model__", False):
        return within(value.root, written)
    if isinstance(written, dict):
        parts = parts_of(value)
        if parts is None or (written and not parts.keys() & written.keys()):
            if not isinstance(value, Mapping) or len(value) != len(written):
                return written
            parts = dict(zip(written, value.values(), strict=True))  # keys that are no text
        if not _writes_itself(value):
            written = {**dict.fromkeys(parts, _UNKNOWN), **written}
        return {
            _alias_of(value, name) if by_alias else name: (
                within(parts[name], each) if name in parts else each
            )
            for name, each in written.items()
        }
    if isinstance(written, list) and isinstance(value, Collection) and len(value) == len(written):
        return [within(*pair) for pair in zip(value, written, strict=True)]
    return written


@cache
def _secrets() -> Any:
    from pydantic import Secret, SecretBytes, SecretStr  # of a module that is loaded late

    return Secret, SecretBytes, SecretStr


def parts_of(value: Any) -> dict[str, Any] | None:
    """Return what an object has under names; None if it has nothing under names."""
    if isinstance(value, BaseModel):
        return dict(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, Mapping) and all(isinstance(key, str) for key in value):
        return dict(value)
    return None


def _writes_itself(value: Any) -> bool:
    """Return whether its class says how it is written as a whole."""
    decorators = getattr(value, "__pydantic_decorators__", None)
    return decorators is not None and bool(decorators.model_serializers)


def _alias_of(value: Any, name: str) -> str:
    """Return the name under which a schema has a field of an object."""
    field = getattr(type(value), "__pydantic_fields__", {}).get(name)
    alias = None if field is None else field.validation_alias
    if isinstance(alias, AliasChoices):
        alias = next((each for each in alias.choices if isinstance(each, str)), None)
    return alias if isinstance(alias, str) else name
