"""Sessions over HTTP: an ASGI application and its parts. Needs the extra ``server``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_brain.serving.web.app import make_app as make_app
    from agent_brain.serving.web.frames import ndjson_line as ndjson_line
    from agent_brain.serving.web.frames import sse_frame as sse_frame
    from agent_brain.serving.web.responses import StreamResponse as StreamResponse
    from agent_brain.serving.web.server import serve_http as serve_http
    from agent_brain.serving.web.settings import ServerLimits as ServerLimits
    from agent_brain.serving.web.streams import events_response as events_response
    from agent_brain.serving.web.streams import run_response as run_response

_HOME = {
    "ServerLimits": "settings",
    "events_response": "streams",
    "run_response": "streams",
    "StreamResponse": "responses",
    "make_app": "app",
    "ndjson_line": "frames",
    "serve_http": "server",
    "sse_frame": "frames",
}

__all__ = [
    "ServerLimits",
    "StreamResponse",
    "events_response",
    "make_app",
    "ndjson_line",
    "run_response",
    "serve_http",
    "sse_frame",
]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    from agent_brain.errors import BrainDefinitionError

    try:
        module = import_module(f"{__name__}.{_HOME[name]}")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("starlette", "uvicorn", "websockets"):
            raise
        raise BrainDefinitionError(
            f"the package {error.name} is not installed: pip install 'agent-brain[server]'"
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
