"""The UI message stream of the Vercel AI SDK."""

from __future__ import annotations

from starlette.routing import Route

from agent_brain.serving.web.vercel.endpoint import chat


def routes() -> list[Route]:
    """Return the route ``POST /ai-sdk/chat``."""
    return [Route("/ai-sdk/chat", chat, methods=["POST"])]
