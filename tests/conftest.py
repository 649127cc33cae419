"""What every test may use."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("agent-brain", deadline=None)  # a busy machine is no failure
settings.load_profile("agent-brain")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Both event loops, for tests that are marked ``anyio``."""
    return str(request.param)
