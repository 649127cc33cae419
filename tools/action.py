"""One tool call that a model asked for."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field, JsonValue

from agent_brain.tools.ids import new_id


def _new_call_id() -> str:
    return new_id("call")


class Action(BaseModel, frozen=True):
    """A tool call as data: nothing has happened yet.

    Attributes:
        name: Name of the tool.
        args: Arguments by parameter name, as JSON values.
        id: Ties the call to its result; unique when not given.
        unparsed: The arguments as the model wrote them, when they could not be read as a JSON
            object; such a call is answered with an error and never run.
    """

    name: str
    args: dict[str, JsonValue] = Field(default_factory=dict)
    id: str = Field(default_factory=_new_call_id)
    unparsed: str | None = None

    def __hash__(self) -> int:
        return hash(self.id)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Action:
        return self
