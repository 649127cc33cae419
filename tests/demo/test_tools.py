"""The tools of the demo, called as a model calls them."""

from __future__ import annotations

import pytest

from agent_brain.demo import demo_tools
from agent_brain.tools import Action, call_tool
from tests.demo.helpers import fixed_clock

pytestmark = pytest.mark.anyio
TOOLS = {tool.name: tool for tool in demo_tools(clock=fixed_clock)}


async def _call(name, **args):
    return await call_tool(Action(name=name, args=args), TOOLS)


@pytest.mark.parametrize(
    "expression",
    [
        "9**9**9",
        "9**9**9**9**9",
        "1/0",
        "1 % 0",
        "0 ** -1",
        "(" * 300 + "1" + ")" * 300,
        "-" * 500 + "1",
        "sqrt " * 100 + "2",
        "1+" * 450 + "1",
        "1" * 10_000,
        "1e999 * 1e999 * 1e999 * 1e999",
        "500! * 500! * 500!",
        "501!",
        "(-8) ** 0.5",
        "sqrt(-1)",
        "pi ** pi ** pi ** pi",
        "1e300 ** 2.5",
        "__import__('os')",
        "2 +",
        "2 3",
        "",
        "@ + 1",
    ],
)
async def test_a_hostile_or_wrong_expression_is_a_tool_error(expression):
    outcome = await _call("calculate", expression=expression)
    assert outcome.is_error
    assert outcome.content.startswith("Cannot calculate this")


@pytest.mark.parametrize(
    "expression,expected",
    [
        ("2 ** 3 ** 2", "512"),
        ("-2 ** 2", "-4"),
        ("1 / 3", "0.333333333333"),
        ("0.1 + 0.2", "0.3"),
        ("50% + 3", "3.5"),
        ("10 % 3", "1"),
        ("2 ** 100", str(2**100)),
        ("1+" * 150 + "1", "151"),
        ("sqrt(16) + cbrt(27) + 3!", "13"),
        ("100 * 1000", "100000"),
        ("round(2.6)", "3"),
        ("1 / 10 ** 9", "1e-9"),
    ],
)
async def test_expressions(expression, expected):
    assert (await _call("calculate", expression=expression)).content == expected


@pytest.mark.parametrize(
    "args,expected",
    [
        ({"operation": "add_days", "date": "2024-01-31", "months": 1}, "2024-02-29"),
        ({"operation": "add_days", "date": "2024-12-31", "months": -1}, "2024-11-30"),
        ({"operation": "add_days", "date": "2024-11-30", "months": 1}, "2024-12-30"),
        ({"operation": "weekday", "date": "2000-01-01"}, "Saturday"),
    ],
)
async def test_dates(args, expected):
    assert (await _call("date_math", **args)).content == expected


@pytest.mark.parametrize(
    "name,args,reason",
    [
        ("date_math", {"operation": "weekday", "date": "soon"}, "YYYY-MM-DD"),
        ("date_math", {"operation": "days_between", "date": "2026-01-01"}, "other_date"),
        ("date_math", {"operation": "add_days", "date": "9999-12-31", "days": 1}, "9999"),
        ("date_math", {"operation": "add_days", "date": "9999-12-31", "months": 1}, "9999"),
        ("date_math", {"operation": "add_days", "date": "2000-01-01", "days": 10**12}, "9999"),
        ("convert_units", {"value": 1, "from_unit": "mile", "to_unit": "kg"}, "measures"),
        ("convert_units", {"value": 1, "from_unit": "kilometer", "to_unit": "mils"}, "'mile'"),
        ("text_tool", {"operation": "count_occurrences", "text": "x"}, "search"),
        ("current_time", {"zone": "Nowhere"}, "no time zone"),
        ("current_time", {"zone": "../etc/passwd"}, "no time zone"),
    ],
)
async def test_a_wrong_argument_is_explained(name, args, reason):
    outcome = await _call(name, **args)
    assert outcome.is_error
    assert reason in outcome.content


async def test_the_clock_tells_a_zone_by_a_citys_name():
    assert '"time":"23:30"' in (await _call("current_time", zone="Tokyo")).content


async def test_an_infinite_value_is_refused():
    outcome = await _call("convert_units", value=float("inf"), from_unit="m", to_unit="km")
    assert outcome.is_error
