"""Serve a brain to other programs: sessions over HTTP, and an MCP server with the tool ``ask``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.serving.caller import Caller
from agent_brain.serving.catalog import Origin, SessionInfo
from agent_brain.serving.conversations import Conversations, MakeBrain
from agent_brain.serving.event_log import Gap, LogReader, SessionEvent
from agent_brain.serving.servers import SharedServers
from agent_brain.serving.session import Session
from agent_brain.serving.session_run import SessionRun
from agent_brain.serving.sessions import SessionKey, Sessions

if TYPE_CHECKING:
    from agent_brain.serving.mcp_server import make_server as make_server
    from agent_brain.serving.mcp_server import serve as serve

__all__ = [
    "Caller",
    "Conversations",
    "Gap",
    "LogReader",
    "MakeBrain",
    "Origin",
    "Session",
    "SessionEvent",
    "SessionInfo",
    "SessionKey",
    "SessionRun",
    "Sessions",
    "SharedServers",
    "make_server",
    "serve",
]


def __getattr__(name: str) -> object:
    if name not in ("make_server", "serve"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from agent_brain.errors import BrainDefinitionError

    try:
        from agent_brain.serving import mcp_server
    except ModuleNotFoundError as error:
        raise BrainDefinitionError(
            "the package mcp is not installed: pip install 'agent-brain[mcp]'"
        ) from error
    return getattr(mcp_server, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
