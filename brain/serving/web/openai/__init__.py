"""The API of OpenAI for a server's agent: ``/v1/models``, Chat Completions and Responses."""

from __future__ import annotations

from agent_brain.serving.web.openai.endpoints import routes

__all__ = ["routes"]
