"""The official npm client."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agent_brain import Brain
from agent_brain.demo import demo_tools
from tests.serving.web.openai.server import serving
from tests.support.node import npm_packages, run_node

pytestmark = pytest.mark.anyio

SCRIPT = Path(__file__).with_name("client.mjs")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"  # as uvicorn


async def test_the_npm_client_talks_to_the_agent():
    folder = npm_packages("openai@7.57.0")
    brain = Brain("react", tools=demo_tools())
    async with serving(brain, show_tools=True) as url:
        [report] = await anyio.to_thread.run_sync(run_node, SCRIPT, folder, url)

    assert report["models"] == ["agent-brain"]
    assert "391" in report["chat"]["message"]["content"]
    assert report["chat"]["finish_reason"] == "stop"
    assert report["chatStream"]["text"] == report["chat"]["message"]["content"] == report["helper"]
    assert "391" in report["chatStream"]["asides"]
    assert report["chatStream"]["finishReason"] == "stop"
    assert report["chatStream"]["usage"]["total_tokens"] > 0
    assert report["response"]["status"] == "completed"
    assert "391" in report["response"]["text"]
    assert report["events"][:2] == ["response.created", "response.in_progress"]
    assert report["events"][-1] == "response.completed"
    assert report["responseStream"]["kinds"][-1] == "message"
    assert "mcp_call" in report["responseStream"]["kinds"]
    assert "23" in report["responseStream"]["text"]
    assert report["error"] == {"name": "NotFoundError", "code": "model_not_found", "status": 404}
