"""The commands ``mcp``, ``serve`` and ``worker``."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import re
import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from agent_brain.brain import Brain
from agent_brain.cli.exit_codes import ExitCode, UserError, notify, user_errors
from agent_brain.cli.options import LOCAL_USER, Options, window_options
from agent_brain.cli.session import build, extractor_of, named_model, spec_of
from agent_brain.common.ids import request_id
from agent_brain.common.references import load_object
from agent_brain.serving.access import is_loopback
from agent_brain.serving.sessions import Sessions

_ORIGIN = re.compile(r"https?://[^/\s]+")
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")


def serve_mcp(http: str | None, token: str | None, options: Options) -> None:
    """Serve the agent that ``options`` describe over MCP."""
    from agent_brain.serving import serve

    address = None if http is None else read_address(http)
    first: list[Brain] = [build(options)]  # errors are reported now, not to the first client
    with user_errors():
        serve(
            lambda: first.pop() if first else build(options),
            address=address,
            token=token or None,
            servers=options.servers,
            on_ready=lambda url: notify(f"Serving {url}", kind=""),
        )


def read_address(text: str) -> tuple[str, int]:
    """Return the host and the port of an address.

    Raises:
        UserError: It has no port.
    """
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65535:
        raise UserError(f"--http {text!r}: write a port, or host:port, such as 127.0.0.1:8000")
    return host.strip("[]") or "127.0.0.1", int(port)


def serve_web(
    options: Options,
    *,
    http: str,
    queue: str | None,
    proxies: Sequence[str],
    rate: int,
    at_once: int,
    max_body: int,
    show_tools: bool,
    **access: Any,
) -> None:
    """Serve the agent that ``options`` describe over HTTP until the process gets a signal to stop.

    The parameters are the options of the command; ``access`` are those of :func:`access_options`.
    """
    host, port = read_address(http)
    who = access_options(host, **access)
    _show_logs()
    most = 1000 if len({*who.get("token", {}).values()}) < 2 else 100
    with user_errors():
        from agent_brain.serving.web import ServerLimits, make_app, serve_http

        limits = ServerLimits(per_minute=rate, at_once=at_once, max_body=max_body)
        if queue is None:
            brain = build(replace(options, memory="messages", folder=None, learn=False))
            user = {"extract": extractor_of(brain.net, options)} if options.learn else None
            sessions = make_sessions(brain, options, max_per_user=most, user=user)
        elif options.learn:
            raise UserError("--queue: its workers do the runs, which --learn does not reach")
        else:
            sessions = queue_sessions(queue, options, max_per_user=most)
        app = make_app(sessions, limits=limits, show_tools=show_tools, **who)
        serve_http(
            app,
            sessions,
            host=host,
            port=port,
            servers=options.servers,
            trusted_proxies=proxies,
            on_ready=_ready,
        )


def _show_logs() -> None:
    """Write warnings and errors to stderr, each with the ID of the request that it belongs to."""

    def add_request(record: logging.LogRecord) -> bool:
        record.request = f" [{known}]" if (known := request_id.get()) else ""
        return True

    handler = logging.StreamHandler()
    handler.addFilter(add_request)
    logging.basicConfig(format="%(levelname)s%(request)s %(message)s", handlers=[handler])


def _ready(url: str) -> None:
    gc.set_threshold(10_000, 20, 50)
    notify(f"Serving {url}", kind="")


def queue_sessions(queue: str, options: Options, *, max_per_user: int) -> Sessions:
    """Return sessions whose runs are done by workers.

    Raises:
        UserError: There is no such queue, or there are options that workers do not see.
        QueueError: The queue has no such brain.
    """
    given = {
        "--model": options.model,
        "--memory": options.memory,
        "--tool": options.tools,
        "--mcp": options.servers,
        "--folder": options.folder,
        **{f"--{name.replace('_', '-')}": value for name, value in options.limits().items()},
    }
    if unused := [name for name, value in given.items() if value]:
        raise UserError(f"--queue: the program of the queue says {', '.join(unused)}: leave it out")
    return load_queue(queue).sessions(options.net, max_per_user=max_per_user)


def make_sessions(
    brain: Brain[Any],
    options: Options,
    *,
    max_per_user: int = 100,
    user: dict[str, Any] | None = None,
) -> Sessions:
    """Return the sessions, stored in the folder if there is one."""
    spec = spec_of(options)
    model, stored = named_model(options, spec) or "demo", options.storage(spec.memory)
    path = {"path": stored["path"]} if "path" in stored else {}
    window = window_options(spec.memory, model, spec.memory_options)
    return Sessions(
        brain,
        spec.memory,
        journal=stored.get("journal"),
        memory_options={**spec.memory_options, **window, **path},
        max_per_user=max_per_user,
        user=user,
    )


def access_options(
    host: str,
    *,
    token: str | None,
    users: Path | None,
    hosts: Sequence[str],
    origins: Sequence[str],
) -> dict[str, Any]:
    """Return the arguments of ``make_app`` that say who may ask.

    Raises:
        UserError: Other computers can reach the address and no token is required, or the file of
            users cannot be used.
    """
    if wrong := [each for each in origins if not _ORIGIN.fullmatch(each)]:
        raise UserError(
            f"--origin {wrong[0]!r}: write scheme and host, as https://chat.example.org"
        )
    tokens = {} if users is None else _read_users(users)
    if token:
        tokens[token] = LOCAL_USER
    pages = {"cors_origins": origins}
    if tokens:
        return {"token": tokens, "hosts": [*LOCAL_HOSTS, *hosts] if hosts else None, **pages}
    if not is_loopback(host):
        raise UserError(
            f"Other computers can reach {host or 'every address of this one'}: give --token or "
            "--users"
        )
    return {"user": LOCAL_USER, "hosts": [*LOCAL_HOSTS, *hosts], **pages}


def _read_users(path: Path) -> dict[str, str]:
    try:
        users = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise UserError(f"--users {str(path)!r} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"--users {str(path)!r} is not JSON: {error}") from error
    if (
        not isinstance(users, dict)
        or not users
        or not all(isinstance(user, str) and user for user in users.values())
    ):
        raise UserError(
            f'--users {str(path)!r}: give an object of tokens and users: {{"…": "ann"}}'
        )
    return users


if TYPE_CHECKING:
    from agent_brain.workers import RunQueue

SIGNALS = (signal.SIGINT, signal.SIGTERM)


def load_queue(reference: str) -> RunQueue:
    """Return the queue that ``module:name`` or ``path/to/file.py:name`` names.

    Raises:
        UserError: It names something else.
    """
    with user_errors():
        from agent_brain.workers import RunQueue

        found = load_object(repr(reference), reference, UserError)
    if not isinstance(found, RunQueue):
        raise UserError(f"{reference!r} is {found!r}: name a RunQueue")
    return found


def work(queue: str, options: Options) -> ExitCode:
    """Do the runs of a queue until the process gets a signal to stop."""
    loaded = load_queue(queue)
    from agent_brain.workers.performing import one_error

    with one_error():
        asyncio.run(_work(loaded))
    return ExitCode.ANSWERED


async def _work(queue: RunQueue) -> None:
    stop = anyio.Event()
    async with anyio.create_task_group() as group:
        group.start_soon(_wait_for_signal, stop)
        await queue.work(stop=stop, on_ready=_worker_ready)
        group.cancel_scope.cancel()


def _worker_ready(name: str) -> None:
    notify(f"Worker {name} takes runs. Ctrl-C stops it after the steps under way", kind="")


async def _wait_for_signal(stop: anyio.Event) -> None:
    with anyio.open_signal_receiver(*SIGNALS) as signals:
        async for _ in signals:
            if not stop.is_set():
                notify("Stopping: runs end their step, and other workers continue them", kind="")
                stop.set()
