"""Snapshots as files and as plain data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from anyio import to_thread
from pydantic import ValidationError

from agent_brain.memories.errors import MemoryUseError, SnapshotError
from agent_brain.memories.message import Message
from agent_brain.memories.snapshot import Snapshot
from agent_brain.tools.files import replace_file


async def write_export(
    snapshot: Snapshot, path: str | PathLike[str] | None = None
) -> dict[str, Any]:
    """Return ``snapshot`` as plain data; also write it to the file ``path``, atomically."""
    data = snapshot.model_dump(mode="json")
    if path is not None:
        text = json.dumps(data, ensure_ascii=False, indent=1)
        await to_thread.run_sync(replace_file, Path(path), text)
    return data


async def read_export(
    data: Snapshot | Mapping[str, Any] | Iterable[Message | Mapping[str, Any]] | None,
    *,
    path: str | PathLike[str] | None = None,
    text: str | None = None,
) -> Snapshot:
    """Return what :func:`write_export` returned or wrote, or a list of messages, as a snapshot.

    Raises:
        SnapshotError: It is neither.
        MemoryUseError: Not exactly one of ``data``, ``path`` and ``text`` is given.
    """
    if sum(given is not None for given in (data, path, text)) != 1:
        raise MemoryUseError("Give exactly one of: the data itself, path=, or text=")
    if isinstance(data, str | bytes):
        raise MemoryUseError("A file is given as path=, its content as text=")
    if path is not None:
        content = await to_thread.run_sync(Path(path).read_bytes)
        return Snapshot.from_json(content)
    if text is not None:
        if not isinstance(text, str | bytes):
            raise MemoryUseError(f"text= takes the content of a file, not {text!r:.100}")
        return Snapshot.from_json(text)
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
