"""A text that was forgotten is in no byte of what a session has stored, wherever it was."""

from __future__ import annotations

from base64 import b64encode
from pathlib import Path

import pytest

from agent_brain import Message, MessagesMemory
from agent_brain.memories import Attachment, PostgresJournal, SQLiteJournal
from tests.memories.forgetting.places import PLACES, SECRET, TEXT
from tests.memories.forgetting.stores import files_of_postgres, on_disk
from tests.support.postgres_server import new_database, run_sql

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]


@pytest.mark.parametrize("place", PLACES)
async def test_forgetting_a_text_reaches(place: str, tmp_path: Path) -> None:
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        await PLACES[place](journal)
        assert SECRET.encode() in on_disk(tmp_path)
        await MessagesMemory(journal=journal).forget(text=TEXT)
        assert SECRET.encode() not in on_disk(tmp_path)


@pytest.mark.parametrize("kind", ["text/plain", "application/json", "text/csv"])
async def test_forgetting_a_text_reaches_files_of_text(kind: str, tmp_path: Path) -> None:
    data = b64encode(f"The card is {SECRET}.".encode()).decode()
    urls = (f"data:{kind};base64,{data}", f"data:{kind},card%20{SECRET}", "https://example.org/a")
    files = [Attachment(media_type=kind, data=data)]
    files += [Attachment(media_type=kind, url=url) for url in urls]
    other = Attachment(media_type=kind, data=b64encode(b"fine").decode())
    async with SQLiteJournal(tmp_path / "journal.db") as journal:
        memory = MessagesMemory(journal=journal)
        await memory.update([Message.user("?", attachments=(file,)) for file in (*files, other)])
        assert await memory.forget(text=TEXT) == 3
        assert await memory.count() == 2
        assert data.encode() not in on_disk(tmp_path)


@pytest.mark.thorough
async def test_postgres_keeps_it_in_free_space_at_most_until_the_tables_are_rewritten() -> None:
    long = "".join(map(chr, range(0x4E00, 0x9000)))  # which is not compressed
    said = [f"fine {n}" for n in range(50)] + [SECRET] * 50 + [long + SECRET] * 3
    schema = "sessions"
    with new_database() as url:
        tables = ", ".join(f"{schema}.{name}" for name in ("entries", "sessions"))
        values = (
            f"SELECT histogram_bounds, most_common_vals FROM pg_stats WHERE schemaname = '{schema}'"
        )
        async with PostgresJournal(url, schema=schema) as journal:
            memory = MessagesMemory(journal=journal, session="of Ann")
            await memory.update([Message.user(text) for text in said])
            run_sql(f"ANALYZE {tables}", url=url)  # as the server does by itself
            assert files_of_postgres(schema, url).count(SECRET.encode()) > 50
            kept = repr(run_sql(values, url=url))
            assert SECRET not in kept, "the planner keeps what was said"
            assert b"Ann".hex() not in kept, "the planner keeps names"
            assert await memory.forget(text=TEXT) == 53
            assert await memory.count() == 50
            run_sql(*(f"VACUUM FULL {table}" for table in tables.split(", ")), url=url)
            assert files_of_postgres(schema, url).count(SECRET.encode()) == 0
            assert await memory.count() == 50
