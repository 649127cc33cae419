"""Fixtures for the tests of the brain."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.clock import clock_backend


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    """Both event loops, with a clock that tests of time limits may stop."""
    return clock_backend(request.param)
