"""The connection to one server, which is restarted once if it dies. Needs the extra ``mcp``.

Everything here runs in the thread of :mod:`agent_brain.tools.mcp.host`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import anyio
import httpx2
from anyio.abc import TaskGroup
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolResult,
    Implementation,
    Tool,
    ToolListChangedNotification,
)
from mcp_types.version import LATEST_PROTOCOL_VERSION
from pydantic import ValidationError

from agent_brain.common.secrets import get_logger
from agent_brain.common.text import shorten
from agent_brain.tools.errors import McpServerError
from agent_brain.tools.mcp.spec import HttpServer, ServerSpec
from agent_brain.tools.mcp.transport import StderrTail, connect
from agent_brain.tools.mcp.wire import SAMPLE, Wire

logger = get_logger(__name__)

MOST_PAGES = 1000
SPAWN_SECONDS = 1.0
LISTEN_AGAIN_SECONDS = 1.0
MOST_WORDS = 2000  # tokens of a server's own error message
CLIENT = Implementation(name="agent-brain", version="0.1")


class Connection:
    """A server and its state.

    A program that dies is restarted at once, but only once. When it has answered a call, another
    restart is allowed: so a program that crashes once a night stays available, and one that crashes
    at every call does not. A server over HTTP is not restarted: a call that cannot reach it tries
    once to reconnect.
    """

    def __init__(self, spec: ServerSpec, group: TaskGroup) -> None:
        self.spec = spec
        self.changed = False  # whether the server may have other tools by now
        self._group = group
        self._client: Client | None = None
        self._state: Literal["starting", "up", "restarting", "away", "gone"] = "starting"
        self._settled = anyio.Event()  # the current attempt to connect has succeeded or failed
        self._wanted = anyio.Event()  # a call asks for another attempt
        self._over = anyio.Event()  # the current session has ended, or must end
        self._ended = anyio.Event()
        self._closing = False
        self._may_restart = True
        self._was_ever_up = False
        self._trouble = ""
        self._garbage = ""
        self._stderr: StderrTail | None = None
        self._wire: Wire | None = None
        self._starting: anyio.CancelScope | None = None

    async def start(self) -> None:
        """Start the server and shake hands; if that fails, its process has ended."""
        self._group.start_soon(self._live)
        await self._settled.wait()
        if self._state == "gone":
            await self._ended.wait()
            raise McpServerError(self.spec.name, f"{self._label()} {self._trouble}")

    async def close(self) -> None:
        """End the session and the server's process."""
        self._closing = True
        self._over.set()
        self._wanted.set()
        if self._client is None and self._wire is not None:
            with anyio.move_on_after(SPAWN_SECONDS):
                await self._wire.opened.wait()
            if self._client is None and self._starting is not None:
                self._starting.cancel()
        await self._ended.wait()

    async def list_tools(self) -> list[Tool]:
        """Return all its tools, page by page."""
        self.changed = False
        client, over = await self._reach()
        tools: list[Tool] = []
        if client.server_capabilities.tools is None:
            return tools
        cursor: str | None = None
        try:
            with anyio.fail_after(self.spec.start_timeout):
                for _ in range(MOST_PAGES):
                    page = await client.list_tools(cursor=cursor, cache_mode="bypass")
                    tools += page.tools
                    if page.next_cursor is None or page.next_cursor == cursor:
                        break
                    cursor = page.next_cursor
        except Exception as error:
            raise self._failure("did not list its tools", error, over) from error
        if self._wire is not None:
            for tool in tools:
                tool.output_schema = self._wire.output_schemas.get(tool.name)
        return tools

    async def call(
        self, tool: str, args: dict[str, Any], on_progress: ProgressFnT | None
    ) -> CallToolResult:
        """Run a tool on the server; cancelling the caller cancels the call there."""
        client, over = await self._reach()
        try:
            result = await client.call_tool(tool, args, progress_callback=on_progress)
        except Exception as error:
            raise self._failure(f"did not complete {tool!r}", error, over) from error
        finally:
            if self._stderr is not None:
                self._stderr.trim()
        self._may_restart = True
        return result

    async def _reach(self) -> tuple[Client, anyio.Event]:
        """Return the session, and the event that it has ended."""
        if self._state == "away":
            self._wanted.set()
            await self._settled.wait()
        if self._client is not None and not self._over.is_set():
            return self._client, self._over
        if self._state == "gone":
            text = f"{self._label()} has stopped and was not restarted: it {self._trouble}"
        elif self._state == "away":
            text = f"{self._label()} is gone: it {self._trouble}"
        else:
            text = f"{self._label()} has stopped and is being restarted: try again in a moment"
        raise McpServerError(self.spec.name, text)

    def _failure(self, what: str, error: Exception, over: anyio.Event) -> McpServerError:
        """Return the error for a failed request; end a session that is lost."""
        lost = isinstance(self.spec, HttpServer) and is_lost(error)
        if lost:
            over.set()
        if lost or (is_closed(error) and over.is_set()):
            text = (
                f"{self._label()} stopped before it answered; the request may or may not have been "
                "executed"
            )
        else:
            reason = reason_of(error) if over.is_set() else answered(error)
            text = f"{self._label()} {what}: {self.spec.redact(reason)}"
        return McpServerError(self.spec.name, text)

    def _label(self) -> str:
        return f"MCP server {self.spec.name!r}"

    async def _live(self) -> None:
        """Run the server's task: a session, and perhaps another one."""
        try:
            again = True
            while again and not self._closing:
                self._over = anyio.Event()
                self._trouble = await self._session()
                was_up, self._client = self._client is not None, None
                again = await self._may_connect_again(was_up=was_up)
        finally:
            self._client = None
            self._state = "gone"
            self._settled.set()
            self._ended.set()

    async def _may_connect_again(self, *, was_up: bool) -> bool:
        """Return whether to connect again; for a server over HTTP, wait until a call needs it."""
        if isinstance(self.spec, HttpServer):
            if not self._was_ever_up:
                return False
            self._settled.set()
            self._state, self._settled, self._wanted = "away", anyio.Event(), anyio.Event()
            if not self._closing:
                await self._wanted.wait()
            return True
        may, self._may_restart = was_up and self._may_restart, False
        self._state = "restarting"
        return may

    async def _session(self) -> str:
        """Run one session; return why it ended."""
        self._stderr = stderr = StderrTail()
        self._garbage = ""
        self._wire = Wire(self._over.set, self._leave_out, self._version)
        streams = connect(self.spec, stderr, self._wire)
        reason = "stopped"
        try:
            with anyio.move_on_after(self.spec.start_timeout) as self._starting:
                async with Client(
                    streams, message_handler=self._hear, client_info=CLIENT
                ) as client:
                    self._starting.deadline = math.inf
                    self._client, self._state = client, "up"
                    self.changed = self._was_ever_up
                    self._was_ever_up = True
                    self._settled.set()
                    await self._stay(client)
            if self._starting.cancelled_caught:
                reason = f"did not answer within {self.spec.start_timeout:g} s"
        except Exception as error:
            reason = reason_of(error)
        finally:
            said = stderr.read()
            stderr.close()
            self._stderr = self._starting = None
        return self._why(reason, said)

    async def _stay(self, client: Client) -> None:
        """Wait until the session is over, noting changes of its tools."""
        capability = client.server_capabilities.tools
        async with anyio.create_task_group() as tasks:
            if capability is not None and capability.list_changed:
                tasks.start_soon(self._listen, client)
            await self._over.wait()
            tasks.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Subscribe to changes of tools at newer servers; older ones notify :meth:`_hear`."""
        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self.changed = True
                return  # the server ended the subscription
            except SubscriptionLost:
                self.changed = True  # some changes may have been missed
                await anyio.sleep(LISTEN_AGAIN_SECONDS)
            except (ListenNotSupportedError, MCPError, TimeoutError):
                return

    def _version(self) -> str:
        client = self._client
        return LATEST_PROTOCOL_VERSION if client is None else client.protocol_version

    def _leave_out(self, tool: str, why: str) -> None:
        text = "A tool of MCP server %r is left out: Tool %s cannot be used: %s"
        logger.warning(text, self.spec.name, tool, why)

    async def _hear(self, message: object) -> None:
        if isinstance(message, ToolListChangedNotification):
            self.changed = True
        elif isinstance(message, Exception):
            self._garbage = self._garbage or reason_of(message)

    def _why(self, reason: str, said: str) -> str:
        """Return all that is known of why a session ended, without secrets."""
        parts = [reason]
        if self._garbage:
            parts.append(
                f"it also wrote to stdout something that is not an MCP message: {self._garbage}"
            )
        if said:
            parts.append(f"its stderr ended with:\n{said}")
        where = f" (at {self.spec.place})"
        return self.spec.redact("; ".join(parts)) + ("" if said else where)


def reason_of(error: BaseException) -> str:
    """Return why something failed, as the second half of "The server …"."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, FileNotFoundError):
        return "could not be started: there is no such command or folder"
    if isinstance(error, PermissionError):
        return "could not be started: it is not executable"
    if isinstance(error, MCPError):
        return "stopped" if is_closed(error) else answered(error)
    if isinstance(error, TimeoutError):
        return "did not answer in time"
    if isinstance(error, ValidationError):
        given = error.errors(include_url=False)[0]["input"]
        return f"answered with something unusable: {shorten(repr(given), SAMPLE)}"
    if isinstance(error, httpx2.ConnectError):
        return "could not be reached: nothing answers there"
    if isinstance(error, httpx2.TransportError):
        return f"could not be reached: {type(error).__name__}"
    return f"failed with {type(error).__name__}: {error}"


def answered(error: BaseException) -> str:
    """Return why something failed while the connection was open."""
    if isinstance(error, MCPError):
        return f"answered with an error: {shorten(error.message, MOST_WORDS)}"
    return reason_of(error)


def is_closed(error: BaseException) -> bool:
    """Return whether the SDK, not the server, reports that the connection is closed.

    A server may use the same code for errors of its own: only the message differs.
    """
    if not isinstance(error, MCPError):
        return False
    return error.code == CONNECTION_CLOSED and error.message == "Connection closed"


def is_lost(error: BaseException) -> bool:
    """Return whether the SDK reports that an HTTP answer broke off, or that the session ended."""
    if not isinstance(error, MCPError):
        return False
    broke_off = error.code == CONNECTION_CLOSED and error.message.startswith("SSE stream ")
    return broke_off or (error.code == INVALID_REQUEST and error.message == "Session terminated")
