"""Units of measurement: their names, and how one is turned into another."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: ``base = value * factor + offset``, in the base unit of its kind.

    Attributes:
        name: What it is called, in the singular.
        kind: What it measures; only units of one kind convert into each other.
        factor: Base units in one of it.
        offset: Base units at its zero; only temperatures have one.
    """

    name: str
    kind: str
    factor: Fraction
    offset: Fraction = Fraction(0)


# kind -> "name aliases…" -> base units in one of it; US customary where countries differ
_TABLE: dict[str, dict[str, str]] = {
    "length": {
        "metre meter m": "1",
        "kilometre kilometer km kms": "1000",
        "centimetre centimeter cm": "0.01",
        "millimetre millimeter mm": "0.001",
        "mile mi": "1609.344",
        "yard yd": "0.9144",
        "foot feet ft": "0.3048",
        "inch inches in": "0.0254",
        "nautical_mile nmi": "1852",
    },
    "mass": {
        "gram g gramme": "1",
        "kilogram kg kilo kilogramme": "1000",
        "milligram mg": "0.001",
        "tonne metric_ton": "1000000",
        "pound lb lbs": "453.59237",
        "ounce oz": "28.349523125",
        "stone st": "6350.29318",
    },
    "volume": {
        "litre liter l": "1",
        "millilitre milliliter ml": "0.001",
        "centilitre centiliter cl": "0.01",
        "cup": "0.2365882365",
        "pint pt": "0.473176473",
        "quart qt": "0.946352946",
        "gallon gal": "3.785411784",
        "fluid_ounce fl_oz": "0.0295735295625",
        "tablespoon tbsp": "0.01478676478125",
        "teaspoon tsp": "0.00492892159375",
        "cubic_metre cubic_meter m3": "1000",
    },
    "time": {
        "second sec s": "1",
        "millisecond ms": "0.001",
        "minute min mins": "60",
        "hour hr hrs h": "3600",
        "day d": "86400",
        "week wk": "604800",
        "fortnight": "1209600",
    },
    "area": {
        "square_metre square_meter m2 sqm": "1",
        "square_kilometre square_kilometer km2": "1000000",
        "square_foot square_feet sq_ft sqft": "0.09290304",
        "square_mile": "2589988.110336",
        "acre": "4046.8564224",
        "hectare ha": "10000",
    },
    "speed": {
        "metre_per_second m/s mps meters_per_second": "1",
        "kilometre_per_hour km/h kph kmh kilometers_per_hour kilometres_per_hour": "5/18",
        "mile_per_hour mph miles_per_hour": "0.44704",
        "knot kn": "463/900",
    },
    "data": {
        "bit bits b": "1",
        "kilobit kbit Kb": "1000",
        "megabit Mbit Mb": "1000000",
        "gigabit Gbit Gb": "1000000000",
        "terabit Tbit Tb": "1000000000000",
        "byte B": "8",
        "kilobyte kB KB": "8000",
        "megabyte MB": "8000000",
        "gigabyte GB": "8000000000",
        "terabyte TB": "8000000000000",
        "kibibyte KiB": "8192",
        "mebibyte MiB": "8388608",
        "gibibyte GiB": "8589934592",
        "tebibyte TiB": "8796093022208",
    },
}
_TEMPERATURES = [
    (Unit("kelvin", "temperature", Fraction(1)), "kelvin k kelvins"),
    (Unit("celsius", "temperature", Fraction(1), Fraction("273.15")), "celsius c °c centigrade"),
    (
        Unit("fahrenheit", "temperature", Fraction(5, 9), Fraction("273.15") - Fraction(160, 9)),
        "fahrenheit f °f",
    ),
]


def _names() -> dict[str, Unit]:
    names: dict[str, Unit] = {}
    for kind, units in _TABLE.items():
        for aliases, factor in units.items():
            name, *others = (alias.replace("_", " ") for alias in aliases.split())
            unit = Unit(name, kind, Fraction(factor))
            for alias in (name, *others):
                names[alias] = unit
                if len(alias) > 3 and not alias.endswith(("s", "feet", "foot", "inches")):
                    names[alias + ("es" if alias == "inch" else "s")] = unit
    for unit, aliases in _TEMPERATURES:
        for alias in aliases.split():
            names[alias] = names[f"degrees {alias}"] = names[f"degree {alias}"] = unit
    return names | {"cups": names["cup"], "days": names["day"], "kmph": names["kph"]}


def _by_lower_case(units: dict[str, Unit]) -> dict[str, dict[Unit, str]]:
    """Names without their case: one unit each, or several whose names the case tells apart."""
    found: dict[str, dict[Unit, str]] = {}
    for name, unit in units.items():
        found.setdefault(name.lower(), {}).setdefault(unit, name)
    return found


UNITS = _names()
_ANY_CASE = _by_lower_case(UNITS)


class UnitError(ValueError):
    """A unit nobody knows, or two that do not measure the same."""


def find_unit(name: str) -> Unit:
    """The unit of that name, in any usual spelling; case matters where it tells two units apart.

    Raises:
        UnitError: There is none, and the text suggests a near one; or the case leaves it open.
    """
    key = re.sub(r"[\s_]+", " ", name.strip()).rstrip(".")
    if key in UNITS:
        return UNITS[key]
    found = _ANY_CASE.get(key.lower(), {})
    if len(found) == 1:
        return next(iter(found))
    if found:
        either = " or ".join(f"{spelling!r} ({unit.name})" for unit, spelling in found.items())
        raise UnitError(f"{name!r} may be two units: write {either}")
    near = difflib.get_close_matches(key.lower(), _ANY_CASE, n=1, cutoff=0.75)
    hint = f" Did you mean {next(iter(_ANY_CASE[near[0]])).name!r}?" if near else ""
    raise UnitError(f"There is no unit {name!r} here.{hint}")


def convert(value: Fraction, source: Unit, target: Unit) -> Fraction:
    """``value`` in ``source`` as so many of ``target``.

    Raises:
        UnitError: They measure different things, or it is colder than absolute zero.
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
