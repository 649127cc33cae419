"""Model calls as plain data, without secrets: as they are recorded, compared and played again."""

from __future__ import annotations

import dataclasses
import difflib
import hashlib
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from re import Pattern
from typing import Any

from pydantic import BaseModel

from agent_brain.common.secrets import Scrubber
from agent_brain.common.text import clean, clean_json, to_compact_json
from agent_brain.memories.message import Message
from agent_brain.memories.runs.human_requests import EDITED
from agent_brain.memories.trace.recorded_call import RecordedCall, without_bytes
from agent_brain.memories.views.truncated_results import FULL_RESULT
from agent_brain.states import errors
from agent_brain.states.hooks import ModelRequest
from agent_brain.states.models.llm import LLM, ArgumentsDelta, Finish, Piece, ProviderCall, Thought
from agent_brain.states.usage import Usage
from agent_brain.tools.action import Action, readable
from agent_brain.tools.base import BaseTool


def request_to_data(call: RecordedCall) -> dict[str, Any]:
    """Return the request of a call without IDs and times, so that equal requests compare equal.

    Tool calls are numbered in the order in which the conversation mentions them; attachments are
    represented by their digest.
    """
    numbers: dict[str, str] = {}
    request = {
        "model": call.model,
        "messages": [_message(message, numbers) for message in call.messages],
        "tools": [*call.tools],
        "output_schema": call.output_schema,
    }
    return dict(clean_json(request))


def tool_to_data(tool: BaseTool) -> dict[str, Any]:
    """Return what a model is told of a tool."""
    return {"name": tool.name, **tool.to_dict()[tool.name]}


def schema_of(output_type: type[BaseModel] | None) -> dict[str, Any] | None:
    """Return the JSON Schema of the data that a model is asked for."""
    return None if output_type is None else output_type.model_json_schema()


def hash_of(request: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a request, as :func:`request_to_data` returns it."""
    text = json.dumps(request, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _message(message: Message, numbers: dict[str, str]) -> dict[str, Any]:
    def number(call_id: str) -> str:
        return numbers.setdefault(call_id, f"call {len(numbers) + 1}")

    attached = without_bytes(message).attachments
    calls = [
        {"id": number(call.id), "name": call.name, "args": call.args, "unparsed": call.unparsed}
        for call in message.tool_calls
    ]
    return known_fields(
        role=message.role.value,
        content=message.content,
        name=message.name,
        tool_calls=[known_fields(**call) for call in calls] or None,
        tool_call_id=message.tool_call_id and number(message.tool_call_id),
        is_error=message.is_error or None,
        attachments=[known_fields(**attachment.model_dump()) for attachment in attached] or None,
    )


def known_fields(**fields: Any) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {name: value for name, value in fields.items() if value is not None}


def pieces_to_data(pieces: Sequence[Piece], scrubber: Scrubber) -> list[dict[str, Any]]:
    """Return the pieces in order, without secrets, even those that were cut across chunks."""
    texts: dict[int, str] = {}
    streams: dict[Any, dict[int, str]] = {}  # texts, thoughts, and the arguments of each call
    for index, piece in enumerate(pieces):
        if isinstance(piece, str):
            streams.setdefault(type(piece), {})[index] = clean(str(piece))
        elif isinstance(piece, ArgumentsDelta):
            streams.setdefault(piece.id, {})[index] = clean(piece.text)
    for chosen in streams.values():
        texts |= zip(chosen, scrubber.chunks([*chosen.values()]), strict=True)
    return [_piece_to_data(piece, texts.get(n, ""), scrubber) for n, piece in enumerate(pieces)]


def _piece_to_data(piece: Piece, text: str, scrubber: Scrubber) -> dict[str, Any]:
    match piece:
        case Action():
            call = readable(piece).model_dump(mode="json", exclude_none=True)
            return {"action": scrubber.data(call)}
        case Usage():
            return {"usage": dataclasses.asdict(piece)}
        case ProviderCall():
            return {"provider_call": scrubber.data(dataclasses.asdict(piece))}
        case Finish():
            known = {"reason": piece.reason, "provider_data": dict(piece.provider_data)}
            if piece.metadata:
                known["metadata"] = dict(piece.metadata)
            return {"finish": scrubber.data(known)}
        case ArgumentsDelta():
            return {"arguments": {"id": piece.id, "name": piece.name, "text": text}}
        case Thought():
            return {"thought": text}
        case _:
            return {"text": text}


async def play(call: RecordedCall) -> AsyncGenerator[Piece, None]:
    """Yield the pieces of a recorded response, and raise the error that it ended with."""
    for piece in call.response:
        yield piece_from_data(piece)
    if call.error is not None:
        raise error_from_data(call.error)


def joined(pieces: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield the pieces with texts that follow each other joined, without arguments in pieces."""
    for kind, group in groupby(pieces, key=lambda piece: next(iter(piece))):
        if kind in ("text", "thought"):
            yield {kind: "".join(piece[kind] for piece in group)}
        elif kind != "arguments":
            yield from group


_READERS: dict[str, Callable[[Any], Piece]] = {
    "text": str,
    "thought": Thought,
    "action": Action.model_validate,
    "arguments": lambda fields: ArgumentsDelta(**fields),
    "provider_call": lambda fields: ProviderCall(**fields),
    "usage": lambda fields: Usage(**fields),
    "finish": lambda fields: Finish(**fields),
}


def piece_from_data(data: Mapping[str, Any]) -> Piece:
    """Return one piece as it was streamed.

    Raises:
        ValueError: The data is not a piece of a response.
    """
    try:
        [(kind, value)] = data.items()
        return _READERS[kind](value)
    except KeyError as error:
        problem = f"{error} is unknown"
    except (TypeError, ValueError, AttributeError) as error:
        problem = str(error)
    raise ValueError(f"{data!r} is not a piece of an answer: {problem}")


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


def error_from_data(data: Mapping[str, Any]) -> Exception:
    """Return the error as it was raised, or an LLMError that names an unknown type."""
    name, message = str(data.get("type")), str(data.get("message", ""))
    kind = _ERRORS.get(name)
    if kind is None:
        return errors.LLMError(f"{name}: {message}")
    if not issubclass(kind, errors.LLMError):
        return kind(message)
    fields = {key: data.get(key) for key in ("provider", "model")}
    return kind(message, **fields, retries=int(data.get("retries") or 0))


MOST = 20_000  # messages whose hidden form is kept


class RequestReader:
    """Hides the secrets in requests, once in each message.

    Args:
        patterns: Regular expressions of further secrets.
    """

    def __init__(self, patterns: Iterable[str | Pattern[str]] = ()) -> None:
        self._patterns = tuple(patterns)
        self._hidden: dict[str, tuple[Message, Message]] = {}  # by ID: as it is, as it is recorded
        self._scrubbers: dict[int, tuple[LLM | None, Scrubber]] = {}

    def scrubber_of(self, llm: LLM | None) -> Scrubber:
        """Return what hides the secrets of a model."""
        known = self._scrubbers.get(id(llm))
        if known is None:
            known = self._scrubbers[id(llm)] = llm, Scrubber(self._patterns, _params_of(llm))
        return known[1]

    def read(self, request: ModelRequest) -> RecordedCall:
        """Return a request without secrets, as a call that has no response yet."""
        scrubber = self.scrubber_of(request.llm)
        call = RecordedCall(
            model=request.model,
            params=scrubber.data(clean_json(_plain(_params_of(request.llm)))),
            messages=tuple(self._message(message, scrubber) for message in request.messages),
            tools=tuple(scrubber.data(clean_json(tool_to_data(tool))) for tool in request.tools),
            output_schema=scrubber.data(schema_of(request.output_type)),
        )
        return with_hash(call)

    def _message(self, message: Message, scrubber: Scrubber) -> Message:
        known = self._hidden.get(message.id)
        if known is not None and known[0] is message:
            return known[1]
        if len(self._hidden) >= MOST:
            self._hidden.clear()
        hidden = hide_secrets(message, scrubber)
        self._hidden[message.id] = message, hidden
        return hidden


def with_hash(call: RecordedCall) -> RecordedCall:
    """Return ``call`` with the hash of its request."""
    return call.model_copy(update={"request_hash": hash_of(request_to_data(call))})


def hide_secrets(message: Message, scrubber: Scrubber) -> Message:
    """Return ``message`` as it is recorded: what a model sees of it, without secrets."""
    message = without_bytes(message)
    changed: dict[str, Any] = {}
    if (content := scrubber.text(message.content)) != message.content:
        changed["content"] = content
    if message.tool_calls:
        calls = tuple(hide_in_action(call, scrubber) for call in message.tool_calls)
        if calls != message.tool_calls:
            changed["tool_calls"] = calls
    if message.attachments:
        changed["attachments"] = tuple(
            a.model_copy(update={"url": scrubber.data(a.url)}) for a in message.attachments
        )
    if message.metadata:
        sent = {k: v for k, v in message.metadata.items() if k == "provider_data"}
        changed["metadata"] = scrubber.data(sent)
    return message.model_copy(update=changed) if changed else message


def tool_result(message: Message) -> Message:
    """Return the result of a call as the tool returned it, with what a person decided."""
    full = message.metadata.get(FULL_RESULT)
    content = full if isinstance(full, str) else message.content.removeprefix(EDITED)
    decided = {name: value for name, value in message.metadata.items() if name == "decision"}
    return message.model_copy(update={"content": content, "metadata": decided})


def hide_in_action(action: Action, scrubber: Scrubber) -> Action:
    """Return a call of a tool without secrets in its arguments."""
    hidden = {"args": scrubber.data(dict(action.args)), "unparsed": scrubber.data(action.unparsed)}
    return action.model_copy(update=hidden)


def _params_of(llm: LLM | None) -> dict[str, Any]:
    params: Any = getattr(llm, "params", None)
    return params if isinstance(params, dict) else {}


def _plain(value: Any) -> Any:
    """Return ``value`` with text in place of what JSON does not have."""
    if isinstance(value, Mapping):
        return {str(name): _plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | int | float) else repr(value)


def describe_request(call: RecordedCall) -> str:
    """Return the last message of a request in a few words."""
    if not call.messages:
        return "no messages"
    last = call.messages[-1]
    words = " ".join(last.content.split())
    return f"{last.role}: {words[:77] + '…' if len(words) > 78 else words}"


def similarity(one: RecordedCall, other: RecordedCall) -> float:
    """Return how similar two requests are, from 0 to 1."""
    text, another = (to_compact_json(request_to_data(call)) for call in (one, other))
    return difflib.SequenceMatcher(None, text, another, autojunk=False).quick_ratio()


def differing_fields(recorded: RecordedCall, made: RecordedCall) -> str:
    """Return the names of what differs."""
    one, other = request_to_data(recorded), request_to_data(made)
    return ", ".join(name for name in one if one[name] != other[name]).replace("_", " ")


def explain_request(recorded: RecordedCall, made: RecordedCall) -> str:
    """Return the lines that differ, with those around them; empty if none do."""
    lines = difflib.unified_diff([*_lines(recorded)], [*_lines(made)], lineterm="", n=2)
    shown = ["…" if line.startswith("@@") else line for line in [*lines][3:]]  # after the headers
    return "\n".join(f"  {line}" for line in shown)


def _lines(call: RecordedCall) -> Iterator[str]:
    request = request_to_data(call)
    yield f"model: {request['model']}"
    for message in request["messages"]:
        yield from _block(f"{message['role']}:", message["content"])
        for name in sorted(message.keys() - {"role", "content"}):
            yield f"    {name}: {to_compact_json(message[name])}"
    for tool in request["tools"]:
        yield from _block(f"tool {tool.get('name')}:", str(tool.get("description", "")))
        yield from _schema("input_schema", tool.get("input_schema"))
    yield from _schema("output_schema", request["output_schema"])


def _schema(name: str, schema: Any) -> Iterator[str]:
    if schema is not None:
        yield from _block(f"{name}:", json.dumps(schema, indent=2, ensure_ascii=False))


def _block(title: str, text: str) -> Iterator[str]:
    first, *rest = text.split("\n")
    yield f"{title} {first}"
    yield from (f"    {line}" for line in rest)
