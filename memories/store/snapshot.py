"""Snapshots: the content of a memory as one JSON-serialisable value."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import BaseModel, Field, JsonValue, ValidationError
from pydantic_core import from_json

from agent_brain.common.models import assembler
from agent_brain.common.values import error_lines
from agent_brain.memories.control import Control
from agent_brain.memories.errors import SnapshotError
from agent_brain.memories.message import Message

VERSION = 1


class Snapshot(BaseModel, extra="forbid", defer_build=True):
    """The content of a memory as plain data.

    Example::

        text = (await memory.snapshot()).model_dump_json()
        await other.restore(Snapshot.from_json(text))

    Attributes:
        version: Version of the format.
        goal: The current goal, if any: a list of at most one message.
        messages: All other messages in order. Memories that know the position of the goal include
            it here too, at that position.
        control: The state of the run.
        views: Additional data of particular memories (a summary, a to-do list), by name.
    """

    version: int = VERSION
    goal: list[Message] = Field(default_factory=list)
    messages: list[Message] = Field(default_factory=list)
    control: Control = Field(default_factory=Control.fresh)
    views: dict[str, JsonValue] = Field(default_factory=dict)

    @classmethod
    def trusted(
        cls,
        goal: list[Message],
        messages: Sequence[Message],
        control: Control,
        views: dict[str, JsonValue],
    ) -> Snapshot:
        """Return a snapshot of what a built-in memory holds, without validating it."""
        values = {"goal": goal, "messages": messages, "control": control, "views": views}
        return _assemble({"version": VERSION, **values})

    @classmethod
    def from_json(cls, text: str | bytes) -> Snapshot:
        """Read the JSON of a snapshot. It is plain data: nothing in it is executed.

        Raises:
            SnapshotError: The text is not a snapshot, or its version is not supported.
        """
        try:
            data = from_json(text)
        except ValueError as error:
            raise SnapshotError(f"Not a snapshot of a memory: not valid JSON: {error}") from error
        if not isinstance(data, dict) or "version" not in data:
            raise SnapshotError('Not a snapshot of a memory: not a JSON object with a "version"')
        _check_version(data["version"])
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            first = next(error_lines(error, "the text"))
            raise SnapshotError(f"Not a snapshot of a memory: {first}") from error

    def check(self) -> None:
        """Check that the version is supported.

        Raises:
            SnapshotError: It is not.
        """
        _check_version(self.version)


def check_snapshot(snapshot: object) -> None:
    """Check that ``snapshot`` is a snapshot of a supported version.

    Raises:
        SnapshotError: It is not.
    """
    if not isinstance(snapshot, Snapshot):
        raise SnapshotError(
            f"restore() takes a Snapshot, not {type(snapshot).__name__}: read its JSON with "
            "Snapshot.from_json(text), and what export() returned with load(data)"
        )
    snapshot.check()


_assemble = assembler(Snapshot)


def _check_version(version: object) -> None:
    if version != VERSION:
        raise SnapshotError(
            f"The snapshot has version {version!r}, and this library reads version {VERSION}. Use "
            "the version of the library that wrote it, or a newer one"
        )
