"""The tool calls that a model requests, whose arguments stay what they were, and their results."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from agent_brain.common.ids import ids_of
from agent_brain.common.models import set_names
from agent_brain.common.text import clean_json, to_compact_json

DEEPEST = 100  # how deep the arguments of a model's call may be nested
PLAIN = frozenset({str, int, float, bool, type(None)})
_new_call_id = ids_of("call")
_MEDIA_TYPE = re.compile(r"[^/\s]+/[^/\s]+")


def _refuse(*args: object, **kwargs: object) -> NoReturn:
    raise TypeError(
        "The arguments of a call cannot be changed: make another call, with "
        "action.model_copy(update={'args': {**action.args, …}})"
    )


class FrozenDict(dict[str, JsonValue]):
    """A dict that cannot be changed; a copy of it can."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> dict[str, JsonValue]:
        return dict(self)

    def __deepcopy__(self, memo: object) -> dict[str, JsonValue]:
        return thawed(self)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (thawed(self),)


class FrozenList(list[JsonValue]):
    """A list that cannot be changed; a copy of it can."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __copy__(self) -> list[JsonValue]:
        return list(self)

    def __deepcopy__(self, memo: object) -> list[JsonValue]:
        return [_thaw(item) for item in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, ([_thaw(item) for item in self],)


_KINDS = frozenset({FrozenDict, FrozenList})


def frozen(value: Mapping[str, JsonValue]) -> FrozenDict:
    """Return a copy of a JSON object that cannot be changed, nor can what is in it."""
    return FrozenDict((key, _freeze(item)) for key, item in value.items())


def thawed(value: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return a copy of a JSON object that may be changed, as may what is in it."""
    if _KINDS.isdisjoint(map(type, value.values())):
        return dict(value)
    return {key: _thaw(item) for key, item in value.items()}


def _freeze(value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return frozen(value)
    return FrozenList(map(_freeze, value)) if isinstance(value, list) else value


def _thaw(value: JsonValue) -> JsonValue:
    if type(value) is FrozenDict:
        return thawed(value)
    return [_thaw(item) for item in value] if type(value) is FrozenList else value


def _json_object(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    """Return arguments as a dict of JSON values; ordinary ones need no further validation."""
    if type(value) is dict:
        for key, item in value.items():
            kind = type(item)
            if type(key) is not str or not key.isascii():
                break
            if kind is not int and kind is not bool and not (kind is str and item.isascii()):
                break
        else:
            return FrozenDict(value)
    return frozen(validate(clean_json(value)))


_Text = Annotated[str, BeforeValidator(clean_json)]
_Args = Annotated[dict[str, JsonValue], WrapValidator(_json_object)]


class Action(BaseModel, frozen=True, defer_build=True):
    """A tool call as data; creating one runs nothing.

    Example::

        Action(name="shipping_cost", args={"weight_kg": 3, "express": True})

    Attributes:
        name: Name of the tool.
        args: Arguments by parameter name, as JSON values, which cannot be changed: a call with
            others is another one. Lone surrogates become U+FFFD, infinite numbers None.
        id: Connects the call to its result. Default: a new unique ID.
        unparsed: The arguments as the model wrote them, if they are not a JSON object, or nested
            more than 100 deep. Such a call is answered with an error and not executed.
    """

    name: _Text
    args: _Args = Field(default_factory=dict)
    id: str = Field(default_factory=_new_call_id, min_length=1)
    unparsed: _Text | None = None

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Return a copy, with other values for the fields in ``update``, which are validated."""
        if not update:
            return super().model_copy(deep=deep)
        return type(self)(**{**dict(self), **update})

    def __hash__(self) -> int:
        return hash(self.id)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Action:
        return self


_NAMES = {*Action.model_fields}  # one set for all calls: it would be a quarter of the size of each


def readable(action: Action) -> Action:
    """Return a model's call; one whose arguments are nested too deeply, as text only."""
    if type(action) is Action:
        set_names(action, _NAMES)
    if PLAIN.issuperset(map(type, action.args.values())):
        return action
    level: list[Any] = [action.args]
    for _ in range(DEEPEST):
        parts = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for part in parts for item in part if isinstance(item, dict | list)]
        if not level:
            return action
    return Action(name=action.name, id=action.id, unparsed=to_compact_json(action.args))


@dataclass(frozen=True, slots=True)
class Media:
    """An image or another file returned by a tool.

    Attributes:
        media_type: MIME type, such as ``"image/png"``.
        data: The bytes, base64-encoded.
        name: File name, if any.

    Raises:
        ValueError: The type or the bytes are missing, or the bytes are not base64-encoded.
    """

    media_type: str
    data: str
    name: str | None = None

    def __post_init__(self) -> None:
        if not _MEDIA_TYPE.fullmatch(self.media_type) or not self.data:
            raise ValueError("media need a type such as 'image/png', and base64-encoded bytes")
        try:
            b64decode("".join(self.data.split()), validate=True)
        except ValueError as error:
            raise ValueError(f"the bytes of media must be base64-encoded: {error}") from None


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool that returns media besides text.

    Example::

        return ToolResult("The chart", media=(Media("image/png", encoded),))

    Attributes:
        content: What the model reads: text unchanged, any other value as JSON.
        media: Shown to models that accept images.
    """

    content: Any
    media: tuple[Media, ...] = ()
