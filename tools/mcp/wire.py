"""Messages between a server and the SDK's session, mended on their way. Needs the extra ``mcp``.

The SDK takes messages as they should be: one tool that is not described as it must be costs all
tools of a server, and an answer that cannot be read is dropped, so that its call waits for ever.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, cast

import anyio
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

from agent_brain.tools.text import clean_json, shorten

LIST = "tools/list"
BROKEN = (anyio.ClosedResourceError, anyio.BrokenResourceError)
SAMPLE = 40  # tokens of something unexpected that are repeated

# Both are linear in the text: a string that does not end is one token up to the end.
_TOKENS = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_MEMBER = re.compile(r'"(?P<name>id|method)"\s*:\s*(?P<value>[0-9]{1,18}\b|"[^"\\]*")?')

Report = Callable[[str, str], None]


class Wire:
    """Both directions of a connection.

    Args:
        on_end: Called when the server has closed its side, in either direction.
        on_unusable: Called with the name of a tool that is left out, and why.
        version: Tells the protocol version of the session.

    Attributes:
        opened: The server can be spoken to, or could not be started. A program must not be
            cancelled before: nobody would wait for its end.
        output_schemas: What tools say of their results, by the names of the tools. It is kept from
            the SDK, which would hold results against it with patterns that may never end.
    """

    def __init__(
        self, on_end: Callable[[], None], on_unusable: Report, version: Callable[[], str]
    ) -> None:
        self.on_end = on_end
        self.opened = anyio.Event()
        self.output_schemas: dict[str, Any] = {}
        self._on_unusable = on_unusable
        self._version = version
        self._listings: set[Any] = set()

    def sent(self, item: SessionMessage) -> None:
        """Look at a message to the server."""
        message = item.message
        if isinstance(message, JSONRPCRequest) and message.method == LIST:
            self._listings.add(message.id)

    def received(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """A message of the server, as it should have been."""
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
            self._on_unusable(shorten(repr(name), SAMPLE), _first_problem(error))
            return False
        except (KeyError, ValueError):  # a version that the SDK knows better than we do
            return True
        return True


class Reading:
    """The stream of what a server says."""

    def __init__(self, stream: Any, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    async def receive(self) -> Any:
        """The next message."""
        try:
            return self._wire.received(await self._stream.receive())
        except (anyio.EndOfStream, *BROKEN):
            self._wire.on_end()
            raise

    async def __anext__(self) -> Any:
        try:
            return self._wire.received(await self._stream.__anext__())
        except (StopAsyncIteration, *BROKEN):
            self._wire.on_end()
            raise

    def __aiter__(self) -> Reading:
        return self

    @property
    def last_context(self) -> Any:
        """The context that the last message was sent in."""
        return getattr(self._stream, "last_context", None)

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    async def __aenter__(self) -> Reading:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        self._wire.on_end()  # the session reads no more, whether the server has ended or failed
        return cast("bool | None", await self._stream.__aexit__(*error))


class Writing:
    """The stream of what is said to a server."""

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

    async def __aenter__(self) -> Writing:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> bool | None:
        return cast("bool | None", await self._stream.__aexit__(*error))


def _reread(error: ValidationError) -> SessionMessage | Exception:
    """What could not be read, after all; or the error of the call that it answers."""
    message = clean_json(_whole_message(error))
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
    """The message that ``error`` is about: pydantic keeps it with what is missing in it."""
    for detail in error.errors(include_url=False):
        found = detail["input"]
        if detail["type"] == "missing" and isinstance(found, dict) and "jsonrpc" in found:
            return found
        if detail["type"] == "json_invalid" and isinstance(found, str):
            try:  # Python's reader takes broken surrogates, which pydantic's does not
                return json.loads(found)
            except (ValueError, RecursionError):
                return _envelope(found)
    return None


def _envelope(text: str) -> dict[str, Any] | None:
    """The id of a message that is not JSON, or nested too deeply; and its method, if it has one."""
    found: dict[str, Any] = {}
    depth = 0
    for token in _TOKENS.finditer(text):
        if token[0] in ("{", "["):
            depth += 1
        elif token[0] in ("}", "]"):
            depth -= 1
        elif depth == 1 and (member := _MEMBER.match(text, token.start())):
            found[member["name"]] = json.loads(member["value"] or "null", strict=False)
    return {**found, "text": text} if found else None


def _first_problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return f"{where}: {first['msg']}" if where else str(first["msg"])
