"""AG-UI: the protocol between agents and user interfaces. Needs the extra ``ag-ui``."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_brain.serving.web.requests import HttpError

PATH = "/ag-ui"


def routes() -> list[Route]:
    """Return the route ``POST /ag-ui``; without the extra, it says what to install."""
    try:
        from agent_brain.serving.web.ag_ui.endpoint import run_agent
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("ag_ui"):
            raise
        return [Route(PATH, _not_installed, methods=["POST"])]
    return [Route(PATH, run_agent, methods=["POST"])]


async def _not_installed(request: Request) -> Response:
    message = "The server needs the package ag-ui-protocol: pip install 'agent-brain[ag-ui]'"
    raise HttpError(501, "not_installed", message)
