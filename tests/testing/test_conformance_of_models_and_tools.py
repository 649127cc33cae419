"""The conformance suites accept correct implementations, and name the fault of others."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest

from agent_brain import LLM, tool
from agent_brain.states import Finish, LLMAuthenticationError, Usage
from agent_brain.testing import Check, ScriptedLLM, ToolSpy, llm_conformance, tool_conformance
from agent_brain.tools import Action, BaseTool


def scripted() -> ScriptedLLM:
    return ScriptedLLM([["Hel", "lo", Usage(1, 2)]] * 3)


def failing() -> ScriptedLLM:
    return ScriptedLLM([LLMAuthenticationError("no key")])


@pytest.mark.anyio
@pytest.mark.parametrize("check", llm_conformance(scripted, failing=failing), ids=str)
async def test_a_scripted_model_conforms(check: Check) -> None:
    await check()


@tool
async def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@pytest.mark.anyio
@pytest.mark.parametrize("check", tool_conformance(double, {"number": 2}), ids=str)
async def test_a_function_tool_conforms(check: Check) -> None:
    await check()


class Wrong(LLM):
    """A model with a fault to choose."""

    model = "wrong"

    def __init__(self, fault: str) -> None:
        self.fault = fault
        self.closed = False
        self.busy = False
        if fault == "no name":
            self.model = ""

    async def stream(  # noqa: C901 - a fault each
        self, messages: Any, *, tools: Any = (), output_type: Any = None
    ) -> AsyncIterator[Any]:
        if self.closed and self.fault == "closes for good":
            return
        if self.fault == "changes the messages":
            messages.clear()
        if self.fault == "fails strangely":
            raise KeyError("key")
        if output_type is not None and self.fault == "no shapes":
            return
        if len(messages) > 2 and self.fault == "no results":
            raise ValueError("unknown role")
        if self.busy and self.fault == "one at a time":
            raise ValueError("busy")
        self.busy = True
        if self.fault == "strange pieces":
            yield 42
        if self.fault == "invents tools":
            yield Action(name="rm", args={})
        if self.fault == "same ids":
            yield Action(name="look_up", id="1")
            yield Action(name="look_up", id="1")
        if self.fault == "open scope":
            with anyio.move_on_after(60):
                yield "hello"
        try:
            yield "" if self.fault == "says nothing" else "hello"
            await anyio.lowlevel.checkpoint()
        except BaseException:
            if self.fault == "breaks when left":
                self.closed, self.fault = True, "closes for good"
            if self.fault == "disguises cancellation":
                raise ValueError("the call failed") from None
            if self.fault == "swallows cancellation":
                return
            raise
        self.busy = False
        if self.fault == "ends before the end":
            yield Finish()
            yield "and so on"
        if self.fault == "keeps objects":
            yield Finish(provider_data={"thoughts": object()})  # type: ignore[dict-item]
        if self.fault == "two usages":
            yield Usage()
        yield Usage()

    async def aclose(self) -> None:
        self.closed = True


class Coroutine(Wrong):
    async def stream(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]
        return "text"


FAULTS = {
    "no name": "it_is_an_llm_with_a_name",
    "says nothing": "it_answers_with_text",
    "strange pieces": "it_answers_with_text",
    "ends before the end": "finish_comes_once_at_the_end",
    "keeps objects": "finish_comes_once_at_the_end",
    "two usages": "usage_comes_last_and_once_per_request",
    "invents tools": "only_offered_tools_are_called",
    "same ids": "calls_have_unique_ids",
    "no results": "tool_results_are_accepted",
    "no shapes": "structured_output_can_be_requested",
    "changes the messages": "messages_and_tools_are_not_modified",
    "one at a time": "concurrent_calls_both_answer",
    "breaks when left": "a_stream_can_be_closed_early",
    "disguises cancellation": "cancellation_passes_through",
    "swallows cancellation": "cancellation_passes_through",
    "open scope": "nothing_stays_open_across_a_yield",
    "closes for good": "it_can_be_used_after_closing",
    "fails strangely": "a_failure_is_an_llm_error",
}


async def failures(checks: list[Check]) -> list[str]:
    failed = []
    for check in checks:
        try:
            await check()
        except Exception:
            failed.append(check.name)
    return failed


@pytest.mark.anyio
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_model_with_a_fault_fails_the_check_of_it(fault: str) -> None:
    checks = llm_conformance(lambda: Wrong(fault), failing=lambda: Wrong(fault))
    assert FAULTS[fault] in await failures(checks)


@pytest.mark.anyio
async def test_the_model_with_faults_conforms_without_one() -> None:
    assert await failures(llm_conformance(lambda: Wrong(""))) == []


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "sentence"),
    [
        ("fails strangely", "KeyError: .*\nThe rule is .*Raise a subclass of LLMError"),
        ("one at a time", "ValueError: busy\nThe rule is .*one object serves many calls at once"),
        ("open scope", "The rule is .*Close timeouts and task groups before each yield"),
        ("swallows cancellation", "ended like a complete one, without Usage"),
    ],
)
async def test_a_failure_is_a_sentence(fault: str, sentence: str) -> None:
    checks = llm_conformance(lambda: Wrong(fault), failing=lambda: Wrong(fault))
    [check] = [c for c in checks if c.name == FAULTS[fault]]
    with pytest.raises(AssertionError, match=sentence):
        await check()


@pytest.mark.anyio
async def test_a_stream_that_is_a_coroutine_is_explained() -> None:
    [check] = [c for c in llm_conformance(lambda: Coroutine("")) if "generator" in c.name]
    with pytest.raises(AssertionError, match="Write stream\\(\\) as an async generator"):
        await check()


class Odd(BaseTool):
    """A tool with a fault to choose."""

    def __init__(self, fault: str) -> None:
        schema: dict[str, Any] = {"type": "object", "properties": {"x": {}}, "required": ["x"]}
        if fault == "undescribed":
            schema = {"type": "object", "required": ["x"]}
        super().__init__("odd", "" if fault == "wordless" else "Odd.", schema)
        self.fault = fault
        self.busy: list[int] = []

    def validate(self, args: Any) -> Any:
        if self.fault == "changes arguments":
            args["y"] = 1
        return dict(args) if self.fault == "takes anything" else super().validate(args)

    async def execute(self, **kwargs: Any) -> Any:
        if self.fault == "raises":
            raise OSError("broken")
        if self.fault == "one at a time":
            if self.busy:
                raise OSError("busy")
            self.busy.append(1)
            await anyio.lowlevel.checkpoint()
            self.busy.clear()
        if self.fault == "keeps state":
            self.last = kwargs
        return "ok"

    def to_dict(self) -> Any:
        return {"other": {}} if self.fault == "says it wrong" else super().to_dict()


TOOL_FAULTS = {
    "wordless": "it_has_a_description",
    "undescribed": "its_schema_lists_its_arguments",
    "says it wrong": "its_description_is_json",
    "changes arguments": "validation_does_not_modify_arguments",
    "takes anything": "bad_arguments_are_refused_with_problems",
    "raises": "a_call_returns_text",
    "one at a time": "concurrent_calls_both_finish",
    "keeps state": "a_call_does_not_modify_the_tool",
}


@pytest.mark.anyio
@pytest.mark.parametrize("fault", TOOL_FAULTS)
async def test_a_tool_with_a_fault_fails_the_check_of_it(fault: str) -> None:
    assert TOOL_FAULTS[fault] in await failures(tool_conformance(Odd(fault), {"x": 1}))


@pytest.mark.anyio
async def test_the_tool_with_faults_conforms_without_one() -> None:
    assert await failures(tool_conformance(Odd(""), {"x": 1}, bad_args={})) == []
    assert await failures(tool_conformance(ToolSpy("f", returns=1), {})) == []
