"""Built-in tools: none of them runs code, and each is confined to what it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_brain.common.lazy_exports import lazy_exports

if TYPE_CHECKING or not lazy_exports(globals()):
    from agent_brain.tools.builtin.asking import ask_user as ask_user
    from agent_brain.tools.builtin.calculator import calculate as calculate
    from agent_brain.tools.builtin.clock import clock_tool as clock_tool
    from agent_brain.tools.builtin.clock import current_time as current_time
    from agent_brain.tools.builtin.files import file_tools as file_tools
    from agent_brain.tools.builtin.recall import memory_search_tool as memory_search_tool
    from agent_brain.tools.builtin.units import convert_units as convert_units
    from agent_brain.tools.builtin.web import http_get_tool as http_get_tool
