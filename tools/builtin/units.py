"""Convert between units of measurement."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TypeAlias

from agent_brain.common.suggest import did_you_mean
from agent_brain.tools.errors import ToolError
from agent_brain.tools.function import tool

Unit: TypeAlias = tuple[str, str, Fraction, Fraction]  # name, kind, factor, offset

# kind -> "unit, other names = base units in one of it"; US customary where countries differ
_TABLE = {
    "length": "metre meter m = 1; kilometre kilometer km = 1000; yard yd = 0.9144; "
    "centimetre centimeter cm = 0.01; millimetre millimeter mm = 0.001; mile mi = 1609.344; "
    "foot feet ft = 0.3048; inch in = 0.0254; nautical_mile nmi = 1852",
    "mass": "gram g gramme = 1; kilogram kg kilo kilogramme = 1000; milligram mg = 0.001; "
    "tonne metric_ton = 1e6; pound lb lbs = 453.59237; ounce oz = 28.349523125; "
    "stone st = 6350.29318",
    "volume": "litre liter l = 1; millilitre milliliter ml = 0.001; gallon gal = 3.785411784; "
    "centilitre centiliter cl = 0.01; cup = 0.2365882365; pint pt = 0.473176473; "
    "quart qt = 0.946352946; fluid_ounce fl_oz = 0.0295735295625; teaspoon tsp = 0.00492892159375; "
    "tablespoon tbsp = 0.01478676478125; cubic_metre cubic_meter m3 = 1000",
    "time": "second sec s = 1; millisecond ms = 0.001; minute min = 60; day d = 86400; "
    "hour hr h = 3600; week wk = 604800; fortnight = 1209600",
    "area": "square_metre square_meter m2 sqm = 1; square_mile = 2589988.110336; "
    "square_kilometre square_kilometer km2 = 1e6; acre = 4046.8564224; hectare ha = 10000; "
    "square_foot square_feet sq_ft sqft = 0.09290304",
    "speed": "metre_per_second m/s mps meters_per_second = 1; knot kn = 463/900; "
    "kilometre_per_hour km/h kph kmh kmph kilometers_per_hour kilometres_per_hour = 5/18; "
    "mile_per_hour mph miles_per_hour = 0.44704",
    "data": "bit b = 1; kilobit kbit Kb = 1000; megabit Mbit Mb = 1e6; byte B = 8; "
    "gigabit Gbit Gb = 1e9; terabit Tbit Tb = 1e12; kilobyte kB KB = 8e3; megabyte MB = 8e6; "
    "gigabyte GB = 8e9; terabyte TB = 8e12; kibibyte KiB = 8192; mebibyte MiB = 8388608; "
    "gibibyte GiB = 8589934592; tebibyte TiB = 8796093022208",
    "temperature": "kelvin k = 1; celsius c °c centigrade = 1 + 273.15; "
    "fahrenheit f °f = 5/9 + 45967/180",
}


@tool(idempotent=True)
async def convert_units(value: float, from_unit: str, to_unit: str) -> float:
    """Convert a value between units of length, mass, volume, time, area, speed, data, temperature.

    Args:
        value: The value in the first unit.
        from_unit: Such as "mile", "kg", "cup" (US), "fahrenheit", "MB" (megabyte), "Mb" (megabit).
        to_unit: A unit that measures the same.
    """
    source, kind, factor, offset = _find_unit(from_unit)
    target, other_kind, other_factor, other_offset = _find_unit(to_unit)
    if kind != other_kind:
        raise ToolError(f"{source} measures {kind} and {target} measures {other_kind}")
    try:
        base = Fraction(str(value)) * factor + offset  # 0.1 is 1/10
        result = float((base - other_offset) / other_factor)
    except (ValueError, OverflowError):
        raise ToolError(f"{value} is not a number, or the result is too large") from None
    if kind == "temperature" and base < 0:
        raise ToolError(f"{value:g} {source} is below absolute zero: 0 K, -273.15 °C, -459.67 °F")
    return result


def _read_table() -> dict[str, Unit]:
    names: dict[str, Unit] = {}
    for kind, units in _TABLE.items():
        for entry in units.split(";"):
            aliases, _, numbers = entry.partition("=")
            factor, _, offset = numbers.partition("+")
            found = [alias.replace("_", " ") for alias in aliases.split()]
            unit = (found[0], kind, Fraction(factor.strip()), Fraction(offset.strip() or 0))
            for alias in found:
                names[alias] = unit
                names.setdefault(alias + ("es" if alias.endswith("ch") else "s"), unit)
    return names


_UNITS = _read_table()


def _find_unit(name: str) -> Unit:
    """Return the unit of that name; case counts only where it distinguishes two units."""
    key = re.sub(r"^degrees? ", "", re.sub(r"[\s_]+", " ", name.strip()).rstrip("."))
    if key in _UNITS:
        return _UNITS[key]
    found = {known: unit for known, unit in _UNITS.items() if known.lower() == key.lower()}
    if not found:
        raise ToolError(f"There is no unit {name!r} here.{did_you_mean(key, _UNITS, cutoff=0.75)}")
    if len(set(found.values())) > 1:
        either = " or ".join(f"{known!r} ({unit[0]})" for known, unit in found.items())
        raise ToolError(f"{name!r} may be two units: write {either}")
    return next(iter(found.values()))
