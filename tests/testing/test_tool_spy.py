"""Tools that remember their calls."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agent_brain import ToolError, tool
from agent_brain.testing import ToolSpy
from agent_brain.tools import Action, ToolArgumentsError, ToolDefinitionError, call_tool

pytestmark = pytest.mark.anyio


@tool(max_result_tokens=50, requires_approval=True)
async def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


async def call(spy: ToolSpy, **args: Any) -> Any:
    return await call_tool(Action(name=spy.name, args=args), {spy.name: spy})


async def test_a_watched_tool_works_as_before_and_is_described_as_before() -> None:
    spy = ToolSpy(double)
    assert (await call(spy, number="4")).content == "8"
    assert (spy.calls[0].args, spy.calls[0].result) == ({"number": 4}, 8)
    assert (spy.to_dict(), spy.max_result_tokens) == (double.to_dict(), 50)
    assert spy.requires_approval is True


async def test_a_plain_function_may_be_watched() -> None:
    def greet(name: str) -> str:
        """Greet."""
        return f"Hi {name}"

    spy = ToolSpy(greet)
    assert (await call(spy, name="Ann")).content == "Hi Ann"
    spy.assert_called_once_with(name="Ann")


async def test_a_tool_may_be_faked_under_its_own_schema() -> None:
    spy = ToolSpy(double, returns=-1)
    assert (await call(spy, number=4)).content == "-1"
    with pytest.raises(ToolArgumentsError):
        await spy.invoke({"number": "four"})
    spy.assert_called_once_with(number=4)


async def test_a_fake_of_a_name_takes_anything() -> None:
    spy = ToolSpy("anything", returns={"ok": True})
    assert (await call(spy, a=1, b=[2])).content == '{"ok":true}'
    assert (await call(ToolSpy("silent"))).content == "null"


async def test_a_fake_may_have_a_schema() -> None:
    schema = {"type": "object", "required": ["a"]}
    with pytest.raises(ToolArgumentsError, match="'a' is a required property"):
        await ToolSpy("f", input_schema=schema).invoke({})
    with pytest.raises(ToolDefinitionError):
        ToolSpy("f", input_schema={"type": "object", "required": 1})


async def test_a_fake_may_raise() -> None:
    spy = ToolSpy("f", raises=ToolError("out of order"))
    outcome = await call(spy)
    assert (outcome.content, outcome.is_error) == ("out of order", True)
    assert isinstance(spy.calls[0].exception, ToolError)


async def test_replies_come_one_after_the_other() -> None:
    spy = ToolSpy("f", replies=["one", ToolError("two"), None])
    outcomes = [await call(spy) for _ in range(4)]
    assert [o.content for o in outcomes[:3]] == ["one", "two", "null"]
    assert "called 4 times, but has 3 replies" in outcomes[3].content


async def test_a_function_may_decide() -> None:
    async def slowly(number: int) -> int:
        await anyio.lowlevel.checkpoint()
        return number + 1

    assert (await call(ToolSpy("f", does=slowly), number=1)).content == "2"
    assert (await call(ToolSpy("f", does=lambda number: number), number=1)).content == "1"


async def test_one_behaviour_at_a_time() -> None:
    with pytest.raises(ToolDefinitionError, match="only one of"):
        ToolSpy("f", returns=1, raises=ToolError())


async def test_a_cancelled_call_is_recorded() -> None:
    spy = ToolSpy("f", does=lambda: anyio.sleep_forever())
    with anyio.move_on_after(0.01):
        await spy.invoke({})
    assert isinstance(spy.calls[0].exception, anyio.get_cancelled_exc_class())


@pytest.mark.parametrize(
    "check, said",
    [
        (
            lambda s: s.assert_not_called(),
            'called 2 times, but not as expected (- expected, + found):\n  + f(x=1)\n  + f(x="b")',
        ),
        (
            lambda s: s.assert_called_with(x=3),
            "Tool 'f' was never called with these arguments (- expected, + found):\n  - f(x=3)\n  + f(x=1)",
        ),
        (lambda s: s.assert_called_once_with(x=1), '    f(x=1)\n  + f(x="b")'),
        (lambda s: s.assert_calls({"x": "b"}, {"x": 1}), "f(x=1)"),
        (lambda s: ToolSpy("g").assert_called(), "Tool 'g' was not called"),
        (lambda s: ToolSpy("g").assert_calls({"x": 1}), "- g(x=1)"),
    ],
)
async def test_assertions_explain_what_was_called(check: Any, said: str) -> None:
    spy = ToolSpy("f")
    await call(spy, x=1)
    await call(spy, x="b")
    with pytest.raises(AssertionError) as caught:
        check(spy)
    assert said in str(caught.value)


async def test_assertions_that_hold_say_nothing() -> None:
    spy = ToolSpy("f")
    spy.assert_not_called()
    await call(spy, x=1)
    spy.assert_called()
    spy.assert_called_with(x=1)
    spy.assert_called_once_with(x=1)
    spy.assert_calls({"x": 1})
