"""Serve a brain to other programs: sessions over HTTP, and an MCP server with the tool ``ask``."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import extra, lazy_exports
from agent_brain.errors import BrainDefinitionError

if TYPE_CHECKING or not lazy_exports(globals(), partial(extra, "mcp", BrainDefinitionError)):
    from agent_brain.serving.access import Caller as Caller
    from agent_brain.serving.catalog import Origin as Origin
    from agent_brain.serving.catalog import SessionInfo as SessionInfo
    from agent_brain.serving.conversations import Conversations as Conversations
    from agent_brain.serving.conversations import MakeBrain as MakeBrain
    from agent_brain.serving.conversations import SharedServers as SharedServers
    from agent_brain.serving.event_log import Gap as Gap
    from agent_brain.serving.event_log import LogReader as LogReader
    from agent_brain.serving.event_log import SessionEvent as SessionEvent
    from agent_brain.serving.forking import Chat as Chat
    from agent_brain.serving.forking import Choice as Choice
    from agent_brain.serving.mcp_server import make_server as make_server
    from agent_brain.serving.mcp_server import serve as serve
    from agent_brain.serving.session import Session as Session
    from agent_brain.serving.session_run import SessionRun as SessionRun
    from agent_brain.serving.sessions import SessionKey as SessionKey
    from agent_brain.serving.sessions import Sessions as Sessions
