"""All that a memory holds at one moment, as one JSON-serialisable value."""

from __future__ import annotations

from pydantic import BaseModel, Field, JsonValue, ValidationError
from pydantic_core import from_json

from agent_brain.memories.control import Control
from agent_brain.memories.errors import SnapshotError
from agent_brain.memories.message import Message
from agent_brain.tools.values import error_lines

VERSION = 1


class Snapshot(BaseModel, extra="forbid"):
    """A memory as plain data: ``model_dump_json()`` writes it, :meth:`from_json` reads it.

    Attributes:
        version: Of this format.
        goal: The current goal: no message or one.
        messages: Everything else in order; memories that know the goal's place in the order keep
            the goal in here too, at that place.
        control: Where the run stood.
        views: What particular memories add (a summary, a to-do list), by their own names.
    """

    version: int = VERSION
    goal: list[Message] = Field(default_factory=list)
    messages: list[Message] = Field(default_factory=list)
    control: Control = Field(default_factory=Control)
    views: dict[str, JsonValue] = Field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str | bytes) -> Snapshot:
        """Read what ``model_dump_json()`` wrote. Plain data only: nothing in it is executed.

        Raises:
            SnapshotError: It is not a snapshot, or of a version that this library does not know.
        """
        try:
            data = from_json(text)
        except ValueError as error:
            raise SnapshotError(f"Not a snapshot of a memory: no JSON: {error}") from error
        if not isinstance(data, dict) or "version" not in data:
            raise SnapshotError('Not a snapshot of a memory: no JSON object with a "version"')
        _check_version(data["version"])
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = next(error_lines(error, "the text"))
            raise SnapshotError(f"Not a snapshot of a memory: {first}") from error

    def check(self) -> None:
        """Refuse versions that this library does not know.

        Raises:
            SnapshotError: It is of one.
        """
        _check_version(self.version)


def _check_version(version: object) -> None:
    if version != VERSION:
        raise SnapshotError(
            f"The snapshot has version {version!r}; this library reads version {VERSION}. Read it "
            "with the library that wrote it, or a newer one"
        )
