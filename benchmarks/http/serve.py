"""Serve one of the applications on a free port of loopback, and print its URL.

    python -m benchmarks.http.serve APP

All are run by uvicorn with the same settings; ours as ``serve_http`` runs it.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from importlib import import_module

import uvicorn

from benchmarks.peers.measure import QUIET


def main() -> None:
    os.environ.update(QUIET)
    module = import_module(f"benchmarks.http.apps.{sys.argv[1]}")
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        if sys.argv[1] == "ours":
            from agent_brain.serving.web.server import Server, server_config  # peers have no such

            config = server_config(module.app)
            gc.collect()
            gc.freeze()  # as serve_http does
            ours = Server(config, module.sessions, 1, lambda: print(url, flush=True))
            ours.run(sockets=[listener])
        else:
            config = uvicorn.Config(module.app, log_level="warning", access_log=False)
            print(url, flush=True)
            uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
