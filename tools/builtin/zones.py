"""Time zones by the names of places."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone
from functools import cache
from zoneinfo import available_timezones

_OFFSET = re.compile(r"(?:utc|gmt|z)?\s*(?:([+\u2212-])\s*(\d{1,2})(?::?([0-5]\d))?)?", re.I)
_FURTHEST = timedelta(hours=14)

# places whose zone carries another city's name
_PLACES = {
    "abu dhabi": "Asia/Dubai",
    "barcelona": "Europe/Madrid",
    "beijing": "Asia/Shanghai",
    "boston": "America/New_York",
    "california": "America/Los_Angeles",
    "canberra": "Australia/Sydney",
    "cape town": "Africa/Johannesburg",
    "china": "Asia/Shanghai",
    "delhi": "Asia/Kolkata",
    "france": "Europe/Paris",
    "germany": "Europe/Berlin",
    "geneva": "Europe/Zurich",
    "gmt": "Etc/GMT",
    "hamburg": "Europe/Berlin",
    "india": "Asia/Kolkata",
    "italy": "Europe/Rome",
    "japan": "Asia/Tokyo",
    "kyoto": "Asia/Tokyo",
    "miami": "America/New_York",
    "milan": "Europe/Rome",
    "mumbai": "Asia/Kolkata",
    "munich": "Europe/Berlin",
    "new delhi": "Asia/Kolkata",
    "new york city": "America/New_York",
    "nyc": "America/New_York",
    "osaka": "Asia/Tokyo",
    "rio de janeiro": "America/Sao_Paulo",
    "san francisco": "America/Los_Angeles",
    "seattle": "America/Los_Angeles",
    "spain": "Europe/Madrid",
    "texas": "America/Chicago",
    "uk": "Europe/London",
    "washington": "America/New_York",
}


@cache
def zones() -> dict[str, str]:
    """Lower-case place names, and zone names themselves, to IANA zone names."""
    names = sorted(available_timezones() - {"localtime"})
    by_city = {
        zone.rsplit("/", 1)[-1].replace("_", " ").lower(): zone
        for zone in names
        if not zone.startswith("Etc/")  # their signs are the wrong way round: Etc/GMT+5 is UTC-5
    }
    return {**by_city, **{zone.lower(): zone for zone in names}, **_PLACES, "utc": "UTC"}


def find_zone(place: str) -> str | None:
    """The IANA zone of a city, a country or a zone name; None if there is none of that name."""
    key = place.strip(" ?.!").lower()
    return zones().get(key) or zones().get(key.replace("_", " "))


def fixed_offset(text: str) -> timezone | None:
    """The offset that ``UTC``, ``GMT+5`` or ``-03:30`` means: east of Greenwich is plus."""
    match = _OFFSET.fullmatch(text.strip())
    if match is None or not match[0]:
        return None
    offset = timedelta(hours=int(match[2] or 0), minutes=int(match[3] or 0))
    if offset > _FURTHEST:
        return None
    return timezone(-offset if match[1] in ("-", "\u2212") else offset) if offset else UTC
