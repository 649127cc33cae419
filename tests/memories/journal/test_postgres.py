"""PostgresJournal passes the conformance suite."""

from __future__ import annotations

from uuid import uuid4

import pytest

from agent_brain.memories import PostgresJournal
from agent_brain.testing import journal_conformance
from tests.support.conformance import pass_all
from tests.support.postgres_server import URL, clear, drop, needs_postgres

pytestmark = pytest.mark.anyio

SCHEMA = f"test_{uuid4().hex}"


@pytest.fixture(autouse=True, scope="module")
def schema():
    needs_postgres()
    yield
    drop(SCHEMA)


def make() -> PostgresJournal:
    clear(SCHEMA)
    return PostgresJournal(URL, schema=SCHEMA)


async def test_a_journal_behaves() -> None:
    await pass_all(journal_conformance(make))
