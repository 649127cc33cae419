"""Journals: append-only storage beneath a memory, in RAM, on disk or on a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.memories.journal.base import Journal as Journal
    from agent_brain.memories.journal.entry import Entry as Entry
    from agent_brain.memories.journal.postgres.journal import PostgresJournal as PostgresJournal
    from agent_brain.memories.journal.ram import RamJournal as RamJournal
    from agent_brain.memories.journal.redis.journal import RedisJournal as RedisJournal
    from agent_brain.memories.journal.sqlite.journal import SQLiteJournal as SQLiteJournal
