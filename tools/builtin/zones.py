"""Time zones by the names of places."""

from __future__ import annotations

from functools import cache
from zoneinfo import available_timezones

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
    by_city = {zone.rsplit("/", 1)[-1].replace("_", " ").lower(): zone for zone in names}
    return {**by_city, **{zone.lower(): zone for zone in names}, **_PLACES, "utc": "UTC"}


def find_zone(place: str) -> str | None:
    """The IANA zone of a city, a country or a zone name; None if there is none of that name."""
    key = place.strip(" ?.!").lower()
    return zones().get(key) or zones().get(key.replace("_", " "))
