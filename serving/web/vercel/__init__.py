"""The UI message stream of the Vercel AI SDK."""

from __future__ import annotations

from starlette.routing import Route

from agent_brain.serving.web.vercel.endpoint import chat, continue_stream


def routes() -> list[Route]:
    """Return the routes."""
    return [
        Route("/ai-sdk/chat", chat, methods=["POST"]),
        Route("/ai-sdk/chat/{chat}/stream", continue_stream, methods=["GET"]),
    ]
