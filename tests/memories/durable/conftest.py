"""Journals for runs in processes of their own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import postgres_server, redis_server


@pytest.fixture(params=["sqlite", "redis", "postgres"])
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, str]]:
    """The kind and the place of a journal."""
    if request.param == "sqlite":
        yield "sqlite", str(tmp_path / "journal.db")
    elif request.param == "redis":
        redis_server.redis_url()
        with redis_server.journal_prefix() as prefix:
            yield "redis", prefix
    else:
        with postgres_server.new_schema() as schema:
            yield "postgres", schema
