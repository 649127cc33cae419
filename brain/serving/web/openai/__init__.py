"""The API of OpenAI for a server's agent: ``/v1/models``, Chat Completions and Responses."""

from __future__ import annotations

from agent_brain.serving.web.openai.endpoints import routes
from agent_brain.serving.web.openai.shown import Shown

__all__ = ["Shown", "routes"]
