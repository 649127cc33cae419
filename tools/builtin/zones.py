"""Time zones by place names."""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone
from functools import cache
from zoneinfo import available_timezones

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
