"""The connections of a journal to Redis: for asyncio, and for one thread beside it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import anyio

from agent_brain.memories.errors import JournalError, MemoryDefinitionError
from agent_brain.memories.journal.redis.errors import explain, is_broken
from agent_brain.memories.journal.redis.scripts import Script

if TYPE_CHECKING:
    from redis import Redis
    from redis.asyncio import BlockingConnectionPool

T = TypeVar("T")
Command = tuple[Any, ...]
CONNECTIONS = 20
_FIXED = {"protocol": 2, "decode_responses": False, "encoding": "utf-8"}  # also if the URL has them


class Server:
    """A Redis server.

    A command that may have been sent is repeated only if that changes nothing. A caller that is
    cancelled gets the cancellation when the command is done, so that none is left under way.

    Args:
        url: ``redis://``, ``rediss://`` or ``unix://``.
        timeout: Seconds to wait for a connection, and for an answer.

    Attributes:
        place: The URL without user and password.

    Raises:
        JournalError: The package redis is missing.
        MemoryDefinitionError: The URL cannot be read.
    """

    def __init__(self, url: str, timeout: float) -> None:
        self._url = url
        self._options = {
            "db": 0,
            "socket_timeout": timeout,
            "socket_connect_timeout": timeout,
            **_parse(url),
            **_FIXED,
        }
        self._wait = timeout
        self._closed = False
        self._running: set[asyncio.Task[Any]] = set()  # of all event loops
        self.place = _place(self._options)
        self._pools: dict[
            asyncio.AbstractEventLoop,
            tuple[AsyncGenerator[BlockingConnectionPool], BlockingConnectionPool],
        ] = {}

    def __repr__(self) -> str:
        return f"Server({self.place!r})"

    async def run(self, script: Script, keys: Sequence[str], *args: str | bytes | int) -> Any:
        """Run a script and return its answer.

        Raises:
            JournalError: It was not run, or it is not known whether it was.
        """
        rest = (len(keys), *keys, *args)
        by_name, whole = ("EVALSHA", script.sha, *rest), ("EVAL", script.text, *rest)
        return await self._do([by_name, whole], repeatable=script.repeatable)

    async def ask(self, *command: str | bytes) -> Any:
        """Send a command that changes nothing, and return the answer.

        Raises:
            JournalError: It was refused, or there is no answer.
        """
        return await self._do([command], repeatable=True)

    def client(self) -> Redis:
        """Return a client for a thread; its user closes it."""
        from redis import ConnectionPool, Redis
        from redis.backoff import NoBackoff
        from redis.connection import parse_url
        from redis.retry import Retry

        url: dict[str, Any] = dict(parse_url(self._url))  # type: ignore[no-untyped-call]
        options = {**self._options, **url, **_FIXED}
        pool = ConnectionPool(**options, retry=Retry(NoBackoff(), 1))
        return Redis.from_pool(pool)

    async def settle(self) -> None:
        """Wait until all that was sent from this event loop is done."""
        while running := [task for task in [*self._running] if task.get_loop() is _loop()]:
            await asyncio.wait(running)

    async def aclose(self) -> None:
        """Close all connections, and open none any more."""
        self._closed = True
        await self.settle()
        pools, self._pools = self._pools, {}
        here = asyncio.get_running_loop() if pools else None
        for loop, (keeper, _) in pools.items():
            if loop is here:
                await keeper.aclose()
            elif loop.is_running():  # in another thread
                asyncio.run_coroutine_threadsafe(_close(keeper), loop)

    async def _do(self, commands: Sequence[Command], *, repeatable: bool) -> Any:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            raise JournalError(
                "RedisJournal needs asyncio, as the client of Redis does: run the program on "
                "asyncio, or use SQLiteJournal"
            ) from None
        if self._closed:
            raise JournalError(f"The journal at {self.place} is closed: make a new one")
        task = loop.create_task(self._try(loop, commands, repeatable=repeatable))
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return await _to_its_end(task)

    async def _try(
        self, loop: asyncio.AbstractEventLoop, commands: Sequence[Command], *, repeatable: bool
    ) -> Any:
        await asyncio.sleep(0)  # the loop then knows which connections the server has closed
        again = repeatable
        while True:
            try:
                return await self._send(loop, commands)
            except JournalError as error:
                if not (again and is_broken(error.__cause__)):
                    raise
                again = False

    async def _send(self, loop: asyncio.AbstractEventLoop, commands: Sequence[Command]) -> Any:
        """Send the first command; if the server does not know that script, the second."""
        from redis.exceptions import NoScriptError, ReadOnlyError

        pool: Any = await self._pool(loop)
        try:
            connection = await pool.get_connection()
        except Exception as error:
            raise explain(self.place, error, sent=False) from error
        try:
            for command in commands[:-1]:
                try:
                    await connection.send_command(*command)
                    return await connection.read_response()
                except NoScriptError:
                    pass
            await connection.send_command(*commands[-1])
            return await connection.read_response()
        except Exception as error:
            if isinstance(error, ReadOnlyError):  # another server may have its address next time
                await connection.disconnect()
            raise explain(self.place, error, sent=True) from error
        finally:
            await pool.release(connection)

    async def _pool(self, loop: asyncio.AbstractEventLoop) -> BlockingConnectionPool:
        if loop not in self._pools:
            for old in [old for old in self._pools if old.is_closed()]:
                del self._pools[old]
            keeper = self._keep_pool()
            self._pools[loop] = keeper, await anext(keeper)
        return self._pools[loop][1]

    async def _keep_pool(self) -> AsyncGenerator[BlockingConnectionPool]:
        """Yield a pool; it is closed with the journal, or when the event loop ends."""
        from redis.asyncio import BlockingConnectionPool

        pool = BlockingConnectionPool(
            max_connections=CONNECTIONS, timeout=self._wait, **self._options
        )
        try:
            yield pool
        finally:
            await pool.aclose()


async def _close(keeper: AsyncGenerator[Any]) -> None:
    await keeper.aclose()


def _loop() -> asyncio.AbstractEventLoop:
    return asyncio.get_running_loop()


async def _to_its_end(task: asyncio.Task[T]) -> T:
    """Await a task; when cancelled, wait for its end all the same."""
    cancelled: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:
                cancelled = error
    if cancelled is not None:
        task.exception()  # has been seen
        raise cancelled
    return task.result()


def _parse(url: str) -> dict[str, Any]:
    try:
        from redis.asyncio.connection import parse_url
    except ModuleNotFoundError as error:
        raise JournalError(
            f"The package {error.name} is not installed: pip install 'agent-brain[redis]'"
        ) from error
    try:
        found = dict(parse_url(url))
        if not url.startswith("unix:"):  # the client takes a database that is no number for 0
            int(urlsplit(url).path.strip("/") or 0)
        return found
    except (AttributeError, TypeError, ValueError):  # its text may quote the password
        raise MemoryDefinitionError(
            "The URL of the Redis server cannot be read: write redis://USER:PASSWORD@HOST:PORT/0, "
            "rediss://… for TLS, or unix:///PATH, with / : @ ? # % in a password as %2F %3A %40 "
            "%3F %23 %25"
        ) from None


def _place(options: dict[str, Any]) -> str:
    if "path" in options:
        return f"unix://{options['path']}?db={options['db']}"
    scheme = "rediss" if "connection_class" in options else "redis"
    host, port = options.get("host", "localhost"), options.get("port", 6379)
    return f"{scheme}://{host}:{port}/{options['db']}"
