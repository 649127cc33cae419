"""Where a journal in PostgreSQL is."""

from __future__ import annotations

from psycopg import ProgrammingError, pq
from psycopg.conninfo import conninfo_to_dict

from agent_brain.memories.errors import MemoryDefinitionError


def read_url(url: str) -> tuple[dict[str, str], str]:
    """Return what the URL of a database says, as libpq names it, and its place for people.

    The place has the server and the database, without the user and the password.

    Raises:
        MemoryDefinitionError: The URL cannot be read; it is not quoted, as it may have a password.
    """
    unreadable = MemoryDefinitionError(
        "The URL of a PostgresJournal cannot be read: it is like "
        "postgresql://user:password@host:5432/database, with characters such as @ : / % in the "
        "password as %40 %3A %2F %25"
    )
    try:
        given = conninfo_to_dict(url) if url.strip() else None
    except (AttributeError, ProgrammingError, TypeError, ValueError):
        raise unreadable from None
    if given is None:
        raise unreadable
    params = {name: str(value) for name, value in given.items() if value is not None}
    known = {
        option.keyword.decode(): option.val.decode()
        for option in pq.Conninfo.get_defaults()
        if option.val is not None
    } | params
    host = known.get("host") or known.get("hostaddr") or "localhost"
    port, database = known.get("port", "5432"), known.get("dbname") or known.get("user", "")
    if "@" in host + database or not port.replace(",", "").isdecimal():
        raise unreadable
    return params, f"{host}:{port}/{database}"
