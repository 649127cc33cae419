"""A tool that returns the current time in any time zone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from agent_brain.common.suggest import closest
from agent_brain.tools.base import BaseTool
from agent_brain.tools.builtin.zones import find_zone, fixed_offset, zones
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def clock_tool(clock: Callable[[tzinfo], datetime] = datetime.now) -> BaseTool:
    """Return the tool ``current_time``, which reads ``clock``: the current time in a zone."""

    @tool(idempotent=True)
    async def current_time(zone: str = "UTC") -> dict[str, str]:
        """Tell the current date, weekday and time (now, today) in a time zone.

        Args:
            zone: An IANA time zone such as "Asia/Tokyo", a city, or an offset: "UTC+05:30".
        """
        now = clock(_zone(zone))
        return {
            "date": now.date().isoformat(),
            "weekday": WEEKDAYS[now.weekday()],
            "time": f"{now:%H:%M}",
            "zone": zone,
        }

    return current_time


current_time = clock_tool()


def _zone(name: str) -> tzinfo:
    offset = fixed_offset(name)
    if offset is not None:
        return offset
    found = find_zone(name)
    if found is None:
        near = closest(name, zones(), cutoff=0.75)
        hint = f" Did you mean {zones()[near]!r}?" if near else ""
        raise ToolError(f"There is no time zone {name!r}.{hint}")
    return ZoneInfo(found)
