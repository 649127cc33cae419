"""The Redis server of a journal: connections, what errors mean, and checks at the first use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from agent_brain.common.lazy_exports import extra
from agent_brain.common.secrets import get_logger, scrub
from agent_brain.memories.errors import JournalError, MemoryDefinitionError
from agent_brain.memories.journal.redis.entries import Keys
from agent_brain.memories.journal.redis.scripts import Script
from agent_brain.memories.journal.threaded import LostError

log = get_logger(__name__)
VERSION = "1"
Facts: TypeAlias = dict[str, str]
_MEANINGS = {  # by the name of the error's class, or by how its text begins
    "AuthenticationError": "refused the user or the password ({said}): check the journal's URL",
    "NoPermissionError": (
        "does not permit this ({said}): give the user +@read +@write +@scripting +info +time on "
        "the keys that begin with the journal's prefix"
    ),
    "ReadOnlyError": "is a read-only replica: use the URL of the primary. Nothing was written",
    "OutOfMemoryError": (
        "has no memory left for writes ({said}): raise its maxmemory, or remove what is not "
        "needed. Nothing of this call was written, and what was written before is whole"
    ),
    "BusyLoadingError": "is still loading its data ({said}): try again",
    "MovedError": "is a node of a Redis Cluster, which RedisJournal does not support ({said})",
    "MISCONF": "refuses writes, as it cannot save to its disk ({said}). Nothing was written",
    "NOREPLICAS": "refuses writes, as it has too few replicas ({said}). Nothing was written",
    "BUSY ": "is busy with a script that does not end ({said}): try again. Nothing was written",
}
_UNREACHABLE = "cannot be reached ({said}): check that it runs, and the journal's URL"
_BROKEN = (
    "did not answer ({said}). If this was a write, it may have been done: the journal says so when "
    "the session is read again"
)
_FIXED = {"protocol": 2, "decode_responses": False, "encoding": "utf-8"}  # also if the URL has them


class Server:
    """A Redis server, for calls from any thread.

    A command that may have been sent is repeated only if that changes nothing.

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
        parsed = _parse(url)  # says so if the package is missing
        from redis import ConnectionPool
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        waits = {"socket_timeout": timeout, "socket_connect_timeout": timeout}
        options: dict[str, Any] = {"db": 0, **waits, **parsed, **_FIXED}
        self.place = _place(options)
        self._pool: Any = ConnectionPool(**options, retry=Retry(NoBackoff(), 0))

    def __repr__(self) -> str:
        return f"Server({self.place!r})"

    def run(self, script: Script, keys: Sequence[str], *args: str | bytes | int) -> Any:
        """Run a script and return its answer.

        Raises:
            JournalError: It was not run, or it is not known whether it was.
        """
        rest = (len(keys), *keys, *args)
        by_name, whole = ("EVALSHA", script.sha, *rest), ("EVAL", script.text, *rest)
        return self._do([by_name, whole], repeatable=script.repeatable)

    def ask(self, *command: str | bytes) -> Any:
        """Send a command that changes nothing if it is repeated, and return the answer.

        Raises:
            JournalError: It was refused, or there is no answer.
        """
        return self._do([command], repeatable=True)

    def close(self) -> None:
        """Close all connections."""
        self._pool.disconnect()

    def _do(self, commands: Sequence[Sequence[Any]], *, repeatable: bool) -> Any:
        try:
            return self._send(commands)
        except LostError:
            if not repeatable:
                raise
        return self._send(commands)

    def _send(self, commands: Sequence[Sequence[Any]]) -> Any:
        """Send the first command; if the server does not know that script, the second."""
        from redis.exceptions import NoScriptError, ReadOnlyError

        try:
            connection = self._pool.get_connection()
        except Exception as error:
            raise explain(self.place, error, sent=False) from error
        try:
            for command in commands[:-1]:
                try:
                    connection.send_command(*command)
                    return connection.read_response()
                except NoScriptError:
                    pass
            connection.send_command(*commands[-1])
            return connection.read_response()
        except Exception as error:
            if isinstance(error, ReadOnlyError):  # another server may have its address next time
                connection.disconnect()
            raise explain(self.place, error, sent=True) from error
        finally:
            self._pool.release(connection)


def _parse(url: str) -> dict[str, Any]:
    with extra("redis", JournalError):
        from redis.connection import parse_url
    try:
        found = dict(parse_url(url))  # type: ignore[no-untyped-call]
        if not url.startswith("unix:"):  # the client takes a database that is not a number for 0
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


def explain(place: str, error: Exception, *, sent: bool) -> JournalError:
    """Return the error of a journal for an error of the client.

    Args:
        place: Where the server is.
        error: What the client raised.
        sent: Whether something may have been sent.
    """
    from redis import exceptions

    said = scrub(" ".join(str(error).split())) or type(error).__name__
    kinds = {kind.__name__ for kind in type(error).__mro__}
    for mark, meaning in _MEANINGS.items():
        if mark in kinds or said.startswith(mark):
            return JournalError(f"Redis at {place} {meaning.format(said=said)}")
    if "UnicodeEncodeError" in kinds:
        return JournalError(f"A text cannot be encoded: {said}")
    broken = type(error) is exceptions.ConnectionError or isinstance(error, OSError)
    if broken or "TimeoutError" in kinds:
        text = f"Redis at {place} {(_BROKEN if sent else _UNREACHABLE).format(said=said)}"
        return LostError(text, in_doubt=sent) if broken else JournalError(text)
    if "ResponseError" in kinds:
        return JournalError(
            f"Redis at {place} refused a command ({said}): if another program has written to keys "
            "with the journal's prefix, give the journal a prefix of its own. Nothing was written"
        )
    return JournalError(f"Redis at {place} cannot be used: {said}")


def is_forbidden(error: BaseException | None) -> bool:
    """Return whether the server does not have the command, or not for this user."""
    from redis.exceptions import NoPermissionError, ResponseError

    unknown = isinstance(error, ResponseError) and "unknown command" in str(error).lower()
    return unknown or isinstance(error, NoPermissionError)


def check_durability(durability: str) -> None:
    """Check that Redis has this durability.

    Raises:
        MemoryDefinitionError: It has not.
    """
    if durability not in ("memory", "disk"):
        raise MemoryDefinitionError(
            f"durability={durability!r}: RedisJournal has 'memory' (the server has the entries in "
            "its memory) and 'disk' (it has written them to its disk); nothing between them is "
            "certain, as Redis may put off writing its file"
        )


def check_server(server: Server, keys: Keys, durability: str, *, readonly: bool) -> None:
    """Check the server's settings and the layout of the journal.

    If there is none, one is begun, unless it is only to be read.

    Raises:
        JournalError: The server cannot be used as asked, or the journal is of another version.
    """
    facts = _info(server)
    if facts.get("redis_mode") == "cluster" or facts.get("cluster_enabled") == "1":
        raise JournalError(
            f"Redis at {server.place} is a Redis Cluster, which RedisJournal does not support, as "
            "the list of its sessions and their entries would be on several nodes: use a server "
            "without cluster mode, with replicas if it must not fail"
        )
    _warn_of_eviction(server, facts)
    if durability == "disk":
        _check_disk(server, facts)
    version: bytes | None = server.ask("GET", keys.layout)
    if version is None and not readonly:
        server.ask("SET", keys.layout, VERSION, "NX")
        version = server.ask("GET", keys.layout)
    if version is None:
        raise JournalError(f"There is no journal {keys.prefix!r} in Redis at {server.place}")
    if version != VERSION.encode():
        raise JournalError(
            f"The journal {keys.prefix!r} in Redis at {server.place} has layout version "
            f"{version.decode(errors='replace')!r}; this library reads version {VERSION!r}. Open "
            "it with the library that wrote it or a newer one, or choose another prefix"
        )


def _info(server: Server) -> Facts:
    """Return what the server says of itself; nothing if it does not permit to ask."""
    try:
        text: bytes = server.ask("INFO")
    except JournalError as error:
        if not is_forbidden(error.__cause__):
            raise
        log.warning("The settings of Redis at %s are unknown, as INFO is forbidden", server.place)
        return {}
    lines = (line.partition(":") for line in text.decode(errors="replace").splitlines())
    return {name: value for name, _, value in lines}


def _warn_of_eviction(server: Server, facts: Facts) -> None:
    policy = facts.get("maxmemory_policy", "noeviction")
    if facts.get("maxmemory", "0") != "0" and policy != "noeviction":
        log.warning(
            "Redis at %s removes keys when its memory is full (maxmemory-policy %s), so sessions "
            "may be lost: set it to noeviction, or use another server for the journal",
            server.place,
            policy,
        )


def _check_disk(server: Server, facts: Facts) -> None:
    wanted = {
        "appendonly": "yes",
        "appendfsync": "always",
        "no-appendfsync-on-rewrite": "no",
    }
    try:
        found = {name: _setting(server, name) for name in wanted}
    except JournalError as error:
        if not is_forbidden(error.__cause__):
            raise
        raise JournalError(
            f"Redis at {server.place} does not tell whether it writes to its disk, as CONFIG GET "
            f"is forbidden ({error.__cause__}): permit it to the journal's user, or open the "
            "journal with durability='memory' and see to it yourself"
        ) from error
    wrong = [f"{name} {found[name]}" for name in wanted if found[name] != wanted[name]]
    if wrong:
        settings = ", ".join(f"{name} {value}" for name, value in wanted.items())
        raise JournalError(
            f"Redis at {server.place} does not have every write on its disk when it answers: it "
            f"has {', '.join(wrong)}. durability='disk' needs {settings}; durability='memory' "
            "accepts that the latest entries, or all, are lost when the server stops"
        )


def _setting(server: Server, name: str) -> str:
    found: list[bytes] = server.ask("CONFIG", "GET", name)
    return found[1].decode(errors="replace") if found else "unknown"
