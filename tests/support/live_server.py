"""A real server on loopback, in a thread, for tests with any client.

with live_server(Sessions(brain), token="secret") as url:
    httpx.get(f"{url}/healthz")
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from starlette.applications import Starlette

from agent_brain.serving import Sessions
from agent_brain.serving.access import listen
from agent_brain.serving.web import make_app
from agent_brain.serving.web.server import Server, server_config

PATIENCE = 60.0  # seconds to start, and to stop


@contextmanager
def live_server(
    sessions: Sessions,
    *,
    app: Starlette | None = None,
    proxies: Sequence[str] = (),
    **options: Any,
) -> Iterator[str]:
    """Serve on a free port meanwhile, as ``agent-brain serve`` does, and yield the URL.

    Args:
        sessions: The sessions.
        app: An application that serves them; by default that of ``make_app``.
        proxies: Proxies that are trusted.
        options: Of ``make_app``.
    """
    started: Future[None] = Future()
    with listen("127.0.0.1", 0) as listener:
        config = server_config(make_app(sessions, **options) if app is None else app, proxies)
        config.timeout_graceful_shutdown = 2
        server = Server(config, sessions, 2.0, lambda: started.set_result(None))

        def serve() -> None:
            try:
                with asyncio.Runner(loop_factory=config.get_loop_factory()) as runner:
                    runner.run(server.serve(sockets=[listener]))
            except BaseException as error:
                if started.done():
                    raise
                started.set_exception(error)
            else:
                if not started.done():
                    started.set_exception(RuntimeError("The server did not start"))

        thread = threading.Thread(target=serve, name="live-server")
        thread.start()
        try:
            started.result(PATIENCE)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)
    assert not thread.is_alive(), "the server does not stop"
