"""Snapshots as files, as plain data, and as changes that make a memory hold them."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from anyio import to_thread
from pydantic import ValidationError

from agent_brain.common.files import replace_file
from agent_brain.common.text import clean
from agent_brain.memories.base import Memory
from agent_brain.memories.errors import MemoryUseError, SnapshotError
from agent_brain.memories.message import Message
from agent_brain.memories.store.erasure import Erasure, forget_in_control
from agent_brain.memories.store.events import Added, Change, Checkpointed, GoalSet, ValueSet
from agent_brain.memories.store.log import Held
from agent_brain.memories.store.many import ON_LOOP_LETTERS, in_thread_if_many
from agent_brain.memories.store.run_record import RunRecord
from agent_brain.memories.store.snapshot import Snapshot

if TYPE_CHECKING:
    from agent_brain.memories.control import Control

Loadable: TypeAlias = Snapshot | Mapping[str, Any] | Iterable[Message | Mapping[str, Any]] | None


class Exported(Memory):
    """The methods of memories that are written to files and read from them."""

    async def snapshot_held(self) -> Snapshot:
        """Return :meth:`snapshot`, whose messages may be decoded when they are read."""
        return await self.snapshot()

    async def export(self, path: str | PathLike[str] | None = None) -> dict[str, Any]:
        """Return all that the memory holds as plain data; also write it to a file, atomically.

        Messages are without the fields that have their default.

        Args:
            path: A JSON file to write; an existing one is replaced.

        Raises:
            FileExistsError: The file is a database, such as a journal; it stays as it is.
        """
        snapshot = await self.snapshot_held()
        data = snapshot.model_copy(update={"messages": [], "views": {}}).model_dump(mode="json")
        data["messages"] = await in_thread_if_many(
            snapshot.messages,
            lambda each: [m.model_dump(mode="json", exclude_defaults=True) for m in each],
        )
        data["views"] = snapshot.views
        if path is not None:
            await to_thread.run_sync(_write, data, Path(path))
        return data

    async def load(
        self,
        data: Loadable = None,
        *,
        path: str | PathLike[str] | None = None,
        text: str | None = None,
        merge: bool = False,
    ) -> int:
        """Replace the content by an export. Nothing changes unless all of it can be read.

        Args:
            data: What :meth:`export` returned, or messages, or dicts of their fields.
            path: A file that :meth:`export` wrote, instead of ``data``.
            text: The content of such a file, instead of ``data``.
            merge: Add the messages that are not here yet, instead of replacing everything.

        Returns:
            How many messages the memory holds now.

        Raises:
            SnapshotError: It is not an export.
            MemoryUseError: Not exactly one of ``data``, ``path`` and ``text`` is given.
        """
        snapshot = await read_export(data, path=path, text=text)
        if merge:
            await self.update([*snapshot.messages, *snapshot.goal])
        else:
            if not isinstance(data, Snapshot | Mapping) and path is None and text is None:
                snapshot.control = control = self.control.model_copy(deep=True)  # of the session
                forget_in_control(control, Erasure(everything=True, for_good=True), live=False)
            await self.restore(snapshot)
        return len(await self.goal()) + len(await self.dump())


def _write(data: dict[str, Any], path: Path) -> None:
    replace_file(path, clean(json.dumps(data, ensure_ascii=False, indent=1)))


async def read_export(
    data: Loadable,
    *,
    path: str | PathLike[str] | None = None,
    text: str | bytes | None = None,
) -> Snapshot:
    """Return what :meth:`Exported.export` returned or wrote, or a list of messages, as a snapshot.

    Raises:
        SnapshotError: It is neither.
        MemoryUseError: Not exactly one of ``data``, ``path`` and ``text`` is given.
    """
    if sum(given is not None for given in (data, path, text)) != 1:
        raise MemoryUseError("Give exactly one of: the data itself, path=, or text=")
    if isinstance(data, str | bytes):
        raise MemoryUseError("A file is given as path=, its content as text=")
    if path is not None:
        text = await to_thread.run_sync(Path(path).read_bytes)
    if text is not None:
        if not isinstance(text, str | bytes):
            raise MemoryUseError(f"text= takes the content of a file, not {text!r:.100}")
        return await in_thread_if_many(text, Snapshot.from_json, ON_LOOP_LETTERS)
    if isinstance(data, Snapshot):
        return data
    try:
        if isinstance(data, Mapping):
            if not {"version", "messages"} & data.keys():  # loading it would remove everything
                raise SnapshotError(
                    "This is not an export: it has no 'messages'. clear() removes all messages"
                )
            snapshot = Snapshot.model_validate(data)
        else:
            snapshot = Snapshot(messages=[Message.model_validate(item) for item in data or ()])
    except (ValidationError, TypeError) as error:
        raise SnapshotError(f"This is neither an export nor a list of messages: {error}") from error
    snapshot.check()
    return snapshot


def content_of(snapshot: Snapshot, control: Control) -> list[Change]:
    """Return the changes that make an empty memory that of ``snapshot``, with ``control``."""
    messages: Sequence[Message] = snapshot.messages
    if not isinstance(messages, Held):
        first: dict[str, Message] = {}
        for message in (*messages, *snapshot.goal):
            first.setdefault(message.id, message)
        messages = [*first.values()]
    goal = [GoalSet(snapshot.goal[-1].id)] if snapshot.goal else []
    values = [ValueSet(name, value) for name, value in copy.deepcopy(snapshot.views).items()]
    added = [Added(messages)] if messages else []
    return [*goal, *values, *added, Checkpointed(RunRecord().reduced(control))]
