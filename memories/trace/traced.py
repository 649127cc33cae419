"""How recorded calls are stored: each part of a request once, in the entry that first has it.

Requests of one run are alike: each has most messages of the one before. So a call is stored with
the parts of its request (messages, tools, schemas, parameters) that are new, and refers to the
others by their places among the parts of its *chunk*: the calls from one with a whole request to
the next such call. A chunk ends when its entries have become longer than a whole request, so that
old chunks can be removed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from agent_brain.memories.journal.entry import Entry
from agent_brain.memories.message import Message
from agent_brain.memories.store.kinds import TRACED, entry
from agent_brain.memories.trace.model_calls import ModelCallRecord, ToolResultRecord, Traced
from agent_brain.tools.action import Action
from agent_brain.tools.ids import new_id

MODEL_CALL, TOOL_RESULT = TRACED
SMALL = 64_000  # characters; a shorter chunk is not ended
_PLAIN = (
    *("run_id", "step", "state", "part", "branch", "move", "response_id", "seconds", "model"),
    "purpose",
)
_SHOWN = {
    *("id", "role", "content", "name", "tool_calls", "tool_call_id", "is_error", "attachments"),
    *("created_at", "cause_by", "metadata"),
}
_UNIQUE = ("id", "created_at", "cause_by")  # fields that do not make another message of it


class ChunkWriter:
    """Writes the entries of calls, chunk after chunk."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begin a chunk: earlier entries may not be there."""
        self._chunk = new_id("chunk")
        self._places: dict[str, int] = {}  # of the parts, by what they are
        self._sizes: list[int] = []
        self._by_message: dict[Message, int] = {}

    def entry(self, call: Traced) -> Entry:
        """Return the entry of a call; :meth:`restart` if it cannot be stored."""
        if isinstance(call, ToolResultRecord):
            return entry(TOOL_RESULT, _result_data(call))
        data = self._data(call)
        if not data["at"]:
            return entry(MODEL_CALL, data)
        sizes, spans = self._sizes, data["messages"]
        whole = sum(sizes[at] for first, stop in spans for at in range(first, stop))
        if sum(sizes) > max(2 * whole, SMALL):
            self.restart()
            data = self._data(call)
        return entry(MODEL_CALL, data)

    def begins_chunk(self, made: Entry) -> bool:
        """Return whether an entry has a whole request."""
        data: Any = made.data
        return made.kind == MODEL_CALL and not data["at"]

    def _data(self, call: ModelCallRecord) -> dict[str, Any]:
        at, new = len(self._sizes), list[JsonValue]()
        messages = [self._message(message, new) for message in call.messages]
        tools = [self._part(dict(tool), new) for tool in call.tools]
        schema = call.output_schema
        plain: dict[str, Any] = {name: getattr(call, name) for name in _PLAIN}
        return plain | {
            "path": [*call.path],
            "time": call.time.isoformat(),
            "hash": call.request_hash,
            "chunk": self._chunk,
            "at": at,
            "messages": [*_spans(messages)],
            "tools": [*_spans(tools)],
            "output_schema": None if schema is None else self._part(dict(schema), new),
            "params": self._part(dict(call.params), new) if call.params else None,
            "new": new,
            "response": [*map(dict, call.response)],
            "error": None if call.error is None else dict(call.error),
            "attempts": [*map(dict, call.attempts)],
            "cut": call.cut,
        }

    def _message(self, message: Message, new: list[JsonValue]) -> int:
        known = self._by_message.get(message)
        if known is None:
            data = message.model_dump(mode="json", include=_SHOWN, exclude_defaults=True)
            key = {name: value for name, value in data.items() if name not in _UNIQUE}
            known = self._by_message[message] = self._part(data, new, key)
        return known

    def _part(self, data: Any, new: list[JsonValue], key: Any = None) -> int:
        text = json.dumps(data if key is None else key, ensure_ascii=False, sort_keys=True)
        if text not in self._places:
            self._places[text] = len(self._sizes)
            self._sizes.append(len(text))
            new.append(data)
        return self._places[text]


class ChunkReader:
    """Reads the entries of calls in order, without those whose chunk has lost its beginning."""

    def __init__(self) -> None:
        self._chunks: dict[str, list[Any]] = {}
        self._messages: dict[tuple[str, int], Message] = {}

    def read(self, entries: Iterable[Entry]) -> Iterator[Traced]:
        """Yield the calls that the entries hold."""
        for item in entries:
            data: Any = item.data
            if item.kind == TOOL_RESULT:
                yield _read_result(data, item.seq)
            elif item.kind == MODEL_CALL and (call := self._call(data, item.seq)) is not None:
                yield call

    def _call(self, data: Mapping[str, Any], number: int) -> ModelCallRecord | None:
        chunk = data["chunk"]
        parts = self._chunks.setdefault(chunk, [])
        if len(parts) != data["at"]:
            return None
        parts += data["new"]
        plain: dict[str, Any] = {name: data.get(name) for name in _PLAIN}
        schema, params = data["output_schema"], data["params"]
        return ModelCallRecord(
            number=number,
            path=tuple(data["path"]),
            time=datetime.fromisoformat(data["time"]),
            request_hash=data["hash"],
            messages=tuple(self._message(chunk, at) for at in _places(data["messages"])),
            tools=tuple(parts[at] for at in _places(data["tools"])),
            output_schema=None if schema is None else parts[schema],
            params={} if params is None else parts[params],
            response=tuple(data["response"]),
            error=data["error"],
            attempts=tuple(data["attempts"]),
            cut=data["cut"],
            **plain,
        )

    def _message(self, chunk: str, at: int) -> Message:
        key = chunk, at
        if key not in self._messages:
            self._messages[key] = Message.model_validate(self._chunks[chunk][at])
        return self._messages[key]


def _spans(places: Sequence[int]) -> Iterator[list[int]]:
    """Yield places that follow each other as pairs: the first one, and the one behind the last."""
    span: list[int] = []
    for place in places:
        if span and place == span[1]:
            span[1] += 1
            continue
        if span:
            yield span
        span = [place, place + 1]
    if span:
        yield span


def _places(spans: Sequence[Sequence[int]]) -> Iterator[int]:
    for first, stop in spans:
        yield from range(first, stop)


def _result_data(call: ToolResultRecord) -> dict[str, Any]:
    return {
        "run_id": call.run_id,
        "step": call.step,
        "state": call.state,
        "path": [*call.path],
        "part": call.part,
        "branch": call.branch,
        "action": call.action.model_dump(mode="json"),
        "content": call.content,
        "is_error": call.is_error,
        "media": [*map(dict, call.media)],
    }


def _read_result(data: Mapping[str, Any], number: int) -> ToolResultRecord:
    fields = {**data, "path": tuple(data["path"]), "media": tuple(data["media"])}
    fields["action"] = Action.model_validate(data["action"])
    return ToolResultRecord(number=number, **fields)
