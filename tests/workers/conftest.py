"""Fixtures of the tests of workers: DBOS needs asyncio, and is to end promptly."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace

import dbos._sys_db
import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="package", autouse=True)
def _workers_end_promptly() -> Iterator[None]:
    """DBOS looks every 50 ms for news in SQLite and whether that is to end; by default each second.

    Its wait for runs, when a worker ends, is not shortened: one that was just taken needs it.
    """

    def sleep(seconds: float) -> None:
        time.sleep(seconds / 20)

    clock = SimpleNamespace(**vars(time) | {"sleep": sleep})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbos._sys_db, "time", clock)
        yield
