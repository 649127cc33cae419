"""One tool call that a model asked for."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, Field, JsonValue

from agent_brain.tools.ids import new_id
from agent_brain.tools.text import clean_json


def _new_call_id() -> str:
    return new_id("call")


_Text = Annotated[str, BeforeValidator(clean_json)]


class Action(BaseModel, frozen=True, defer_build=True):
    """A tool call as data: nothing has happened yet.

    Attributes:
        name: Name of the tool.
        args: Arguments by parameter name, as JSON values (what JSON cannot carry is replaced: lone
            surrogates by U+FFFD, infinite numbers by None).
        id: Ties the call to its result; unique when not given, never empty.
        unparsed: The arguments as the model wrote them, when they could not be read as a JSON
            object; such a call is answered with an error and never run.
    """

    name: _Text
    args: Annotated[dict[str, JsonValue], BeforeValidator(clean_json)] = Field(default_factory=dict)
    id: str = Field(default_factory=_new_call_id, min_length=1)
    unparsed: _Text | None = None

    def __hash__(self) -> int:
        return hash(self.id)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Action:
        return self
