"""The connection to one server, which is restarted once if it dies. Needs the extra ``mcp``.

Everything here runs in the thread of :class:`agent_brain.tools.mcp.McpTools`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Literal

import anyio
import httpx2
from mcp import Client, MCPError
from mcp.client.auth import OAuthFlowError
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    PromptsListChanged,
    ResourceUpdated,
    SubscriptionLost,
    ToolsListChanged,
)
from mcp.shared.dispatcher import ProgressFnT
from mcp_types import (
    CONNECTION_CLOSED,
    INVALID_REQUEST,
    CallToolResult,
    EmptyResult,
    Implementation,
    PromptListChangedNotification,
    ResourceUpdatedNotification,
    SubscribeRequest,
    SubscribeRequestParams,
    TextContent,
    Tool,
    ToolListChangedNotification,
)
from pydantic import ValidationError

from agent_brain.common.secrets import get_logger
from agent_brain.common.text import as_data, shorten
from agent_brain.tools.errors import McpServerError
from agent_brain.tools.mcp.names import unused
from agent_brain.tools.mcp.offers import Offer, every, prompt_offers, resource_offers, resource_text
from agent_brain.tools.mcp.questions import Ask, Questions
from agent_brain.tools.mcp.spec import HttpServer, ServerSpec
from agent_brain.tools.mcp.transport import SAMPLE, Wire, connect

logger = get_logger(__name__)

SPAWN_SECONDS = 1.0
LISTEN_AGAIN_SECONDS = 1.0
MOST_WORDS = 2000  # tokens of a server's own error message
CONTEXT_SECONDS = 60.0
LISTS_CHANGED = (
    *(ToolsListChanged, ToolListChangedNotification),
    *(PromptsListChanged, PromptListChangedNotification),
)
CLIENT = Implementation(name="agent-brain", version="0.1")


class Connection:
    """A server and its state.

    A program that dies is restarted at once, but only once. When it has answered a call, another
    restart is allowed: so a program that crashes once a night stays available, and one that crashes
    at every call does not. A server over HTTP is not restarted: a call that cannot reach it tries
    once to reconnect.
    """

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self._label = f"MCP server {spec.name!r}"
        self.changed = False  # whether the server may have other tools by now
        self._client: Client | None = None
        self._state: Literal["starting", "up", "restarting", "away", "gone"] = "starting"
        self._settled = anyio.Event()  # the current attempt to connect has succeeded or failed
        self._wanted = anyio.Event()  # a call asks for another attempt
        self._ended = anyio.Event()
        self._closing = False
        self._may_restart = True
        self._was_ever_up = False
        self._trouble = ""
        self._garbage = ""
        self._wire: Wire | None = None  # of the current session
        self._starting: anyio.CancelScope | None = None
        self._questions = Questions(spec.name)
        self._offers: dict[str, Offer] = {}
        self._context: list[str] | None = None
        self._outdated = False  # whether the context is
        self._told = False  # whether the server says so
        self._read_at = -math.inf

    async def start(self) -> None:
        """Wait until the server has shaken hands; if that fails, its process has ended."""
        await self._settled.wait()
        if self._state == "gone":
            await self._ended.wait()
            raise McpServerError(self.spec.name, f"{self._label} {self._trouble}")

    async def close(self) -> None:
        """End the session and the server's process."""
        self._closing = True
        self._wanted.set()
        if self._wire is not None:
            self._wire.over.set()
            if self._client is None:
                with anyio.move_on_after(SPAWN_SECONDS):
                    await self._wire.opened.wait()
            if self._client is None and self._starting is not None:
                self._starting.cancel()
        await self._ended.wait()

    async def list_tools(self) -> list[Tool]:
        """Return all its tools, page by page."""
        self.changed = False
        client, wire = await self._reach()
        can = client.server_capabilities
        tools: list[Tool] = []
        offers: list[Offer] = []
        try:
            with anyio.fail_after(self.spec.start_timeout):
                if can.tools is not None:
                    tools = await every(client.list_tools, "tools")
                if self.spec.resources and can.resources is not None:
                    offers += resource_offers(self.spec.name)
                if self.spec.prompts and can.prompts is not None:
                    offers += await prompt_offers(client)
        except Exception as error:
            raise self._failure("did not list its tools", error, wire) from error
        for tool in tools:
            tool.output_schema = wire.output_schemas.get(tool.name)
        self._offers = {}
        for offer in offers:
            offer.tool.name = unused(offer.tool.name, {*self._offers, *(t.name for t in tools)})
            self._offers[offer.tool.name] = offer
        return [*tools, *(offer.tool for offer in offers)]

    async def context(self) -> list[str]:
        """Return the texts of the resources that models see in each request, as they are now.

        They are read again when the server says that they have changed; if it does not say so, when
        they are :data:`CONTEXT_SECONDS` old.

        Raises:
            McpServerError: They could never be read.
        """
        age = anyio.current_time() - self._read_at
        if self._context is None or self._outdated or (not self._told and age > CONTEXT_SECONDS):
            try:
                self._context = await self._read_context()
            except McpServerError as error:
                if self._context is None:
                    raise
                logger.warning("Resources are shown as they were: %s", error)
            self._outdated, self._read_at = False, anyio.current_time()
        return self._context

    async def _read_context(self) -> list[str]:
        client, wire = await self._reach()
        texts = []
        for uri in self.spec.context:
            try:
                with anyio.fail_after(self.spec.timeout):
                    text = await resource_text(client, uri)
            except Exception as error:
                raise self._failure(f"did not return the resource {uri}", error, wire) from error
            limit = self.spec.max_result_tokens
            shown = text if limit is None else shorten(text, limit)
            texts.append(f"The resource {uri} of {self.spec.name!r}:\n{as_data(shown)}")
        return texts

    async def call(
        self, tool: str, args: dict[str, Any], on_progress: ProgressFnT | None, ask: Ask
    ) -> CallToolResult:
        """Run a tool on the server; cancelling the caller cancels the call there.

        Raises:
            McpServerError: The server cannot be reached, or did not complete the call.
            InputNeeded: It asks a person; ``ask`` has no answer yet.
        """
        client, wire = await self._reach()
        with self._questions.during_call(ask) as asking:
            try:
                if (offer := self._offers.get(tool)) is not None:
                    result = await offer.run(client, args)
                else:
                    result = await client.call_tool(tool, args, progress_callback=on_progress)
            except Exception as error:
                if (needed := asking.needed_for(error)) is not None:
                    raise needed from None
                raise self._failure(f"did not complete {tool!r}", error, wire) from error
            finally:
                wire.stderr.trim()
        self._may_restart = True
        if asking.needed is not None:
            raise asking.needed
        result.content += [TextContent(text=note) for note in asking.declined]
        return result

    async def _reach(self) -> tuple[Client, Wire]:
        """Return the session and its wire."""
        if self._state == "away":
            self._wanted.set()
            await self._settled.wait()
        if self._client is not None and self._wire is not None and not self._wire.over.is_set():
            return self._client, self._wire
        if self._state == "gone":
            text = f"{self._label} has stopped and was not restarted: it {self._trouble}"
        elif self._state == "away":
            text = f"{self._label} is gone: it {self._trouble}"
        else:
            text = f"{self._label} has stopped and is being restarted: try again in a moment"
        raise McpServerError(self.spec.name, text)

    def _failure(self, what: str, error: Exception, wire: Wire) -> McpServerError:
        """Return the error for a failed request; end a session that is lost."""
        lost = isinstance(self.spec, HttpServer) and is_lost(error)
        if lost:
            wire.over.set()
        if lost or (is_closed(error) and wire.over.is_set()):
            text = (
                f"{self._label} stopped before it answered; the request may or may not have been "
                "executed"
            )
        else:
            reason = reason_of(error) if wire.over.is_set() else answered(error)
            text = f"{self._label} {what}: {self.spec.redact(reason)}"
        return McpServerError(self.spec.name, text)

    async def live(self) -> None:
        """Run the server's task: a session, and perhaps another one."""
        try:
            again = True
            while again and not self._closing:
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
        self._garbage = ""
        self._wire = wire = Wire(self.spec.name)
        reason = "stopped"
        try:
            with anyio.move_on_after(self.spec.connect_timeout) as self._starting:
                async with Client(
                    connect(self.spec, wire),
                    message_handler=self._hear,
                    client_info=CLIENT,
                    mode="legacy" if self.spec.older_protocol else "auto",
                    elicitation_callback=self._questions.answer if self.spec.questions else None,
                ) as client:
                    self._starting.deadline = math.inf
                    wire.version = client.protocol_version
                    self._client, self._state = client, "up"
                    self.changed = self._outdated = self._was_ever_up
                    self._told = False
                    self._was_ever_up = True
                    self._settled.set()
                    await self._stay(client, wire)
            if self._starting.cancelled_caught:
                reason = f"did not answer within {self.spec.connect_timeout:g} s"
        except Exception as error:
            reason = reason_of(error)
        finally:
            said = wire.stderr.read()
            wire.stderr.close()
            self._starting = None
        return self._why(reason, said)

    async def _stay(self, client: Client, wire: Wire) -> None:
        """Wait until the session is over, noting changes of its tools."""
        async with anyio.create_task_group() as tasks:
            if wanted := self._wanted_news(client):
                tasks.start_soon(self._listen, client, wanted)
            await wire.over.wait()
            tasks.cancel_scope.cancel()

    def _wanted_news(self, client: Client) -> dict[str, Any]:
        """Return what to be told about, as far as the server can: the arguments of ``listen``."""
        can, wanted = client.server_capabilities, dict[str, Any]()
        if can.tools is not None and can.tools.list_changed:
            wanted["tools_list_changed"] = True
        if self.spec.prompts and can.prompts is not None and can.prompts.list_changed:
            wanted["prompts_list_changed"] = True
        if self.spec.context and can.resources is not None and can.resources.subscribe:
            wanted["resource_subscriptions"] = self.spec.context
        return wanted

    async def _listen(self, client: Client, wanted: dict[str, Any]) -> None:
        """Subscribe to changes at newer servers; older ones notify :meth:`_hear`."""
        while True:
            self._told = False
            try:
                async with client.listen(**wanted) as events:
                    self._told = bool(events.honored.resource_subscriptions)
                    async for event in events:
                        await self._hear(event)
                self._told = False
                return  # the server ended the subscription
            except SubscriptionLost:
                self.changed = self._outdated = True  # some changes may have been missed
                await anyio.sleep(LISTEN_AGAIN_SECONDS)
            except ListenNotSupportedError:
                await self._subscribe(client, wanted.get("resource_subscriptions", ()))
                return
            except (MCPError, TimeoutError):
                return

    async def _subscribe(self, client: Client, uris: Iterable[str]) -> None:
        """Ask an older server to tell when resources change."""
        with suppress(MCPError, TimeoutError):
            for uri in uris:
                request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
                await client.session.send_request(request, EmptyResult)
                self._told = True

    async def _hear(self, message: object) -> None:
        """Note a change, as a newer or an older server announces it, or what is no message."""
        if isinstance(message, Exception):
            self._garbage = self._garbage or reason_of(message)
        elif isinstance(message, ResourceUpdated | ResourceUpdatedNotification):
            self._outdated = True
        elif isinstance(message, LISTS_CHANGED):
            self.changed = True

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
    if isinstance(error, OAuthFlowError | McpServerError):
        return f"could not be signed in to: {error}"
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
