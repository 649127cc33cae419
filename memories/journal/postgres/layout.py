"""The tables of a journal in PostgreSQL: their layout, and creating and checking them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from zlib import crc32

from agent_brain.common.secrets import get_logger
from agent_brain.memories.errors import JournalError, MemoryDefinitionError
from agent_brain.memories.journal.sql.database import ENTRIES, SESSIONS
from agent_brain.memories.journal.sql.sessions import INDEXED

if TYPE_CHECKING:
    from agent_brain.memories.journal.postgres.database import PostgresTransaction

log = get_logger(__name__)
VERSION = 2
_LOCK = 0x41425250  # the first half of the advisory lock under which tables are created
_NAME = re.compile(r"(?!pg_)[A-Za-z_][A-Za-z0-9_]{0,62}")

_TABLES = (
    "CREATE TABLE {schema}journal (\n"
    "    version integer NOT NULL,\n"
    "    deleted bigint NOT NULL  -- the highest number of a session that was deleted\n"
    ");\n"
    f"{SESSIONS} WITH (fillfactor = 70);\n"
    f"CREATE INDEX sessions_by_key ON {{schema}}sessions (substr(key, 1, {INDEXED}));\n"
    f"{ENTRIES};\n"
    "-- What people said and are called is not to be kept for the planner (pg_stats) when it is "
    "deleted.\n"
    "ALTER TABLE {schema}entries ALTER COLUMN data SET STATISTICS 0;\n"
    "ALTER TABLE {schema}sessions ALTER COLUMN key SET STATISTICS 0;\n"
    "ALTER INDEX {schema}sessions_by_key ALTER COLUMN 1 SET STATISTICS 0;\n"
    f"INSERT INTO {{schema}}journal (version, deleted) VALUES ({VERSION}, 0);\n"
)
_GRANTS = """\
GRANT USAGE ON SCHEMA {schema} TO {role};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role};
"""


class Layout:
    """The tables of a journal.

    Args:
        schema: The schema that they are in.

    Raises:
        MemoryDefinitionError: The name is not one of ASCII letters, digits and underscores.
    """

    def __init__(self, schema: str) -> None:
        if not isinstance(schema, str) or not _NAME.fullmatch(schema):
            raise MemoryDefinitionError(
                f"schema={schema!r}: use up to 63 ASCII letters, digits and underscores that do "
                "not begin with a digit or 'pg_'"
            )
        self.name = schema
        self.schema = f'"{schema}"'
        self.journal = f"{self.schema}.journal"

    def to_sql(self, role: str | None = None) -> str:
        """Return the SQL that creates the tables, and lets ``role`` use them if it is given."""
        sql = f"CREATE SCHEMA IF NOT EXISTS {self.schema};\n{self._tables()}"
        if role is not None:
            quoted = '"' + role.replace('"', '""') + '"'
            sql += _GRANTS.format(schema=self.schema, role=quoted)
        return f"BEGIN;\n{sql}COMMIT;\n"

    def _tables(self) -> str:
        return _TABLES.format(schema=f"{self.schema}.", bytes="bytea")

    def is_there(self, tx: PostgresTransaction, place: str) -> bool:
        """Return whether the tables exist.

        Raises:
            JournalError: They are those of a newer version, or the server cannot be used.
        """
        there, encoding, fsync = tx.get_one(
            f"SELECT to_regclass('{self.journal}') IS NOT NULL, "
            "current_setting('server_encoding'), current_setting('fsync')"
        )
        if encoding != "UTF8":
            raise JournalError(
                f"The {place} is in a database with the encoding {encoding}, which cannot hold "
                "every text: create one with ENCODING 'UTF8'"
            )
        if fsync != "on":
            log.warning("The server of the %s has fsync off: a power failure may damage it", place)
        if there:
            self._check_version(tx, place)
        return bool(there)

    def _check_version(self, tx: PostgresTransaction, place: str) -> None:
        version, *_ = tx.get(f"SELECT version FROM {self.journal}") or (None,)
        if version != VERSION:
            raise JournalError(
                f"The {place} has layout version {version}; this library reads version {VERSION}. "
                "Open it with the library that wrote it, or a newer one"
            )

    def create(self, tx: PostgresTransaction, place: str) -> None:
        """Create the tables, unless another process is doing it.

        Raises:
            JournalError: The schema has other tables.
        """
        tx.get(f"SELECT pg_advisory_xact_lock({_LOCK}, {crc32(self.name.encode()) - 2**31})")
        there, tables = tx.get_one(
            f"SELECT to_regnamespace('{self.schema}') IS NOT NULL, (SELECT count(*) FROM pg_class "
            f"WHERE relnamespace = to_regnamespace('{self.schema}'))"
        )
        if tables and self.is_there(tx, place):
            return
        if tables:
            raise JournalError(
                f"The {place} cannot be created: the schema has tables of something else. Choose "
                "another schema="
            )
        tx.get(("" if there else f"CREATE SCHEMA {self.schema};\n") + self._tables())
