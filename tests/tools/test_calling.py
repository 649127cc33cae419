"""Running one call: every outcome is a result that a model can read."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
from datetime import date
from typing import Any

import anyio
import pytest

from agent_brain.tools import (
    Action,
    FunctionTool,
    Outcome,
    ToolArgumentsError,
    ToolError,
    as_tool,
    call_tool,
    count_tokens,
    tool,
)

pytestmark = [pytest.mark.anyio, pytest.mark.also_on_trio]


async def call(function: Any, **args: Any) -> Outcome:
    made = as_tool(function)
    return await call_tool(Action(name=made.name, args=args), {made.name: made})


@pytest.mark.parametrize(
    ("errors", "told"),
    [
        ([ValueError("no such city")], "Tool 'look_up' raised ValueError: no such city"),
        (
            [ValueError("no such city"), ExceptionGroup("inner", [KeyError("Rome")])],
            "Tool 'look_up' raised ValueError: no such city; KeyError: 'Rome'",
        ),
        ([ToolError("Try Oslo")], "Tool 'look_up' raised Try Oslo"),
    ],
)
async def test_a_group_of_errors_is_told_by_its_members(errors: list[Exception], told: str):
    async def look_up() -> None:
        raise ExceptionGroup("unhandled errors in a TaskGroup", errors)

    outcome = await call(look_up)
    assert (outcome.content, outcome.is_error) == (told, True)


async def test_a_function_has_a_limit_of_results_unless_it_says_otherwise():
    def export() -> str:
        return "word " * 100_000

    shortened, whole = await call(export), await call(tool(max_result_tokens=None)(export))
    assert count_tokens(shortened.content) <= 10_000
    assert shortened.full == whole.content == export()
    assert (as_tool(export).max_result_tokens, whole.full) == (10_000, None)


async def test_a_result_is_text_as_it_is_and_anything_else_as_json():
    def text() -> str:
        return "é\n"

    def data() -> dict[str, Any]:
        return {"a": [1, None, "é"]}

    def nothing() -> None: ...

    contents = [(await call(function)).content for function in (text, data, nothing)]
    assert contents == ["é\n", '{"a":[1,null,"é"]}', "null"]


async def test_an_async_function_is_awaited():
    async def f(a: int) -> int:
        return a + 1

    assert await call(f, a=1) == Outcome("2")


async def test_async_partials_methods_and_objects_are_awaited():
    class Thing:
        async def method(self) -> str:
            return "method"

        async def __call__(self) -> str:
            return "object"

    async def plain(word: str) -> str:
        return word

    made = [
        as_tool(Thing().method),
        tool(name="object")(Thing()),
        tool(name="partial")(functools.partial(plain, "partial")),
    ]
    assert [(await call(t)).content for t in made] == ["method", "object", "partial"]


async def test_a_sync_function_that_returns_an_awaitable_is_awaited_in_the_loop():
    async def later() -> int:
        return threading.get_ident()

    def f() -> Any:
        return later()

    assert (await call(f)).content == str(threading.get_ident())


async def test_a_sync_tool_runs_in_another_thread():
    def f() -> int:
        return threading.get_ident()

    assert (await call(f)).content != str(threading.get_ident())


async def test_a_sync_tool_does_not_stall_the_loop():
    told_by_the_loop = threading.Event()

    def wait() -> bool:
        return told_by_the_loop.wait(60)

    async def tell() -> None:
        told_by_the_loop.set()

    async with anyio.create_task_group() as group:
        group.start_soon(tell)  # runs only if the loop continues while the tool waits
        outcome = await call(wait)

    assert outcome == Outcome("true")


async def test_the_execute_of_a_subclass_of_a_function_tool_is_what_a_call_runs() -> None:
    class Noted(FunctionTool):
        async def execute(self, **kwargs: Any) -> Any:
            return f"noted {kwargs} {await super().execute(**kwargs)}"

    def double(day: date, number: int) -> str:
        return f"{day.year} {2 * number}"

    outcome = await call(Noted(double), day="2026-01-02", number="4")
    assert outcome.content == f"noted { {'day': date(2026, 1, 2), 'number': 4} } 2026 8"


@pytest.mark.parametrize("lazily", [lambda numbers: numbers, lambda numbers: map(str, numbers)])
async def test_what_a_sync_tool_makes_lazily_is_made_in_its_thread(lazily: Any) -> None:
    threads = []

    def numbers() -> Any:
        def make() -> Any:
            for number in (1, 2):
                threads.append(threading.get_ident())
                yield number

        return lazily(make())

    assert (await call(numbers)).content in ("[1,2]", '["1","2"]')
    assert threading.get_ident() not in threads
    assert len(threads) == 2


async def test_context_variables_reach_the_worker_thread():
    user = contextvars.ContextVar[str]("user")
    user.set("Ann")

    assert (await call(lambda_tool(user.get))).content == "Ann"


def lambda_tool(function: Any) -> Any:
    def read() -> str:
        return function()

    return read


async def test_the_text_of_a_tool_error_goes_to_the_model():
    error = ToolError("no such city")

    def f() -> None:
        raise error

    assert await call(f) == Outcome("no such city", is_error=True, exception=error)


async def test_a_tool_error_without_text_says_at_least_which_tool():
    def f() -> None:
        raise ToolError

    assert "'f'" in (await call(f)).content


async def test_a_bug_is_reported_to_the_model_and_its_exception_kept():
    error = KeyError("city")

    async def f() -> None:
        raise error

    assert await call(f) == Outcome(
        "Tool 'f' raised KeyError: 'city'", is_error=True, exception=error
    )


@pytest.mark.parametrize(
    "error", [StopIteration, StopAsyncIteration, ExceptionGroup("x", [OSError()])]
)
async def test_no_exception_of_a_tool_hangs_or_escapes(error):
    def f() -> None:
        raise error

    with anyio.fail_after(60):
        assert (await call(f)).is_error


async def test_an_exception_that_cannot_be_printed_is_an_outcome():
    class Broken(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def f() -> None:
        raise Broken

    assert "Broken" in (await call(f)).content


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_cannot_exit_the_program(is_async):
    def f() -> None:
        raise SystemExit(3)

    async def g() -> None:
        raise SystemExit(3)

    outcome = await call(g if is_async else f)

    assert outcome.is_error
    assert "tried to exit" in outcome.content
    assert isinstance(outcome.exception, ToolError)


async def test_bad_arguments_are_reported_and_nothing_is_run():
    ran = []

    def f(a: int) -> None:
        ran.append(a)

    outcome = await call(f, a="x")

    assert outcome.is_error
    assert "a: Input should be a valid integer" in outcome.content
    assert isinstance(outcome.exception, ToolArgumentsError)
    assert not ran


async def test_unparsed_arguments_are_reported_and_nothing_is_run():
    ran = []

    @tool
    def f() -> None:
        ran.append(1)

    outcome = await call_tool(Action(name="f", unparsed='{"a": '), {"f": f})

    assert outcome.is_error
    assert 'You wrote: {"a": ' in outcome.content
    assert not ran


async def test_an_unknown_tool_is_reported_with_the_known_tools_and_a_suggestion():
    @tool
    def search() -> None: ...

    @tool
    def weather() -> None: ...

    outcome = await call_tool(Action(name="serch"), {"search": search, "weather": weather})

    assert outcome == Outcome(
        "There is no tool 'serch'. Did you mean 'search'? Available tools: search, weather.",
        is_error=True,
    )


async def test_an_unknown_tool_where_there_is_none_at_all():
    assert "no other tool" in (await call_tool(Action(name="x"), {})).content


async def test_a_call_that_takes_too_long_is_stopped_and_reported():
    stopped = []

    @tool(timeout=0.001)
    async def slow() -> None:
        try:
            await anyio.sleep_forever()
        finally:
            stopped.append(True)

    outcome = await call(slow)

    assert outcome.is_error
    assert outcome.content == "Tool 'slow' took longer than 0.001 s and was stopped"
    assert isinstance(outcome.exception, ToolError)
    assert stopped


async def test_a_sync_call_that_takes_too_long_is_left_behind():
    release = threading.Event()

    @tool(timeout=0.001)
    def slow() -> bool:
        return release.wait(60)

    outcome = await call(slow)
    release.set()

    assert "took longer" in outcome.content


async def test_a_timeout_error_of_the_tools_own_is_not_taken_for_ours():
    @tool(timeout=60)
    async def f() -> None:
        raise TimeoutError("the server's")

    assert (await call(f)).content == "Tool 'f' raised TimeoutError: the server's"


async def test_a_call_within_its_time_has_its_result():
    @tool(timeout=60)
    async def f() -> str:
        await anyio.lowlevel.checkpoint()
        return "done"

    assert await call(f) == Outcome("done")


async def test_cancellation_passes_through():
    started = anyio.Event()
    outcomes = []

    async def wait() -> None:
        started.set()
        await anyio.sleep_forever()

    async def run() -> None:
        outcomes.append(await call(wait))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await started.wait()
        group.cancel_scope.cancel()

    assert outcomes == []


async def test_a_tool_that_awaits_something_cancelled_does_not_cancel_the_run():
    async def f() -> None:
        raise asyncio.CancelledError

    outcome = await call(f)

    assert outcome.is_error
    assert outcome.content == "Tool 'f' failed: something that it awaited was cancelled"
    assert isinstance(outcome.exception, ToolError)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_task_that_is_cancelled_without_anyio_is_cancelled():
    started = asyncio.Event()

    async def f() -> None:
        started.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(call(f))
    await started.wait()
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("fails", [False, True])
async def test_long_results_and_errors_are_shortened_to_the_budget(fails):
    @tool(max_result_tokens=50)
    def f() -> str:
        if fails:
            raise ToolError("head" + "x" * 10_000 + "tail")
        return "head" + "x" * 10_000 + "tail"

    content = (await call(f)).content

    assert count_tokens(content) <= 50
    assert content.startswith("head")
    assert content.endswith("tail")
    assert "tokens left out" in content


async def test_lone_surrogates_in_a_result_are_replaced():
    def f() -> str:
        return "a\ud800b"

    assert (await call(f)).content == "a\ufffdb"


async def test_one_tool_serves_many_calls_at_once():
    everyone_is_in = anyio.Event()
    inside = []

    @tool
    async def meet(who: int) -> int:
        inside.append(who)
        if len(inside) == 20:
            everyone_is_in.set()
        await everyone_is_in.wait()
        return who

    results: dict[int, str] = {}

    async def one(who: int) -> None:
        results[who] = (await call(meet, who=who)).content

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for who in range(20):
                group.start_soon(one, who)

    assert results == {who: str(who) for who in range(20)}
