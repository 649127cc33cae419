"""Repair messages between a server and the SDK's session. Needs the extra ``mcp``.

The SDK is strict: one malformed tool makes it refuse all tools of a server, and it drops an answer
that it cannot read, so that the call waits for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

import anyio
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import (
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCRequest,
    JSONRPCResponse,
    Tool,
    jsonrpc_message_adapter,
)
from mcp_types.methods import validate_server_result
from pydantic import ValidationError

from agent_brain.common.text import clean_json, shorten
from agent_brain.common.values import error_details, error_line

LIST = "tools/list"
BROKEN = (anyio.ClosedResourceError, anyio.BrokenResourceError)
SAMPLE = 40  # tokens of something unexpected in a message

# Both take linear time: an unterminated string is one token up to the end.
_TOKENS = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_MEMBER = re.compile(r'"(?P<name>id|method)"\s*:\s*(?P<value>[0-9]{1,18}\b|"[^"\\]*")?')

Report = Callable[[str, str], None]


class Wire:
    """Both directions of a connection."""

    def __init__(
        self, on_end: Callable[[], None], on_unusable: Report, version: Callable[[], str]
    ) -> None:
        self.on_end = on_end  # called when the server has closed a direction
        # Starting a program must not be cancelled before: nothing would wait for its end.
        self.opened = anyio.Event()
        # By tool; hidden from the SDK, which would validate results with patterns that never end.
        self.output_schemas: dict[str, Any] = {}
        self._on_unusable = on_unusable  # called with a tool that is left out, and the reason
        self._version = version
        self._listings: set[Any] = set()

    def sent(self, item: SessionMessage) -> None:
        """Note a message to the server."""
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method == LIST:
            self._listings.add(message.id)

    def received(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Return a message of the server, repaired."""
        if isinstance(item, ValidationError):
            item = _reread(item)
        if not isinstance(item, SessionMessage):
            return item
        message = item.message
        if isinstance(message, JSONRPCResponse) and message.id in self._listings:
            self._listings.discard(message.id)
            tools = message.result.get("tools")
            if isinstance(tools, list):
                rest = {key: value for key, value in message.result.items() if key != "tools"}
                sound = [tool for tool in tools if self._is_sound(tool, rest)]
                message.result = {**rest, "tools": sound}
        return item

    def _is_sound(self, tool: Any, rest: Mapping[str, Any]) -> bool:
        try:
            if isinstance(tool, dict):
                self.output_schemas[str(tool.get("name"))] = tool.pop("outputSchema", None)
            Tool.model_validate(tool, by_name=False)
            validate_server_result(LIST, self._version(), {**rest, "tools": [tool]})
        except ValidationError as error:
            name = tool.get("name") if isinstance(tool, dict) else tool
            self._on_unusable(shorten(repr(name), SAMPLE), error_line(error_details(error)[0]))
            return False
        except (KeyError, ValueError):  # a version that has no such check
            return True
        return True


class ReadStream(ObjectReceiveStream[Any]):
    """The stream of messages from a server; notifies the wire when it is closed."""

    def __init__(self, stream: Any, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    async def receive(self) -> Any:
        """Return the next message."""
        try:
            return self._wire.received(await self._stream.receive())
        except (anyio.EndOfStream, *BROKEN):
            self._wire.on_end()
            raise

    @property
    def last_context(self) -> Any:
        """The context in which the last message was sent."""
        return getattr(self._stream, "last_context", None)

    async def aclose(self) -> None:
        """Close the stream: the session reads no more, whether the server has ended or failed."""
        self._wire.on_end()
        await self._stream.aclose()


class WriteStream(ObjectSendStream[SessionMessage]):
    """The stream of messages to a server; notifies the wire when it is closed."""

    def __init__(self, stream: Any, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        self._wire.sent(item)
        try:
            await self._stream.send(item)
        except BROKEN:
            self._wire.on_end()
            raise

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()


def _reread(error: ValidationError) -> SessionMessage | Exception:
    """Return a message that could not be read, or an error for the call that it answers."""
    message = _whole_message(error)
    if not isinstance(message, dict) or "method" in message:
        return error
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_python(message, by_name=False))
    except ValidationError:
        pass
    request_id = message.get("id")
    if isinstance(request_id, bool) or not isinstance(request_id, int | str):
        return error
    text = f"an answer that cannot be read: {shorten(json.dumps(message), SAMPLE)}"
    data = ErrorData(code=PARSE_ERROR, message=text)
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=data))


def _whole_message(error: ValidationError) -> Any:
    """Return the message that ``error`` is about: pydantic keeps it as the input."""
    for detail in error.errors(include_url=False):
        found = detail["input"]
        if detail["type"] == "missing" and isinstance(found, dict) and "jsonrpc" in found:
            return clean_json(found)
        if detail["type"] == "json_invalid" and isinstance(found, str):
            try:  # Python accepts broken surrogates, pydantic does not
                return clean_json(json.loads(found))
            except (ValueError, RecursionError):
                return _envelope(found)
    return None


def _envelope(text: str) -> dict[str, Any] | None:
    """Return the id and method of a message that is not JSON or is nested too deeply."""
    found: dict[str, Any] = {}
    depth = 0
    for token in _TOKENS.finditer(text):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
        elif depth == 1 and (member := _MEMBER.match(text, token.start())):
            found[member["name"]] = json.loads(member["value"] or "null", strict=False)
    return clean_json({**found, "text": text}) if found else None
