"""The file of a cassette: recorded model calls as JSON, without secrets."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from agent_brain.common.errors import AgentBrainError
from agent_brain.common.files import keep_database
from agent_brain.memories.trace.recorded_call import RecordedCall
from agent_brain.states.models.call_data import piece_from_data, request_to_data, with_hash

FORMAT = "agent-brain-cassette"
VERSION = 2


class CassetteError(AgentBrainError):
    """Base class for the errors of cassettes."""


class CassetteFileError(CassetteError, ValueError):
    """Raised when a file is missing, is not a cassette, or has an unknown version."""


class CassetteMismatchError(CassetteError, AssertionError):
    """Raised when the calls that are made differ from those that were recorded."""


def write_calls(path: Path, calls: Iterable[RecordedCall]) -> None:
    """Write the file atomically, creating its folder.

    Raises:
        FileExistsError: It is a database.
    """
    keep_database(path)
    data = {"format": FORMAT, "version": VERSION, "calls": [*map(_call_to_data, calls)]}
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    try:
        text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
        temporary.write_text(text, encoding="utf-8", newline="\n")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def read_calls(path: Path) -> list[RecordedCall]:
    """Return the calls in the file.

    Raises:
        CassetteFileError: It is missing, not a cassette, or of another version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CassetteFileError(f"There is no cassette {str(path)!r}: record it first") from None
    except (OSError, ValueError) as error:
        raise CassetteFileError(f"The cassette {str(path)!r} cannot be read: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CassetteFileError(f"{str(path)!r} is not a cassette of Agent Brain")
    if data.get("version") != VERSION:
        raise CassetteFileError(
            f"The cassette {str(path)!r} has version {data.get('version')!r}, but this release "
            f"reads version {VERSION}: record it again"
        )
    try:
        return [*map(_call_from_data, data["calls"])]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CassetteFileError(f"The cassette {str(path)!r} is damaged: {error!r}") from error


def _call_to_data(call: RecordedCall) -> dict[str, Any]:
    """Return the fields of a call without what differs from run to run, such as IDs and times."""
    kept = {"error", "cut"}
    ended = call.model_dump(mode="json", include=kept, exclude_defaults=True)
    return {**request_to_data(call), "response": [*call.response], **ended}


def _call_from_data(data: dict[str, Any]) -> RecordedCall:
    call = RecordedCall.model_validate({**data, "response": data["response"]})
    for piece in call.response:
        piece_from_data(piece)
    return with_hash(call)
