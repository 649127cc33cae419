"""Hooks around model calls, their attempts and tool calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from typing import Any

import pytest

from agent_brain import Brain, Message, MessagesMemory, react
from agent_brain.errors import LLMConnectionError, Refused, StateDefinitionError
from agent_brain.nets import SubnetState
from agent_brain.states import (
    Hook,
    ModelRequest,
    ModelResponse,
    TextDelta,
    ToolRequest,
    ToolResponse,
    Usage,
)
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, tool

pytestmark = pytest.mark.anyio

CALL = Action(name="add", args={"a": 2, "b": 3}, id="call_1")


@tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return f"{a + b}"


@tool
async def broken() -> str:
    """Fail."""
    raise KeyError("no")


class Log(Hook):
    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    async def before_model_call(self, request: ModelRequest) -> None:
        self.log.append(f"{self.name} asks in {request.state}")

    def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        self.log.append(f"{self.name} got {response.text or len(response.actions)}")

    def before_tool_call(self, request: ToolRequest) -> None:
        self.log.append(f"{self.name} calls {request.action.name}")

    async def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        self.log.append(f"{self.name} read {response.content}")


async def test_hooks_run_around_calls_in_order_and_in_reverse_afterwards() -> None:
    log: list[str] = []
    llm = ScriptedLLM([CALL, "5"])
    await Brain(react(llm), tools=[add], hooks=[Log("a", log), Log("b", log)]).run("2 + 3?")
    assert log == [
        *("a asks in REASONING", "b asks in REASONING", "b got 1", "a got 1"),
        *("a calls add", "b calls add", "b read 5", "a read 5"),
        *("a asks in REASONING", "b asks in REASONING", "b got 5", "a got 5"),
    ]


async def test_a_changed_request_is_what_the_model_and_the_tool_get() -> None:
    class Change(Hook):
        def before_model_call(self, request: ModelRequest) -> ModelRequest:
            return replace(request, messages=[*request.messages, Message.user("Hurry.")])

        def before_tool_call(self, request: ToolRequest) -> ToolRequest:
            return replace(
                request, action=request.action.model_copy(update={"args": {"a": 1, "b": 1}})
            )

    llm = ScriptedLLM([CALL, "2"])
    brain = Brain(react(llm), tools=[add], hooks=[Change()])
    result = await brain.run("2 + 3?")
    assert [call.messages[-1].content for call in llm.calls] == ["Hurry.", "Hurry."]
    assert [m.content for m in result.messages][1:] == ["", "2", "2"]


async def test_a_ready_response_replaces_the_call_and_costs_nothing() -> None:
    class Ready(Hook):
        def before_model_call(self, request: ModelRequest) -> ModelResponse:
            return ModelResponse("known")

    result = await Brain(react(ScriptedLLM()), hooks=[Ready()]).run("?")
    assert (result.answer, result.usage.requests, result.usage.cost) == ("known", 0, 0.0)


async def test_a_ready_result_replaces_the_tool() -> None:
    class Ready(Hook):
        def before_tool_call(self, request: ToolRequest) -> ToolResponse:
            return ToolResponse("cached")

    result = await Brain(react(ScriptedLLM([CALL, "ok"])), tools=[add], hooks=[Ready()]).run("?")
    assert result.messages[2].content == "cached"


async def test_a_refused_tool_call_is_an_error_that_the_model_reads() -> None:
    class Guard(Hook):
        def before_tool_call(self, request: ToolRequest) -> None:
            raise Refused("not on Sundays")

    log: list[str] = []
    hooks = [Log("outer", log), Guard()]
    result = await Brain(react(ScriptedLLM([CALL, "ok"])), tools=[add], hooks=hooks).run("?")
    assert (result.messages[2].content, result.messages[2].is_error) == ("not on Sundays", True)
    assert "outer read not on Sundays" in log


async def test_a_refused_model_call_fails_with_the_reason() -> None:
    class Guard(Hook):
        def before_model_call(self, request: ModelRequest) -> None:
            raise Refused("too dear")

    with pytest.raises(Refused, match="too dear"):
        await Brain(react(ScriptedLLM()), hooks=[Guard()]).run("?")


async def test_a_changed_response_is_recorded_and_what_streamed_stays() -> None:
    class Change(Hook):
        def after_model_call(self, request: ModelRequest, response: ModelResponse) -> Any:
            return replace(response, text=response.text.replace("secret", "***"))

    memory = MessagesMemory()
    llm = ScriptedLLM([["a ", "secret"]])
    chunks = [c async for c in Brain(react(llm), memory, hooks=[Change()]).answer("?")]
    assert chunks == ["a ", "secret"]
    assert (await memory.dump())[-1].content == "a ***"


async def test_buffered_text_streams_as_the_hook_leaves_it() -> None:
    class Change(Hook):
        buffer = True

        async def after_model_call(self, request: ModelRequest, response: ModelResponse) -> Any:
            return replace(response, text=response.text.replace("secret", "***"))

    llm = ScriptedLLM([["a ", "secret", Usage(3, 4, 0.5)]])
    brain = Brain(react(llm), hooks=[Change()])
    chunks = [c async for c in brain.answer("?")]
    assert chunks == ["a ***"]
    assert brain.last_result is not None
    assert brain.last_result.usage.cost == 0.5


async def test_an_error_hook_may_answer_in_place_of_the_error() -> None:
    class Fallback(Hook):
        def on_model_error(self, request: ModelRequest, error: Exception) -> ModelResponse:
            return ModelResponse(f"sorry: {type(error).__name__}")

        def on_tool_error(self, request: ToolRequest, error: Exception) -> ToolResponse:
            return ToolResponse("nothing")

    call = Action(name="broken", args={})
    llm = ScriptedLLM([call, LLMConnectionError("cut")])
    result = await Brain(react(llm), tools=[broken], hooks=[Fallback()]).run("?")
    assert (result.messages[2].content, result.messages[2].is_error) == ("nothing", False)
    assert result.answer == "sorry: LLMConnectionError"


class N(Enum):
    INNER = 1


async def test_hooks_see_the_calls_of_nested_nets_and_the_nets_own_come_last() -> None:
    log: list[str] = []
    inner = react(ScriptedLLM(["hi"]))
    outer = {N.INNER: SubnetState(inner)}
    await Brain(outer, hooks=[Log("brain", log)]).run("?")
    assert log == ["brain asks in REASONING", "brain got hi"]


async def test_hooks_reach_into_a_brain_as_a_tool_before_its_own() -> None:
    log: list[str] = []
    both = Log("both", log)
    inner = Brain(react(ScriptedLLM([CALL, "42"])), tools=[add], hooks=[Log("inner", log), both])
    ask = Action(name="expert", args={"task": "?"})
    outer = Brain(
        react(ScriptedLLM([ask, "done"])),
        tools=[inner.as_tool("expert", "Knows.")],
        hooks=[Log("outer", log), both],
    )
    await outer.run("?")
    assert [line for line in log if "REASONING" in line][2:5] == [
        "outer asks in REASONING",
        "both asks in REASONING",
        "inner asks in REASONING",
    ]
    assert [line for line in log if " calls " in line] == [
        "outer calls expert",
        "both calls expert",
        "outer calls add",
        "both calls add",
        "inner calls add",
    ]


async def test_a_guard_of_the_outer_brain_holds_for_the_tools_of_a_brain_inside() -> None:
    done: list[str] = []

    @tool
    def wipe() -> str:
        """Delete all."""
        done.append("wiped")
        return "gone"

    class Guard(Hook):
        def before_tool_call(self, request: ToolRequest) -> None:
            if request.action.name == "wipe":
                raise Refused("never")

    inner_llm = ScriptedLLM([Action(name="wipe"), "I could not."])
    inner = Brain(react(inner_llm), tools=[wipe])
    middle = Brain(
        react(ScriptedLLM([Action(name="inner", args={"task": "?"}), "No."])),
        tools=[inner.as_tool("inner", "Does it.")],
    )
    llm = ScriptedLLM([Action(name="middle", args={"task": "?"}), "Refused."])
    await Brain(react(llm), tools=[middle.as_tool("middle", "Asks.")], hooks=[Guard()]).run("?")
    assert done == []
    assert inner_llm.calls[-1].messages[-1].content == "never"


async def test_what_a_hook_returns_by_mistake_is_an_error_that_says_so() -> None:
    class Wrong(Hook):
        def before_model_call(self, request: ModelRequest) -> str:
            return "oops"

    with pytest.raises(TypeError, match=r"Wrong\.before_model_call returned 'oops'"):
        await Brain(react(ScriptedLLM(["hi"])), hooks=[Wrong()]).run("?")


def test_a_class_is_not_a_hook() -> None:
    with pytest.raises(StateDefinitionError, match="not its class"):
        Brain(react(ScriptedLLM()), hooks=[Hook])  # type: ignore[list-item]


async def test_text_deltas_have_the_id_of_their_response_with_hooks_too() -> None:
    events: list[Any] = []
    async with Brain(react(ScriptedLLM([["a", "b"]])), hooks=[Log("x", [])]).stream("?") as run:
        async for event in run:
            events.append(event)
    deltas: Sequence[TextDelta] = [e for e in events if isinstance(e, TextDelta)]
    assert len({delta.response_id for delta in deltas}) == 1


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("before_tool_calls", "Did you mean 'before_tool_call'?"),
        ("befor_tool_call", "Did you mean 'before_tool_call'?"),
        ("after_model_response", "Their methods are before_model_call, "),
        ("on_error", "must not begin with before_, after_ or on_"),
    ],
)
def test_a_misspelt_method_is_refused(name: str, hint: str) -> None:
    with pytest.raises(StateDefinitionError, match=f"Guard.{name} would never be called") as caught:
        type("Guard", (Hook,), {name: lambda self, request: None})
    assert hint in str(caught.value)


def test_a_misspelt_method_of_a_mixin_is_refused() -> None:
    class Mixin:
        def on_tool_errors(self, request: ToolRequest, error: Exception) -> None: ...

    with pytest.raises(StateDefinitionError, match="on_tool_errors would never be called"):
        type("Guard", (Mixin, Hook), {})


def test_a_hook_may_have_methods_and_data_of_its_own() -> None:
    class Guard(Hook):
        on_sundays = False

        def model(self) -> None: ...

        def _before(self) -> None: ...

    assert Guard().on_sundays is False


@pytest.mark.parametrize("method", ["after_tool_call", "on_tool_error"])
async def test_a_hook_withholds_the_error_of_a_tool(method: str) -> None:
    @tool
    async def look_up(name: str) -> str:
        """Look up a name."""
        raise ValueError(f"no row {name!r} in the secret table")

    def withhold(hook: Hook, request: ToolRequest, given: object) -> None:
        raise Refused("not for you")

    guard = type("Guard", (Hook,), {method: withhold})()
    llm = ScriptedLLM([Action(name="look_up", args={"name": "x"}), "Then not."])
    result = await Brain(react(llm), tools=[look_up], hooks=[guard]).run("Who is x?")
    read = llm.calls[1].messages[-1]
    assert (read.content, read.is_error) == ("not for you", True)
    assert result.answer == "Then not."
