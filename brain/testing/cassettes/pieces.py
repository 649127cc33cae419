"""What a model streamed, and how it failed, as JSON values and back."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from agent_brain.states import errors
from agent_brain.states.models.llm import Finish, Piece, Thought
from agent_brain.states.usage import Usage
from agent_brain.testing.cassettes.errors import CassetteFileError
from agent_brain.testing.cassettes.scrub import Scrubber
from agent_brain.tools.action import Action
from agent_brain.tools.text import clean

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
"""Data names an error, and gets one of these: nothing is imported by name."""


def pieces_to_data(pieces: Sequence[Piece], scrubber: Scrubber) -> list[dict[str, Any]]:
    """The pieces in order, without secrets, also where a secret came in several chunks."""
    texts = _scrubbed(pieces, scrubber, thought=False)
    thoughts = _scrubbed(pieces, scrubber, thought=True)
    data: list[dict[str, Any]] = []
    for index, piece in enumerate(pieces):
        if isinstance(piece, Action):
            data.append({"action": scrubber.data(piece.model_dump(mode="json", exclude_none=True))})
        elif isinstance(piece, Usage):
            data.append({"usage": dataclasses.asdict(piece)})
        elif isinstance(piece, Finish):
            data.append({"finish": scrubber.data(_finish_to_data(piece))})
        elif isinstance(piece, Thought):
            data.append({"thought": thoughts[index]})
        else:
            data.append({"text": texts[index]})
    return data


def _finish_to_data(finish: Finish) -> dict[str, Any]:
    return {"reason": finish.reason, "provider_data": dict(finish.provider_data)}


def _scrubbed(pieces: Sequence[Piece], scrubber: Scrubber, *, thought: bool) -> dict[int, str]:
    chosen = {
        index: clean(str(piece))
        for index, piece in enumerate(pieces)
        if isinstance(piece, str) and isinstance(piece, Thought) is thought
    }
    return dict(zip(chosen, scrubber.chunks(list(chosen.values())), strict=True))


def piece_from_data(data: dict[str, Any]) -> Piece:
    """One piece, as it was streamed.

    Raises:
        CassetteFileError: It is none.
    """
    try:
        [(kind, value)] = data.items()
        if kind == "text":
            return str(value)
        if kind == "thought":
            return Thought(value)
        if kind == "action":
            return Action.model_validate(value)
        if kind == "usage":
            return Usage(**value)
        if kind == "finish":
            return Finish(**value)
    except (TypeError, ValueError, AttributeError) as error:
        raise CassetteFileError(f"{data!r} is no piece of an answer: {error}") from error
    raise CassetteFileError(f"{data!r} is no piece of an answer: {kind!r} is unknown")


def error_to_data(error: Exception, scrubber: Scrubber) -> dict[str, Any]:
    """What was raised instead of the rest of the answer."""
    data: dict[str, Any] = {"type": type(error).__name__, "message": scrubber.text(str(error))}
    if isinstance(error, errors.LLMError):
        data["message"] = scrubber.text(error.message)
        data |= {"provider": error.provider, "model": error.model, "retries": error.retries}
    return data


def error_from_data(data: dict[str, Any]) -> Exception:
    """The error as it was raised; an LLMError that names the type if that is not known here."""
    name, message = str(data.get("type")), str(data.get("message", ""))
    kind = _ERRORS.get(name)
    if kind is None:
        return errors.LLMError(f"{name}: {message}")
    if not issubclass(kind, errors.LLMError):
        return kind(message)
    fields = {key: data.get(key) for key in ("provider", "model")}
    return kind(message, **fields, retries=int(data.get("retries") or 0))
