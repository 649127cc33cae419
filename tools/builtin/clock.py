"""A tool that returns the current time in any time zone."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

from agent_brain.common.suggest import closest
from agent_brain.tools.base import BaseTool
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

_OFFSET = re.compile(r"(?:utc|gmt|z)?\s*(?:([+\u2212-])\s*(\d{1,2})(?::?([0-5]\d))?)?", re.I)
_FURTHEST = timedelta(hours=14)

# places whose zone has the name of another city
_PLACES = {
    place: zone
    for zone, places in {
        "Africa/Johannesburg": "cape town",
        "America/Chicago": "texas",
        "America/Los_Angeles": "california, san francisco, seattle",
        "America/New_York": "boston, miami, new york city, nyc, washington",
        "America/Sao_Paulo": "rio de janeiro",
        "Asia/Dubai": "abu dhabi",
        "Asia/Kolkata": "delhi, india, mumbai, new delhi",
        "Asia/Shanghai": "beijing, china",
        "Asia/Tokyo": "japan, kyoto, osaka",
        "Australia/Sydney": "canberra",
        "Etc/GMT": "gmt",
        "Europe/Berlin": "germany, hamburg, munich",
        "Europe/London": "uk",
        "Europe/Madrid": "barcelona, spain",
        "Europe/Paris": "france",
        "Europe/Rome": "italy, milan",
        "Europe/Zurich": "geneva",
    }.items()
    for place in places.split(", ")
}


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


@cache
def zones() -> dict[str, str]:
    """Return IANA zone names by place names and by zone names, both in lower case."""
    names = sorted(available_timezones() - {"localtime"})
    by_city = {
        zone.rsplit("/", 1)[-1].replace("_", " ").lower(): zone
        for zone in names
        if not zone.startswith("Etc/")  # their signs are reversed: Etc/GMT+5 is UTC-5
    }
    return {**by_city, **{zone.lower(): zone for zone in names}, **_PLACES, "utc": "UTC"}


def find_zone(place: str) -> str | None:
    """Return the IANA zone of a city, a country or a zone name; None if it is unknown."""
    key = place.strip(" ?.!").lower()
    return zones().get(key) or zones().get(key.replace("_", " "))


def fixed_offset(text: str) -> timezone | None:
    """Return the offset that ``UTC``, ``GMT+5`` or ``-03:30`` means: east of Greenwich is plus."""
    match = _OFFSET.fullmatch(text.strip())
    if match is None or not match[0]:
        return None
    offset = timedelta(hours=int(match[2] or 0), minutes=int(match[3] or 0))
    if offset > _FURTHEST:
        return None
    return timezone(-offset if match[1] in ("-", "\u2212") else offset) if offset else UTC
