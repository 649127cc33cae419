"""The file: plain JSON, versioned, made to be read and reviewed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_brain.testing.cassettes.errors import CassetteFileError
from agent_brain.tools.files import replace_file

FORMAT = "agent-brain-cassette"
VERSION = 1


@dataclass(slots=True)
class RecordedCall:
    """One call of a model.

    Attributes:
        request: What was asked; see :func:`~.requests.request_to_data`.
        pieces: What was streamed, piece by piece.
        error: What was raised after that, if anything.
        left: The caller left before the answer was complete.
    """

    request: dict[str, Any]
    pieces: list[dict[str, Any]]
    error: dict[str, Any] | None = None
    left: bool = False

    def to_data(self) -> dict[str, Any]:
        """The call as it is written; what says nothing is left out."""
        data: dict[str, Any] = {"request": self.request, "answer": self.pieces}
        if self.error is not None:
            data["error"] = self.error
        if self.left:
            data["left"] = True
        return data


def write_calls(path: Path, calls: list[RecordedCall]) -> None:
    """Write the file, whole or not at all; its folder is made if need be."""
    data = {"format": FORMAT, "version": VERSION, "calls": [call.to_data() for call in calls]}
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n", mode=0o644)


def read_calls(path: Path) -> list[RecordedCall]:
    """The calls in the file.

    Raises:
        CassetteFileError: It is missing, no cassette, or of another version.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise CassetteFileError(f"There is no cassette {str(path)!r}: record it first") from None
    except (OSError, ValueError) as error:
        raise CassetteFileError(f"The cassette {str(path)!r} cannot be read: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise CassetteFileError(f"{str(path)!r} is no cassette of Agent Brain")
    if data.get("version") != VERSION:
        raise CassetteFileError(
            f"The cassette {str(path)!r} has version {data.get('version')!r}, and this release "
            f"reads version {VERSION}: record it again"
        )
    try:
        return [_call(item) for item in data["calls"]]
    except (KeyError, TypeError, AttributeError) as error:
        raise CassetteFileError(f"The cassette {str(path)!r} is damaged: {error!r}") from error


def _call(item: dict[str, Any]) -> RecordedCall:
    return RecordedCall(
        request=dict(item["request"]),
        pieces=[dict(piece) for piece in item["answer"]],
        error=item.get("error"),
        left=bool(item.get("left", False)),
    )
