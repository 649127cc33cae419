"""What a journal checks when it first uses a Redis server."""

from __future__ import annotations

from typing import TypeAlias

from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalError, MemoryDefinitionError
from agent_brain.memories.journal.redis.entries import Keys
from agent_brain.memories.journal.redis.server import Server, is_forbidden

log = get_logger(__name__)
VERSION = "1"
Facts: TypeAlias = dict[str, str]


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
