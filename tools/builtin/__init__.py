"""A few safe tools of our own: none of them runs code, and none leaves what it was given."""

from __future__ import annotations

from agent_brain.tools.builtin.asking import ask_user
from agent_brain.tools.builtin.calculator import calculate, convert_units
from agent_brain.tools.builtin.clock import clock_tool, current_time
from agent_brain.tools.builtin.files import file_tools
from agent_brain.tools.builtin.recall import memory_search_tool
from agent_brain.tools.builtin.web import http_get_tool

__all__ = [
    "ask_user",
    "calculate",
    "clock_tool",
    "convert_units",
    "current_time",
    "file_tools",
    "http_get_tool",
    "memory_search_tool",
]
