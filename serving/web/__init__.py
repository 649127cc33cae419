"""Sessions over HTTP: an ASGI application and its parts. Needs the extra ``server``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import extra, lazy_exports
from agent_brain.errors import BrainDefinitionError

_server = partial(extra, "server", BrainDefinitionError, "starlette", "uvicorn", "websockets")

if TYPE_CHECKING or not lazy_exports(globals(), _server):
    from agent_brain.serving.web.app import make_app as make_app
    from agent_brain.serving.web.responses import StreamResponse as StreamResponse
    from agent_brain.serving.web.server import serve_http as serve_http
    from agent_brain.serving.web.settings import ServerLimits as ServerLimits
    from agent_brain.serving.web.streams import events_response as events_response
    from agent_brain.serving.web.streams import ndjson_line as ndjson_line
    from agent_brain.serving.web.streams import run_response as run_response
    from agent_brain.serving.web.streams import sse_frame as sse_frame
