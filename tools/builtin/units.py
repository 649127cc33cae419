"""Units of measurement and conversion between them. Private."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple

from agent_brain.tools.suggest import closest


class Unit(NamedTuple):
    """A unit: ``base = value * factor + offset``, in the base unit of its kind."""

    name: str
    kind: str
    factor: Fraction
    offset: Fraction = Fraction(0)


# kind -> "unit, other names = base units in one of it"; US customary where countries differ
_TABLE = {
    "length": "metre meter m = 1; kilometre kilometer km kms = 1000; yard yd = 0.9144; "
    "centimetre centimeter cm = 0.01; millimetre millimeter mm = 0.001; mile mi = 1609.344; "
    "foot feet ft = 0.3048; inch inches in = 0.0254; nautical_mile nmi = 1852",
    "mass": "gram g gramme = 1; kilogram kg kilo kilogramme = 1000; milligram mg = 0.001; "
    "tonne metric_ton = 1000000; pound lb lbs = 453.59237; ounce oz = 28.349523125; "
    "stone st = 6350.29318",
    "volume": "litre liter l = 1; millilitre milliliter ml = 0.001; gallon gal = 3.785411784; "
    "centilitre centiliter cl = 0.01; cup cups = 0.2365882365; pint pt = 0.473176473; "
    "quart qt = 0.946352946; fluid_ounce fl_oz = 0.0295735295625; "
    "tablespoon tbsp = 0.01478676478125; teaspoon tsp = 0.00492892159375; "
    "cubic_metre cubic_meter m3 = 1000",
    "time": "second sec s = 1; millisecond ms = 0.001; minute min mins = 60; hour hr hrs h = 3600; "
    "day days d = 86400; week wk = 604800; fortnight = 1209600",
    "area": "square_metre square_meter m2 sqm = 1; square_mile = 2589988.110336; "
    "square_kilometre square_kilometer km2 = 1000000; acre = 4046.8564224; hectare ha = 10000; "
    "square_foot square_feet sq_ft sqft = 0.09290304",
    "speed": "metre_per_second m/s mps meters_per_second = 1; knot kn = 463/900; "
    "kilometre_per_hour km/h kph kmh kmph kilometers_per_hour kilometres_per_hour = 5/18; "
    "mile_per_hour mph miles_per_hour = 0.44704",
    "data": "bit bits b = 1; kilobit kbit Kb = 1000; megabit Mbit Mb = 1000000; byte B = 8; "
    "gigabit Gbit Gb = 1000000000; terabit Tbit Tb = 1000000000000; kilobyte kB KB = 8000; "
    "megabyte MB = 8000000; gigabyte GB = 8000000000; terabyte TB = 8000000000000; "
    "kibibyte KiB = 8192; mebibyte MiB = 8388608; gibibyte GiB = 8589934592; "
    "tebibyte TiB = 8796093022208",
}
_TEMPERATURES = {
    "kelvin k kelvins": ("1", "0"),
    "celsius c °c centigrade": ("1", "273.15"),
    "fahrenheit f °f": ("5/9", "45967/180"),
}


class UnitError(ValueError):
    """A unit is unknown, or two units do not measure the same."""


def _read_table() -> dict[str, Unit]:
    names: dict[str, Unit] = {}
    for kind, units in _TABLE.items():
        for entry in units.split(";"):
            aliases, _, factor = entry.partition("=")
            found = [alias.replace("_", " ") for alias in aliases.split()]
            unit = Unit(found[0], kind, Fraction(factor.strip()))
            for alias in found:
                names[alias] = unit
                if len(alias) > 3 and not alias.endswith(("s", "feet", "foot", "inch")):
                    names[alias + "s"] = unit
    for aliases, (factor, offset) in _TEMPERATURES.items():
        found = aliases.split()
        unit = Unit(found[0], "temperature", Fraction(factor), Fraction(offset))
        for alias in found:
            names[alias] = names[f"degrees {alias}"] = names[f"degree {alias}"] = unit
    return names


_UNITS = _read_table()
_ANY_CASE: dict[str, dict[Unit, str]] = {}  # names in lower case; case may tell several units apart
for _name, _unit in _UNITS.items():
    _ANY_CASE.setdefault(_name.lower(), {}).setdefault(_unit, _name)


def find_unit(name: str) -> Unit:
    """Return the unit of that name, in any usual spelling; case counts where it is significant.

    Raises:
        UnitError: There is no such unit, or the case is ambiguous.
    """
    key = re.sub(r"[\s_]+", " ", name.strip()).rstrip(".")
    if key in _UNITS:
        return _UNITS[key]
    found = _ANY_CASE.get(key.lower(), {})
    if len(found) == 1:
        return next(iter(found))
    if found:
        either = " or ".join(f"{spelling!r} ({unit.name})" for unit, spelling in found.items())
        raise UnitError(f"{name!r} may be two units: write {either}")
    near = closest(key, _ANY_CASE, cutoff=0.75)
    hint = f" Did you mean {next(iter(_ANY_CASE[near])).name!r}?" if near else ""
    raise UnitError(f"There is no unit {name!r} here.{hint}")


def convert(value: Fraction, source: Unit, target: Unit) -> Fraction:
    """Convert ``value`` from ``source`` to ``target``.

    Raises:
        UnitError: They measure different things, or the temperature is below absolute zero.
    """
    if source.kind != target.kind:
        raise UnitError(
            f"{source.name} measures {source.kind} and {target.name} measures {target.kind}"
        )
    base = value * source.factor + source.offset
    if source.kind == "temperature" and base < 0:
        raise UnitError(
            f"{float(value):g} {source.name} is below absolute zero (-273.15 °C, 0 K, -459.67 °F)"
        )
    return (base - target.offset) / target.factor
