"""One server: started once, watched, started a second time if it dies. Needs the extra ``mcp``.

Everything here runs in the thread of :mod:`agent_brain.tools.mcp.host`.
"""

from __future__ import annotations

import math
from typing import Any, Literal

import anyio
from anyio.abc import TaskGroup
from mcp import Client, MCPError
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import CallToolResult, Implementation, Tool, ToolListChangedNotification
from mcp_types.version import LATEST_PROTOCOL_VERSION

from agent_brain.tools.errors import McpServerError
from agent_brain.tools.mcp.reasons import answered, is_closed, is_lost, reason_of
from agent_brain.tools.mcp.spec import HttpServer, ServerSpec
from agent_brain.tools.mcp.transport import LastWords, connect
from agent_brain.tools.mcp.wire import Wire
from agent_brain.tools.secrets import get_logger

logger = get_logger(__name__)

MOST_PAGES = 1000
SPAWN_SECONDS = 1.0
LISTEN_AGAIN_SECONDS = 1.0
CLIENT = Implementation(name="agent-brain", version="0.1")


class Connection:
    """A server and what is known of it.

    A program that dies is started again at once, but only once. When it then answers a call, it has
    earned another time: so one that fails once a night is kept, and one that dies of every call is
    not. To a server over HTTP, which is not ours to start, a call that finds it gone tries once to
    connect again.

    Args:
        spec: The server.
        group: Where its task lives.

    Attributes:
        changed: The server may have other tools by now.
    """

    def __init__(self, spec: ServerSpec, group: TaskGroup) -> None:
        self.spec = spec
        self.changed = False
        self._group = group
        self._client: Client | None = None
        self._state: Literal["starting", "up", "restarting", "away", "gone"] = "starting"
        self._settled = anyio.Event()  # this attempt to connect has succeeded or failed
        self._wanted = anyio.Event()  # somebody asks for another one
        self._over = anyio.Event()  # the session of now has ended, or is to end
        self._ended = anyio.Event()
        self._closing = False
        self._may_restart = True
        self._was_ever_up = False
        self._trouble = ""
        self._garbage = ""
        self._words: LastWords | None = None
        self._wire: Wire | None = None
        self._starting: anyio.CancelScope | None = None

    async def start(self) -> None:
        """Start the server and shake hands.

        Raises:
            McpServerError: It could not be started; nothing is left of it.
        """
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
        """All its tools, page by page.

        Raises:
            McpServerError: It is not there, or what it answers is no list.
        """
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
        """Have the server run a tool; cancelling this cancels the call there.

        Raises:
            McpServerError: It is not there, died meanwhile, or answered with an error.
        """
        client, over = await self._reach()
        try:
            result = await client.call_tool(tool, args, progress_callback=on_progress)
        except Exception as error:
            raise self._failure(f"did not complete {tool!r}", error, over) from error
        finally:
            if self._words is not None:
                self._words.trim()
        self._may_restart = True
        return result

    async def _reach(self) -> tuple[Client, anyio.Event]:
        """The session, and what tells that it has ended."""
        if self._state == "away":
            self._wanted.set()
            await self._settled.wait()
        if self._client is not None and not self._over.is_set():
            return self._client, self._over
        if self._state == "gone":
            text = f"{self._label()} has stopped and was not started again: it {self._trouble}"
        elif self._state == "away":
            text = f"{self._label()} is not there any more: it {self._trouble}"
        else:
            text = f"{self._label()} has stopped and is being started again: try again in a moment"
        raise McpServerError(self.spec.name, text)

    def _failure(self, what: str, error: Exception, over: anyio.Event) -> McpServerError:
        """What to say of a request that went wrong; a session that is over is given up."""
        lost = isinstance(self.spec, HttpServer) and is_lost(error)
        if lost:
            over.set()
        if lost or (is_closed(error) and over.is_set()):
            text = (
                f"{self._label()} stopped before it answered; what was asked of it may or may not "
                "have been done"
            )
        else:
            reason = reason_of(error) if over.is_set() else answered(error)
            text = f"{self._label()} {what}: {self.spec.redact(reason)}"
        return McpServerError(self.spec.name, text)

    def _label(self) -> str:
        return f"MCP server {self.spec.name!r}"

    async def _live(self) -> None:
        """The task of the server: a session, and perhaps another one."""
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
        """Whether to; for a server over HTTP, as soon as somebody asks for it."""
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
        """One session from its beginning to its end; returns why it ended."""
        self._words = words = LastWords()
        self._garbage = ""
        self._wire = Wire(self._over.set, self._leave_out, self._version)
        streams = connect(self.spec, words, self._wire)
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
            said = words.read()
            words.close()
            self._words = self._starting = None
        return self._why(reason, said)

    async def _stay(self, client: Client) -> None:
        """Wait until the session is over, hearing of changed tools meanwhile."""
        capability = client.server_capabilities.tools
        async with anyio.create_task_group() as tasks:
            if capability is not None and capability.list_changed:
                tasks.start_soon(self._listen, client)
            await self._over.wait()
            tasks.cancel_scope.cancel()

    async def _listen(self, client: Client) -> None:
        """Newer servers tell of changes only to those who ask; older ones tell :meth:`_hear`."""
        while True:
            try:
                async with client.listen(tools_list_changed=True) as events:
                    async for _ in events:
                        self.changed = True
                return  # the server does not wish to tell more
            except SubscriptionLost:
                self.changed = True  # there is no telling what was missed
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
        """All that is known of why a session ended, without secrets."""
        parts = [reason]
        if self._garbage:
            parts.append(f"it also wrote to stdout what is no MCP message: {self._garbage}")
        if said:
            parts.append(f"its last words on stderr were:\n{said}")
        where = f" (at {self.spec.place})"
        return self.spec.redact("; ".join(parts)) + ("" if said else where)
