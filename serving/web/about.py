"""What the server is: its health, its agent, its chat page."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from agent_brain.default_model import models_of
from agent_brain.serving.web.openapi import describe_api
from agent_brain.serving.web.requests import sessions_of, settings_of

PAGE = Path(__file__).parent / "page"
# Nothing from other hosts, no inline script: what a model writes cannot run.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data: blob:; media-src data:; font-src 'self'; base-uri 'none'; "
    "form-action 'self'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


class _PageFiles(StaticFiles):
    def file_response(self, *args: object, **options: object) -> Response:
        response = super().file_response(*args, **options)  # type: ignore[arg-type]
        response.headers.update(PAGE_HEADERS)
        return response


async def healthz(request: Request) -> Response:
    """Tell that the process answers."""
    return JSONResponse({"status": "ok"})


async def readyz(request: Request) -> Response:
    """Tell whether runs are accepted."""
    ready = sessions_of(request).active
    return JSONResponse({"status": "ok" if ready else "stopping"}, 200 if ready else 503)


async def page(request: Request) -> Response:
    """Return the chat page."""
    return FileResponse(PAGE / "index.html", headers=PAGE_HEADERS)


async def info(request: Request) -> Response:
    """Describe the agent."""
    settings, brain = settings_of(request), sessions_of(request).brain
    models = [model.model for model in models_of(brain.net)]
    tools = {**brain.memory.available_tools, **{tool.name: tool for tool in brain.net.tools}}
    body = {
        "name": settings.name,
        "net": brain.net.name,
        "states": [state.name for state in brain.net.states],
        "model": models[0] if models else None,
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "requires_approval": tool.requires_approval is not False,
            }
            for tool in tools.values()
        ],
        "needs_token": settings.needs_token,
        "keeps_steps": settings.sessions.keeps_steps,
        "knows_users": settings.sessions.knows_users,
    }
    return JSONResponse(body)


async def net_picture(request: Request) -> Response:
    """Draw the net."""
    return Response(sessions_of(request).brain.net.to_svg(), media_type="image/svg+xml")


async def api_description(request: Request) -> Response:
    """Return the OpenAPI description of the server."""
    return JSONResponse(describe_api(settings_of(request)))


def routes() -> list[BaseRoute]:
    """Return the routes."""
    return [
        Route("/healthz", healthz),
        Route("/readyz", readyz),
        Route("/", page),
        Route("/info", info),
        Route("/net.svg", net_picture),
        Route("/openapi.json", api_description),
        Mount("/page", _PageFiles(directory=PAGE)),
    ]
