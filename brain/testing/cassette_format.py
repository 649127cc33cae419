"""The file format of cassettes: requests, answers and errors as JSON, without secrets. Private."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from agent_brain.memories.message import Attachment, Message
from agent_brain.states import errors
from agent_brain.states.models.interception import RealCall
from agent_brain.states.models.llm import Finish, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action
from agent_brain.tools.errors import AgentBrainError
from agent_brain.tools.secrets import HIDDEN, is_secret_field, secret_spans, secret_values
from agent_brain.tools.text import clean, clean_json

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
        items.append(_known(**item, left=call.left or None))
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


# --- secrets ---


class Scrubber:
    """Replaces secrets in texts and data by ``[hidden]``.

    Args:
        patterns: Regular expressions of further secrets; of one with a group named ``secret`` only
            that group is replaced.
        params: Parameters of a model: keys, tokens and all headers among them are secret.
    """

    def __init__(
        self,
        patterns: Iterable[str | re.Pattern[str]] = (),
        params: Mapping[str, Any] | None = None,
    ) -> None:
        self._values = frozenset(secret_values(params or {}))
        self._patterns = tuple(re.compile(pattern) for pattern in patterns)

    def text(self, text: str) -> str:
        """Return ``text`` without secrets."""
        return self.chunks([text])[0]

    def chunks(self, chunks: Sequence[str]) -> list[str]:
        """Return the chunks of one text without the secrets in them, or cut across them."""
        kept = list("".join(chunks))
        for start, stop in secret_spans("".join(kept), self._values, self._patterns):
            kept[start:stop] = [HIDDEN, *[""] * (stop - start - 1)]
        ends = accumulate(map(len, chunks))
        return [
            "".join(kept[end - len(chunk) : end]) for chunk, end in zip(chunks, ends, strict=True)
        ]

    def data(self, value: Any) -> Any:
        """Return JSON values without secrets: those in texts, and fields named like one."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list | tuple):
            return [self.data(item) for item in value]
        if not isinstance(value, Mapping):
            return value
        return {
            key: HIDDEN if isinstance(item, str) and is_secret_field(str(key)) else self.data(item)
            for key, item in value.items()
        }


# --- requests ---


def request_to_data(call: RealCall, scrubber: Scrubber) -> dict[str, Any]:
    """Return the request without secrets, ids and times, so that equal requests compare equal.

    Tool calls are numbered in the order in which the conversation mentions them; attachments are
    represented by their digest.
    """
    numbers: dict[str, str] = {}
    request = {
        "model": call.llm.model,
        "messages": [_message(message, numbers) for message in call.messages],
        "tools": [
            {"name": t.name, "description": t.description, "input_schema": t.input_schema}
            for t in call.tools
        ],
        "output_schema": call.output_type and call.output_type.model_json_schema(),
    }
    return dict(scrubber.data(clean_json(request)))


def _message(message: Message, numbers: dict[str, str]) -> dict[str, Any]:
    def number(call_id: str) -> str:
        return numbers.setdefault(call_id, f"call {len(numbers) + 1}")

    calls = [
        {"id": number(call.id), "name": call.name, "args": call.args, "unparsed": call.unparsed}
        for call in message.tool_calls
    ]
    return _known(
        role=message.role.value,
        content=message.content,
        name=message.name,
        tool_calls=[_known(**call) for call in calls] or None,
        tool_call_id=message.tool_call_id and number(message.tool_call_id),
        is_error=message.is_error or None,
        attachments=[_attachment(attachment) for attachment in message.attachments] or None,
    )


def _attachment(attachment: Attachment) -> dict[str, Any]:
    source = attachment.data or attachment.url or ""
    by_url = attachment.data is None and not source.startswith("data:")
    digest = hashlib.sha256(source.encode("utf-8", "replace")).hexdigest()
    return _known(
        media_type=attachment.media_type,
        url=source if by_url else None,
        sha256=None if by_url else digest,
        name=attachment.name,
    )


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


# --- answers ---


def pieces_to_data(pieces: Sequence[Piece], scrubber: Scrubber) -> list[dict[str, Any]]:
    """Return the pieces in order, without secrets, even those that were cut across chunks."""
    texts: dict[int, str] = {}
    for thought in (False, True):
        chosen = {
            index: clean(str(piece))
            for index, piece in enumerate(pieces)
            if isinstance(piece, str) and isinstance(piece, Thought) is thought
        }
        texts |= zip(chosen, scrubber.chunks([*chosen.values()]), strict=True)
    return [_piece_to_data(piece, texts.get(n, ""), scrubber) for n, piece in enumerate(pieces)]


def _piece_to_data(piece: Piece, text: str, scrubber: Scrubber) -> dict[str, Any]:
    match piece:
        case Action():
            return {"action": scrubber.data(piece.model_dump(mode="json", exclude_none=True))}
        case Usage():
            return {"usage": dataclasses.asdict(piece)}
        case Finish():
            known = {"reason": piece.reason, "provider_data": dict(piece.provider_data)}
            return {"finish": scrubber.data(known)}
        case Thought():
            return {"thought": text}
        case _:
            return {"text": text}


_READERS: dict[str, Callable[[Any], Piece]] = {
    "text": str,
    "thought": Thought,
    "action": Action.model_validate,
    "usage": lambda fields: Usage(**fields),
    "finish": lambda fields: Finish(**fields),
}


def piece_from_data(data: dict[str, Any]) -> Piece:
    """Return one piece as it was streamed.

    Raises:
        CassetteFileError: The data is not a piece of an answer.
    """
    try:
        [(kind, value)] = data.items()
        return _READERS[kind](value)
    except KeyError as error:
        problem = f"{error} is unknown"
    except (TypeError, ValueError, AttributeError) as error:
        problem = str(error)
    raise CassetteFileError(f"{data!r} is not a piece of an answer: {problem}")


_ERRORS: dict[str, type[Exception]] = {
    kind.__name__: kind
    for kind in (
        errors.ContextWindowError,
        errors.LLMAuthenticationError,
        errors.LLMBadRequestError,
        errors.LLMConnectionError,
        errors.LLMError,
        errors.LLMQuotaError,
        errors.LLMRateLimitError,
        errors.LLMServerError,
        errors.LLMTimeoutError,
        ConnectionError,
        OSError,
        RuntimeError,
        TimeoutError,
        TypeError,
        ValueError,
    )
}
"""Errors by the names in files, so that nothing is imported by a name from a file."""


def error_to_data(error: Exception, scrubber: Scrubber) -> dict[str, Any]:
    """Return what was raised instead of the rest of the answer."""
    name = type(error).__name__
    if not isinstance(error, errors.LLMError):
        return {"type": name, "message": scrubber.text(str(error))}
    known = {"provider": error.provider, "model": error.model, "retries": error.retries}
    return {"type": name, "message": scrubber.text(error.message), **known}


def error_from_data(data: dict[str, Any]) -> Exception:
    """Return the error as it was raised, or an LLMError that names an unknown type."""
    name, message = str(data.get("type")), str(data.get("message", ""))
    kind = _ERRORS.get(name)
    if kind is None:
        return errors.LLMError(f"{name}: {message}")
    if not issubclass(kind, errors.LLMError):
        return kind(message)
    fields = {key: data.get(key) for key in ("provider", "model")}
    return kind(message, **fields, retries=int(data.get("retries") or 0))
