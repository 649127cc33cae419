"""What every test may use."""

from __future__ import annotations

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both event loops, for tests that are marked ``anyio``."""
    return str(request.param)
