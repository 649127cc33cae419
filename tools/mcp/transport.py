"""Open streams to a server, and repair its messages. Needs the extra ``mcp``.

The SDK is strict: one malformed tool makes it refuse all tools of a server, and it drops an answer
that it cannot read, so that the call waits for ever.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TextIO, cast

import anyio
import httpx2
from anyio.abc import ObjectReceiveStream, ObjectSendStream
from mcp import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.message import SessionMessage
from mcp_types import (
    INTERNAL_ERROR,
    PARSE_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCResponse,
    Tool,
    jsonrpc_message_adapter,
)
from mcp_types.methods import validate_server_result
from mcp_types.version import LATEST_PROTOCOL_VERSION
from pydantic import ValidationError

from agent_brain.common.secrets import get_logger
from agent_brain.common.text import clean_json, shorten
from agent_brain.common.values import error_details, error_line
from agent_brain.tools.mcp.sign_in import auth_of
from agent_brain.tools.mcp.spec import HttpServer, ServerSpec, StdioServer

logger = get_logger(__name__)

CONNECT_SECONDS = 30.0
STDERR_SHOWN = 2000  # bytes of a server's stderr in an error
REFUSAL_READ = 10_000  # bytes of the body of an HTTP error
STDERR_KEPT = 1_000_000  # bytes of a server's stderr on disk
SAMPLE = 40  # tokens of something unexpected in a message
BROKEN = (anyio.ClosedResourceError, anyio.BrokenResourceError)

# Both take linear time: an unterminated string is one token up to the end.
_TOKENS = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_MEMBER = re.compile(r'"(?P<name>id|method)"\s*:\s*(?P<value>[0-9]{1,18}\b|"[^"\\]*")?')


@asynccontextmanager
async def connect(spec: ServerSpec, wire: Wire) -> AsyncIterator[tuple[Any, Any]]:
    """Open the streams from and to the server, which pass every message through ``wire``."""
    async with AsyncExitStack() as stack:
        stack.callback(wire.opened.set)
        if isinstance(spec, StdioServer):
            parameters = StdioServerParameters(
                command=spec.command,
                args=spec.args,
                env=spec.env,
                cwd=spec.cwd,
                encoding_error_handler="replace",  # else a wrong byte would end the SDK's reader
            )
            # only the file descriptor is used
            transport = stdio_client(parameters, errlog=cast(TextIO, wire.stderr.file))
        else:
            assert isinstance(spec, HttpServer)
            # no limit on reading: a call has its own, and may be silent for long
            limits = httpx2.Timeout(CONNECT_SECONDS, read=None)
            client = _HttpClient(headers=spec.headers, timeout=limits, auth=await auth_of(spec))
            await stack.enter_async_context(client)
            transport = streamable_http_client(spec.url, http_client=client)
        read, write = await stack.enter_async_context(transport)
        wire.opened.set()
        yield Stream(read, wire), Stream(write, wire)


class StderrTail:
    """What a server writes to its stderr, kept for error messages.

    A file rather than a pipe: it needs no reader, and no wait for a grandchild to close it.
    """

    def __init__(self) -> None:
        self.file = tempfile.TemporaryFile("a+b")  # noqa: SIM115 - closed by close()

    def read(self) -> str:
        """Return the end of it."""
        if self.file.closed:
            return ""
        size = os.fstat(self.file.fileno()).st_size
        self.file.seek(max(0, size - STDERR_SHOWN))
        return self.file.read().decode(errors="replace").strip()

    def trim(self) -> None:
        """Empty the file if it has become long; the server appends to it."""
        if not self.file.closed and os.fstat(self.file.fileno()).st_size > STDERR_KEPT:
            self.file.truncate(0)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class _HttpClient(httpx2.AsyncClient):
    """Puts the HTTP status of a refused request into the JSON-RPC error that the SDK reads.

    Except for 404, which tells the SDK that a session is over or a method does not exist.
    """

    async def send(self, request: httpx2.Request, **options: Any) -> httpx2.Response:
        response = await super().send(request, **options)
        if response.status_code < 400 or response.status_code == 404 or request.method != "POST":
            return response
        body = b""
        try:
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > REFUSAL_READ:
                    break
        finally:
            await response.aclose()
        error = _refusal(response, body)
        answer = {"jsonrpc": "2.0", "id": None, "error": error}
        return httpx2.Response(response.status_code, json=answer, request=request)


def _refusal(response: httpx2.Response, body: bytes) -> dict[str, Any]:
    """Return a JSON-RPC error: the server's own if there is one, with the status."""
    status = f"HTTP {response.status_code} {response.reason_phrase}".rstrip()
    if response.status_code in (401, 403):
        status += " (check the credentials in its headers)"
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        answer = None
    error = answer.get("error") if isinstance(answer, dict) else None
    if isinstance(error, dict) and isinstance(error.get("code"), int):
        words = str(error.get("message", ""))
        named = response.status_code in (401, 403)
        return {**error, "message": f"{status}: {words}" if named else words}
    is_text = response.headers.get("content-type", "").partition(";")[0] != "text/html"
    words = shorten(body.decode(errors="replace").strip(), SAMPLE) if is_text else ""
    return {"code": INTERNAL_ERROR, "message": f"{status}: {words}" if words else status}


class Wire:
    """Both directions of a session with a server.

    Attributes:
        over: The session has ended, or must end: also set when the server closes a direction.
        opened: Starting a program must not be cancelled before: nothing would wait for its end.
        stderr: What the server writes there.
        output_schemas: By tool; hidden from the SDK, which would validate results with patterns
            that never end.
        version: The version of the protocol.
    """

    def __init__(self, server: str) -> None:
        self.over = anyio.Event()
        self.opened = anyio.Event()
        self.stderr = StderrTail()
        self.output_schemas: dict[str, Any] = {}
        self.version = LATEST_PROTOCOL_VERSION
        self._server = server

    def received(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Return a message of the server, repaired."""
        if isinstance(item, ValidationError):
            item = _reread(item)
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCResponse) and isinstance(message.result.get("tools"), list):
            rest = {key: value for key, value in message.result.items() if key != "tools"}
            sound = [tool for tool in message.result["tools"] if self._is_sound(tool, rest)]
            message.result = {**rest, "tools": sound}
        return item

    def _is_sound(self, tool: Any, rest: Mapping[str, Any]) -> bool:
        try:
            if isinstance(tool, dict):
                self.output_schemas[str(tool.get("name"))] = tool.pop("outputSchema", None)
            Tool.model_validate(tool, by_name=False)
            validate_server_result("tools/list", self.version, {**rest, "tools": [tool]})
        except ValidationError as error:
            name = tool.get("name") if isinstance(tool, dict) else tool
            logger.warning(
                "A tool of MCP server %r is left out: Tool %s cannot be used: %s",
                self._server,
                shorten(repr(name), SAMPLE),
                error_line(error_details(error)[0]),
            )
            return False
        except (KeyError, ValueError):  # a version that has no such check
            return True
        return True


class Stream(ObjectReceiveStream[Any], ObjectSendStream[SessionMessage]):
    """The stream of messages from or to a server; notifies the wire when it is closed."""

    def __init__(self, stream: Any, wire: Wire) -> None:
        self._stream = stream
        self._wire = wire

    async def receive(self) -> Any:
        """Return the next message."""
        try:
            return self._wire.received(await self._stream.receive())
        except (anyio.EndOfStream, *BROKEN):
            self._wire.over.set()
            raise

    @property
    def last_context(self) -> Any:
        """The context in which the last message was sent."""
        return getattr(self._stream, "last_context", None)

    async def send(self, item: SessionMessage) -> None:
        """Send a message."""
        try:
            await self._stream.send(item)
        except BROKEN:
            self._wire.over.set()
            raise

    async def aclose(self) -> None:
        """Close the stream: the session is over, whether the server has ended or failed."""
        self._wire.over.set()
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
