"""Running the application with uvicorn."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Iterable
from types import FrameType
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette

from agent_brain.serving.access import listen, shown
from agent_brain.serving.http_config import HttpServer, http_config
from agent_brain.serving.sessions import Sessions
from agent_brain.serving.web.settings import ServerLimits

if TYPE_CHECKING:
    from agent_brain.tools.mcp import McpSource

HEADER_SECONDS = 20.0
MAX_MESSAGE = 5_000_000  # bytes of a WebSocket message


def serve_http(
    app: Starlette,
    sessions: Sessions,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    servers: Iterable[McpSource] = (),
    trusted_proxies: Iterable[str] = (),
    shutdown_timeout: float = 10.0,
    on_ready: Callable[[str], None] = lambda url: None,
) -> None:
    """Serve until the process gets a signal to stop (SIGINT, SIGTERM).

    Runs are then stopped after their current steps, so that they can be resumed; those that do not
    end in time are cancelled, and a second SIGINT cancels all at once. The brain of the sessions is
    closed at the end, and the function returns.

    Args:
        app: What :func:`make_app` returned.
        sessions: Its sessions.
        host: The address to listen on.
        port: The port; 0 for any free one.
        servers: MCP servers whose tools the sessions use, as for :meth:`Brain.connect`.
        trusted_proxies: Addresses or networks of proxies in front of the server: what their headers
            ``X-Forwarded-For`` and ``X-Forwarded-Proto`` say is believed. Nobody else's are.
        shutdown_timeout: Seconds that runs have to end.
        on_ready: Called with the URL when the server accepts connections.

    Raises:
        BrainDefinitionError: The address cannot be used, or that of a proxy.
        McpConfigError: The MCP servers cannot be used as described.
        McpServerError: The MCP servers could not be started or reached.
    """
    with listen(host, port) as listener:
        config = server_config(app, trusted_proxies)
        url = f"http://{shown(host)}:{listener.getsockname()[1]}"
        server = Server(config, sessions, shutdown_timeout, lambda: on_ready(url))

        async def main() -> None:
            async with sessions.brain as brain:
                await brain.connect(*servers)
                gc.collect()
                gc.freeze()  # what was loaded stays: to look through it again costs a third
                try:
                    await server.serve(sockets=[listener])
                finally:
                    gc.unfreeze()

        with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
            runner.run(main())


def server_config(app: Starlette, proxies: Iterable[str] = ()) -> uvicorn.Config:
    """Return how uvicorn serves what :func:`make_app` returned, or what it is mounted in."""
    limits: ServerLimits = getattr(app.state, "limits", ServerLimits())
    return http_config(
        app,
        max_head=limits.max_head,
        max_headers=limits.max_headers,
        proxies=proxies,
        access_log=False,
        server_header=False,
        ws="websockets-sansio",
        ws_max_size=MAX_MESSAGE,
        timeout_graceful_shutdown=5,
    )


class Server(HttpServer):
    """A uvicorn server that stops runs softly, and drops clients that never send a request.

    Args:
        config: The configuration.
        sessions: The sessions.
        shutdown_timeout: Seconds that runs have to end.
        on_ready: Called when the server accepts connections.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        sessions: Sessions,
        shutdown_timeout: float,
        on_ready: Callable[[], None],
    ) -> None:
        super().__init__(config, on_ready)
        self._sessions = sessions
        self._shutdown_timeout = shutdown_timeout
        self._quiet_since: dict[Any, tuple[Any, float]] = {}  # the last request, and when

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note a signal; uvicorn would raise it again before the brain is closed."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the runs, then the server."""
        for server in self.servers:
            server.close()
        await self._unless_forced(self._sessions.stop(self._shutdown_timeout))
        await self._unless_forced(super().shutdown(sockets))
        if self.force_exit:  # which uvicorn takes for leaving without the end of the application
            await self.lifespan.shutdown()
        for connection in [*self.server_state.connections]:  # of clients that take no more data
            connection.transport.abort()

    async def _unless_forced(self, ending: Coroutine[Any, Any, None]) -> None:
        """Wait for the end of runs, or of learning; a second signal cuts them short."""
        task = asyncio.create_task(ending)
        while not task.done() and not self.force_exit:
            await asyncio.wait([task], timeout=0.1)
        if not task.done():
            await self._sessions.stop(0)
        await task

    async def on_tick(self, counter: int) -> bool:
        """Once a second, drop connections without a request for too long (slow loris).

        So are those that were closed and take no more data.
        """
        if counter % 10 == 0:
            now = time.monotonic()
            quiet: dict[Any, tuple[Any, float]] = {}
            for connection in [*self.server_state.connections]:
                if connection.transport.is_closing() or _has_no_request(connection):
                    last = getattr(connection, "cycle", None)
                    known, since = self._quiet_since.get(connection, (last, now))
                    since = since if known is last else now  # it has had a request meanwhile
                    quiet[connection] = (last, since)
                    if now - since >= HEADER_SECONDS:
                        connection.transport.abort()
            self._quiet_since = quiet
        return await super().on_tick(counter)


def _has_no_request(connection: Any) -> bool:
    """Return whether an HTTP connection waits for a request, or for the rest of its head."""
    if not hasattr(connection, "cycle"):  # a WebSocket
        return False
    return connection.cycle is None or connection.cycle.response_complete
