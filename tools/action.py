"""Actions: the tool calls that a model requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    Field,
    JsonValue,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from agent_brain.common.ids import ids_of
from agent_brain.common.text import clean_json, to_compact_json
from agent_brain.tools.frozen import FrozenDict, frozen

DEEPEST = 100  # how deep the arguments of a model's call may be nested
PLAIN = frozenset({str, int, float, bool, type(None)})
_new_call_id = ids_of("call")


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


def readable(action: Action) -> Action:
    """Return a model's call; one whose arguments are nested too deeply, as text only."""
    if PLAIN.issuperset(map(type, action.args.values())):
        return action
    level: list[Any] = [action.args]
    for _ in range(DEEPEST):
        parts = [each.values() if isinstance(each, dict) else each for each in level]
        level = [item for part in parts for item in part if isinstance(item, dict | list)]
        if not level:
            return action
    return Action(name=action.name, id=action.id, unparsed=to_compact_json(action.args))
