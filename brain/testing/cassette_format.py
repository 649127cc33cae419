"""The file format of cassettes: model calls as JSON, without secrets. Private."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_brain.states.models import call_data
from agent_brain.states.models.call_data import known_fields, schema_of, tool_to_data
from agent_brain.states.models.interception import RealCall
from agent_brain.states.models.llm import Piece
from agent_brain.tools.errors import AgentBrainError
from agent_brain.tools.scrubber import Scrubber

FORMAT = "agent-brain-cassette"
VERSION = 1


class CassetteError(AgentBrainError):
    """Base class for the errors of cassettes."""


class CassetteFileError(CassetteError, ValueError):
    """Raised when a file is missing, is not a cassette, or has an unknown version."""


class CassetteMismatchError(CassetteError, AssertionError):
    """Raised when the calls that are made differ from those that were recorded."""


# --- the file ---


@dataclass(slots=True)
class RecordedCall:
    """One call of a model.

    Attributes:
        request: The request, from :func:`request_to_data`.
        pieces: What was streamed, piece by piece.
        error: What was raised after that, if anything.
        left: Whether the caller stopped reading before the answer was complete.
    """

    request: dict[str, Any]
    pieces: list[dict[str, Any]]
    error: dict[str, Any] | None = None
    left: bool = False


def write_calls(path: Path, calls: Iterable[RecordedCall]) -> None:
    """Write the file atomically, creating its folder."""
    items = []
    for call in calls:
        item = {"request": call.request, "answer": call.pieces, "error": call.error}
        items.append(known_fields(**item, left=call.left or None))
    data = {"format": FORMAT, "version": VERSION, "calls": items}
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
        return [
            RecordedCall(
                request=dict(item["request"]),
                pieces=[dict(piece) for piece in item["answer"]],
                error=item.get("error"),
                left=bool(item.get("left", False)),
            )
            for item in data["calls"]
        ]
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CassetteFileError(f"The cassette {str(path)!r} is damaged: {error!r}") from error


# --- requests and answers ---


def request_to_data(call: RealCall, scrubber: Scrubber) -> dict[str, Any]:
    """Return the request of a call, as :func:`call_data.request_to_data` does."""
    return call_data.request_to_data(
        call.llm.model,
        call.messages,
        [tool_to_data(tool) for tool in call.tools],
        schema_of(call.output_type),
        scrubber,
    )


def piece_from_data(data: dict[str, Any]) -> Piece:
    """Return one piece as it was streamed.

    Raises:
        CassetteFileError: The data is not a piece of an answer.
    """
    try:
        return call_data.piece_from_data(data)
    except ValueError as error:
        raise CassetteFileError(str(error)) from error
