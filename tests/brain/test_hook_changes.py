"""What hooks change in calls, and what they may not."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from dataclasses import replace
from enum import Enum
from typing import Any, Literal

import anyio
import pytest

from agent_brain import LLM, Brain, Limits, Memory, Net, State, react, tool
from agent_brain.errors import LLMRefusalError, LLMServerError, Refused, StateDefinitionError
from agent_brain.states import (
    Finish,
    Hook,
    ModelRequest,
    ModelResponse,
    ResponseStarted,
    TextDelta,
    ToolRequest,
    ToolResponse,
    Usage,
)
from agent_brain.testing import ScriptedLLM, run_net
from agent_brain.tools import Action
from tests.nets.models import FunctionLLM

pytestmark = pytest.mark.anyio


class Change(Hook):
    """Changes the name or the arguments of every tool call."""

    def __init__(self, name: str | None = None, **args: Any) -> None:
        self.name, self.args = name, args

    def before_tool_call(self, request: ToolRequest) -> ToolRequest:
        action = request.action
        args = {**action.args, **self.args}
        return replace(request, action=Action(name=self.name or action.name, args=args))


def payment(paid: list[int], *, above: int = 100) -> Any:
    @tool(requires_approval=lambda args: args["amount"] > above)
    def pay(amount: int) -> str:
        """Pay."""
        paid.append(amount)
        return f"paid {amount}"

    return pay


def call(amount: int, name: str = "pay") -> Action:
    return Action(name=name, args={"amount": amount}, id="call_1")


async def test_a_changed_call_keeps_the_id_of_the_call_of_the_model() -> None:
    paid: list[int] = []
    llm = ScriptedLLM([[call(1)], "Done."])
    brain = Brain(react(llm), tools=[payment(paid)], hooks=[Change(amount=9)])
    result = await brain.run("Pay")
    assert [(m.content, m.tool_call_id) for m in result.messages if m.tool_call_id] == [
        ("paid 9", "call_1")
    ]


async def test_a_call_that_a_hook_changes_needs_approval_again() -> None:
    paid: list[int] = []
    llm = ScriptedLLM([[call(50)], "Done."])
    brain = Brain(react(llm), tools=[payment(paid)], hooks=[Change(amount=5000)])
    result = await brain.run("Pay")
    assert paid == []
    assert result.messages[2].is_error
    assert "changed arguments needs a person's approval" in result.messages[2].content


async def test_the_approval_of_a_call_does_not_count_for_another_one() -> None:
    paid: list[int] = []
    llm = ScriptedLLM([[call(200)], "Done."])
    brain = Brain(react(llm), tools=[payment(paid)], hooks=[Change(amount=5000)])
    assert (await brain.run("Pay")).stop_reason == "approval"
    await brain.resume(approve=["call_1"])
    assert paid == []
    (refused,) = [m.content for m in await brain.memory.dump() if m.tool_call_id]
    assert "changed arguments needs a person's approval" in refused


async def test_an_approved_call_and_a_harmless_change_run() -> None:
    paid: list[int] = []
    brain = Brain(
        react(ScriptedLLM([[call(200)], "Done."])),
        tools=[payment(paid)],
        hooks=[Change(amount=200)],
    )
    assert (await brain.run("Pay")).stop_reason == "approval"
    await brain.resume(approve=True)
    less = Brain(
        react(ScriptedLLM([[call(50)], "Done."])), tools=[payment(paid)], hooks=[Change(amount=5)]
    )
    await less.run("Pay")
    assert paid == [200, 5]


async def test_another_name_is_checked_like_other_arguments() -> None:
    paid: list[int] = []

    @tool
    def look(amount: int) -> str:
        """Look."""
        return "seen"

    brain = Brain(
        react(ScriptedLLM([[call(200, "look")], "Done."])),
        tools=[payment(paid), look],
        hooks=[Change("pay")],
    )
    result = await brain.run("Look")
    assert paid == []
    assert result.messages[2].is_error


async def test_a_call_of_a_brain_cannot_become_a_call_of_a_tool_or_a_wrong_call() -> None:
    expert = Brain(react(ScriptedLLM(["42"]))).as_tool("expert", "Knows.")
    paid: list[int] = []
    for change, why in (
        (Change("pay", amount=1), "may not change a call of 'expert' to 'pay'"),
        (Change(task=[1]), "A hook changed this call"),
    ):
        ask = Action(name="expert", args={"task": "?"})
        brain = Brain(
            react(ScriptedLLM([[ask], "Done."])), tools=[expert, payment(paid)], hooks=[change]
        )
        assert why in (await brain.run("Ask")).messages[2].content
    assert paid == []


@pytest.mark.parametrize("buffered", [False, True])
async def test_a_changed_usage_and_finish_reason_count(buffered: bool) -> None:
    class Price(Hook):
        buffer = buffered

        def after_model_call(self, request: ModelRequest, response: ModelResponse) -> ModelResponse:
            return replace(response, finish_reason="length", usage=Usage(10, 10, cost=9.0))

    llm = ScriptedLLM([["Hi.", Finish("stop"), Usage(1, 1, cost=0.1)]])
    result = await Brain(react(llm), hooks=[Price()], limits=Limits(max_cost=100)).run("Hello")
    assert (result.answer, result.finish_reason) == ("Hi.", "length")
    assert (result.usage.cost, result.usage.requests) == (9.0, 1)


async def test_the_answer_to_an_error_reaches_the_reader_after_partial_text() -> None:
    class Apologize(Hook):
        def on_model_error(self, request: ModelRequest, error: Exception) -> ModelResponse:
            return ModelResponse("Sorry.")

    llm = ScriptedLLM([["The answer is", LLMServerError("broken", model="m")]])
    brain = Brain(react(llm), hooks=[Apologize()])
    async with brain.stream("?") as run:
        events = [event async for event in run]
    text = "".join(e.text for e in events if isinstance(e, TextDelta))
    assert run.result is not None
    assert text == run.result.answer == "The answer is\nSorry."
    assert run.result.messages[-1].content == "Sorry."
    assert run.result.usage.requests == 1


async def test_text_in_place_of_a_tool_call_is_the_answer() -> None:
    class Answer(Hook):
        def after_model_call(self, request: ModelRequest, response: ModelResponse) -> ModelResponse:
            return ModelResponse("No payments today.")

    paid: list[int] = []
    brain = Brain(react(ScriptedLLM([[call(1)]])), tools=[payment(paid)], hooks=[Answer()])
    result = await brain.run("Pay")
    assert (result.answer, paid) == ("No payments today.", [])


class Log(Hook):
    def __init__(self, name: str, log: list[str]) -> None:
        self.name, self.log = name, log

    def after_model_call(self, request: ModelRequest, response: ModelResponse) -> None:
        self.log.append(f"{self.name} got {response.text}")

    def on_model_error(self, request: ModelRequest, error: Exception) -> None:
        self.log.append(f"{self.name} failed")

    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        self.log.append(f"{self.name} read {response.content[:20]}")

    def on_tool_error(self, request: ToolRequest, error: Exception) -> None:
        self.log.append(f"{self.name} failed")


class Fallback(Hook):
    def on_model_error(self, request: ModelRequest, error: Exception) -> ModelResponse:
        return ModelResponse("Sorry.")

    def on_tool_error(self, request: ToolRequest, error: Exception) -> ToolResponse:
        return ToolResponse("nothing")


async def test_only_the_hooks_before_the_one_that_answers_an_error_see_its_answer() -> None:
    @tool
    def broken() -> str:
        """Fail."""
        raise OSError("disk")

    log: list[str] = []
    hooks = [Log("outer", log), Fallback(), Log("inner", log)]
    llm = ScriptedLLM([[Action(name="broken")], LLMServerError("broken", model="m")])
    await Brain(react(llm), tools=[broken], hooks=hooks).run("?")
    assert log[2:] == [
        "inner failed",
        "inner read Tool 'broken' raised",
        "outer read nothing",
        "inner failed",
        "outer got Sorry.",
    ]


async def test_the_error_of_a_hook_ends_the_run_and_no_other_hook_answers_it() -> None:
    class Buggy(Hook):
        def before_model_call(self, request: ModelRequest) -> None:
            raise KeyError("a bug")

    with pytest.raises(KeyError, match="a bug") as caught:
        await Brain(react(ScriptedLLM(["x"])), hooks=[Fallback(), Buggy()]).run("?")
    assert "Raised by Buggy.before_model_call" in caught.value.__notes__


async def test_a_refused_result_is_an_error_that_the_model_reads() -> None:
    class Guard(Hook):
        def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
            raise Refused("not for you")

    llm = ScriptedLLM([[call(1)], "Done."])
    result = await Brain(react(llm), tools=[payment([])], hooks=[Guard()]).run("Pay")
    assert (result.messages[2].content, result.messages[2].is_error) == ("not for you", True)


def returns(method: str, given: Any) -> Hook:
    return type("Wrong", (Hook,), {method: lambda *_: given})()


@pytest.mark.parametrize(
    ("method", "given", "why"),
    [
        ("before_model_call", "x", "return None, a ModelRequest or a ModelResponse"),
        ("before_tool_call", "x", "return None, a ToolRequest or a ToolResponse"),
        ("after_model_call", "x", "return None or a ModelResponse"),
        ("after_model_call", ModelResponse(5), "text=5: expected str"),  # type: ignore[arg-type]
        ("before_model_call", ModelResponse(actions=("t",)), "Action objects"),  # type: ignore[arg-type]
        ("after_model_call", ModelResponse(usage=1), "usage=1: expected Usage or None"),  # type: ignore[arg-type]
        ("after_model_call", ModelResponse(finish_reason="end"), "finish_reason='end'"),  # type: ignore[arg-type]
        ("after_tool_call", ToolResponse(None), "content=None: expected str"),  # type: ignore[arg-type]
    ],
)
async def test_what_a_hook_returns_is_checked(method: str, given: Any, why: str) -> None:
    llm = ScriptedLLM([[call(1)], "Done."])
    brain = Brain(react(llm), tools=[payment([])], hooks=[returns(method, given)])
    with pytest.raises(TypeError, match=rf"Wrong\.{method} returned .*{why}"):
        await brain.run("Pay")


def test_one_hook_is_not_a_list_of_hooks() -> None:
    for given in (Hook(), None):
        with pytest.raises(StateDefinitionError, match="pass a list of hooks"):
            Brain(react(ScriptedLLM()), hooks=given)  # type: ignore[call-overload]


async def test_calls_that_never_began_are_not_said_to_be_interrupted() -> None:
    class Buggy(Hook):
        def before_tool_call(self, request: ToolRequest) -> None:
            raise KeyError("a bug")

    paid: list[int] = []
    calls = [Action(name="pay", args={"amount": n}, id=f"call_{n}") for n in (1, 2)]
    brain = Brain(react(ScriptedLLM([calls])), tools=[payment(paid)], hooks=[Buggy()])
    with pytest.raises(KeyError):
        await brain.run("Pay")
    results = [m.content for m in await brain.memory.dump() if m.tool_call_id]
    assert results == ["The call was not run: the run was cut short"] * 2


class FailsAfterwards(Hook):
    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        raise KeyError("a bug")


class Hide(Hook):
    def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> ToolResponse:
        return replace(response, content="(hidden)")


@pytest.mark.parametrize(
    ("hooks", "recorded"),
    [([FailsAfterwards()], "paid 1"), ([FailsAfterwards(), Hide()], "(hidden)")],
    ids=["as the tool returned it", "as the hooks before it left it"],
)
async def test_the_result_of_a_call_is_recorded_when_a_hook_fails_afterwards(
    hooks: list[Hook], recorded: str
) -> None:
    brain = Brain(react(ScriptedLLM([[call(1)], "Done."])), tools=[payment([])], hooks=hooks)
    with pytest.raises(KeyError, match="a bug"):
        await brain.run("Pay")
    [result] = [m for m in await brain.memory.dump() if m.tool_call_id]
    assert (result.content, result.is_error) == (recorded, False)
    assert (await brain.resume()).answer == "Done."


async def test_the_answer_of_a_brain_is_recorded_when_a_hook_fails_afterwards() -> None:
    inner = Brain(react(ScriptedLLM(["42"])))
    ask = Action(name="expert", args={"task": "?"})
    brain = Brain(
        react(ScriptedLLM([ask])),
        tools=[inner.as_tool("expert", "Knows.")],
        hooks=[FailsAfterwards()],
    )
    with pytest.raises(KeyError, match="a bug"):
        await brain.run("?")
    assert [m.content for m in await brain.memory.dump() if m.tool_call_id] == ["42"]


async def test_the_result_of_a_call_is_recorded_when_the_run_is_cancelled_in_a_hook() -> None:
    reached = anyio.Event()

    class Waits(Hook):
        async def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
            reached.set()
            await anyio.sleep_forever()

    brain = Brain(react(ScriptedLLM([[call(1)]])), tools=[payment([])], hooks=[Waits()])
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "Pay")
        await reached.wait()
        group.cancel_scope.cancel()
    assert [m.content for m in await brain.memory.dump() if m.tool_call_id] == ["paid 1"]


class Instead(Hook):
    """Has another model called."""

    def __init__(self, llm: LLM) -> None:
        self.llm = llm

    def before_model_call(self, request: ModelRequest) -> ModelRequest:
        return replace(request, llm=self.llm)


class Named(FunctionLLM):
    def __init__(self, model: str, reply: Any) -> None:
        super().__init__(reply)
        self.model = model


@pytest.mark.parametrize("buffer", [False, True])
async def test_events_and_errors_name_the_model_that_a_hook_has_called(buffer: bool) -> None:
    hook = Instead(Named("other", lambda call: ["Hello", Finish("stop")]))
    hook.buffer = buffer
    async with Brain(react(ScriptedLLM()), hooks=[hook]).stream("?") as run:
        events = [event async for event in run]
    kinds = [event.kind for event in events]
    [started] = [event for event in events if isinstance(event, ResponseStarted)]
    assert (started.model, run.result.answer) == ("other", "Hello")
    assert kinds.index("response_started") < kinds.index("text_delta")

    refusing = Instead(Named("other", lambda call: [Finish("refusal")]))
    with pytest.raises(LLMRefusalError) as refused:
        await Brain(react(ScriptedLLM()), hooks=[refusing]).run("?")
    assert refused.value.model == "other"


async def test_a_call_that_a_hook_refuses_names_the_model_that_was_asked_for() -> None:
    class Guard(Hook):
        def before_model_call(self, request: ModelRequest) -> None:
            raise Refused("no")

    llm = ScriptedLLM()
    run = await run_net(Net({Only.A: Ask(llm)}, hooks=[Guard()]), "?", check=False)
    calls = [e for e in run.events if e.kind in ("response_started", "usage_reported")]
    assert [event.kind for event in calls] == ["response_started", "usage_reported"]
    assert calls[0].model == llm.model  # type: ignore[attr-defined]
    assert isinstance(run.error, Refused)


@pytest.mark.parametrize("changes", [True, False])
async def test_a_hook_sees_the_response_as_it_has_left_it(changes: bool) -> None:
    class Loud(Log):
        async def stream_model_call(
            self, request: ModelRequest, pieces: AsyncIterator[Any]
        ) -> AsyncIterator[Any]:
            async with aclosing(pieces):  # type: ignore[type-var]
                async for piece in pieces:
                    yield piece.upper() if isinstance(piece, str) else piece

    class Change(Log):
        def after_model_call(self, request: ModelRequest, response: ModelResponse) -> Any:
            super().after_model_call(request, response)
            return replace(response, text=f"{response.text}!") if changes else None

    log: list[str] = []
    hooks = [Log("outer", log), Loud("loud", log), Change("inner", log)]
    result = await Brain(react(ScriptedLLM([["he", "llo"]])), hooks=hooks).run("?")
    said = "hello!" if changes else "HELLO"
    assert log == ["inner got hello", f"loud got {said}", f"outer got {said}"]
    assert result.messages[-1].content == said


class Only(Enum):
    A = 1


class Ask(State):
    def __init__(self, llm: ScriptedLLM, **arguments: Any) -> None:
        self.llm, self.arguments = llm, arguments

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield self.llm.call(**{"messages": await memory.context(), **self.arguments})

    async def next_state(self, memory: Memory) -> Literal[None]:
        return None


@pytest.mark.parametrize("wrong", [{"messages": "hello"}, {"messages": ["x"]}, {"tools": [print]}])
async def test_a_model_is_called_with_messages_and_tools(wrong: dict[str, Any]) -> None:
    with pytest.raises(StateDefinitionError, match=rf"llm.call\({next(iter(wrong))}="):
        await Brain(Net({Only.A: Ask(ScriptedLLM(["x"]), **wrong)})).run("?")
