"""However a run ends, its events, its text and its result agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, Message, StopReason, StuckPolicy, react
from agent_brain.errors import (
    BrainDefinitionError,
    LLMConnectionError,
    MalformedOutputError,
    TransitionError,
)
from agent_brain.nets import create_net
from agent_brain.states import Event, Finish, RunFailed, RunFinished, RunStarted, TextDelta, Usage
from agent_brain.states.output_types import shape_of
from agent_brain.testing import ModelCall, ScriptedLLM
from agent_brain.tools import Action
from tests.brain.nets import Endless, Fail, Hang, Say, Steps, add, single
from tests.nets.models import FunctionLLM
from tests.nets.test_answers import FILLED
from tests.support.clock import fake_clock

pytestmark = pytest.mark.anyio


def call(a: int) -> Action:
    return Action(name="add", args={"a": a, "b": 1})


@dataclass
class Ending:
    """A way to end, and how to bring it about."""

    name: str
    make: Callable[[], Brain]
    reason: StopReason
    text: str
    answer: str = ""
    error: type[Exception] | None = None
    events: list[Event] = field(default_factory=list)


def scripted(*turns: Any, fallback: bool = False, **options: Any) -> Callable[[], Brain]:
    def make() -> Brain:
        return Brain(react(ScriptedLLM(turns), fallback=fallback), tools=[add], **options)

    return make


class Astray(Say):
    async def next_state(self, memory: Any) -> Any:
        return Steps.THREE


ENDINGS = [
    Ending("done", scripted(["It ", "is."]), StopReason.DONE, "It is.", "It is."),
    Ending(
        "done after a tool",
        scripted(["Let me see.", call(1)], ["2"]),
        StopReason.DONE,
        "Let me see.\n\n2",
        "2",
    ),
    Ending(
        "steps",
        lambda: Brain(single(Endless()), limits=Limits(max_steps=3)),
        StopReason.MAX_STEPS,
        "0 1 2 ",
        "2 ",
    ),
    Ending(
        "tokens",
        scripted([call(1), Usage(5, 5)], ["no"], limits=Limits(max_tokens=10)),
        StopReason.MAX_TOKENS,
        "",
    ),
    Ending(
        "cost",
        scripted([call(1), Usage(1, 1, cost=0.5)], ["no"], limits=Limits(max_cost=0.5)),
        StopReason.MAX_COST,
        "",
    ),
    Ending(
        "steps, with a best answer",
        scripted([call(1)], ["best so far"], limits=Limits(max_steps=2), fallback=True),
        StopReason.MAX_STEPS,
        "best so far",
        "best so far",
    ),
    Ending(
        "timeout",
        lambda: Brain(single(Hang([])), limits=Limits(timeout=0.02)),
        StopReason.TIMEOUT,
        "begun",
        "begun",
    ),
    Ending(
        "stuck",
        scripted(*[[Action(name="add", args={"a": 1, "b": 1})]] * 9),
        StopReason.STUCK,
        "2",
        "2",
    ),
    Ending("bug", lambda: Brain(single(Fail())), StopReason.FAILED, "begun", error=KeyError),
    Ending(
        "model error",
        scripted(["half ", LLMConnectionError("cut", provider="p", model="m")]),
        StopReason.FAILED,
        "half ",
        error=LLMConnectionError,
    ),
    Ending("malformed", scripted("", " "), StopReason.FAILED, "", error=MalformedOutputError),
    Ending(
        "astray",
        lambda: Brain(single(Astray("x"))),
        StopReason.FAILED,
        "x",
        error=TransitionError,
    ),
]


@pytest.fixture(params=ENDINGS, ids=lambda ending: ending.name)
def ending(request: pytest.FixtureRequest) -> Ending:
    return request.param


async def collect(brain: Brain) -> tuple[list[Event], Any, Exception | None]:
    events: list[Event] = []
    with fake_clock():
        async with brain.stream("go") as run:
            try:
                async for event in run:
                    events.append(event)
            except Exception as error:
                return events, None, error
    return events, run.result, None


async def test_events_text_and_result_agree(ending: Ending) -> None:
    events, streamed, error = await collect(ending.make())
    text, answer_error = "", None
    try:
        with fake_clock():
            async for chunk in ending.make().answer("go"):
                text += chunk
    except Exception as raised:
        answer_error = raised
    result, run_error = None, None
    try:
        with fake_clock():
            result = await ending.make().run("go")
    except Exception as raised:
        run_error = raised

    assert text == ending.text
    told = "".join(e.text for e in events if isinstance(e, TextDelta) and not e.thought)
    assert told == text.replace("\n\n", "")  # between the words of two model responses
    assert isinstance(events[0], RunStarted)
    for caught in (error, answer_error, run_error):
        assert type(caught) is (ending.error or type(None))
    if ending.error:
        assert isinstance(events[-1], RunFailed)
        assert events[-1].error is error
        return
    assert result is not None
    last = events[-1]
    assert isinstance(last, RunFinished)
    assert last.stop_reason == streamed.stop_reason == result.stop_reason == ending.reason
    assert last.answer == streamed.answer == result.answer == ending.answer
    assert last.usage == streamed.usage == result.usage
    assert streamed.steps == result.steps == last.step
    assert [(m.role, m.content) for m in streamed.messages] == [
        (m.role, m.content) for m in result.messages
    ]


async def test_after_every_ending_the_memory_serves_a_next_turn(ending: Ending) -> None:
    brain = ending.make()
    await collect(brain)
    messages = await brain.memory.context()
    assert messages[0].content == "go"
    asked = [c.id for m in messages for c in m.tool_calls]
    assert sorted(asked) == sorted(m.tool_call_id for m in messages if m.tool_call_id)

    again = Brain(react(ScriptedLLM(["fine"])), brain.memory)
    assert (await again.run("and now?")).answer == "fine"


async def test_a_failed_run_says_why_until_it_is_resumed(ending: Ending) -> None:
    brain = ending.make()
    *_, error = await collect(brain)

    known = brain.memory.control.failure
    assert known == (None if error is None else f"{type(error).__name__}: {error}")
    brain.memory.control.resume()
    assert brain.memory.control.failure is None


async def test_run_sync_ends_like_run() -> None:
    def in_a_thread() -> str:
        return Brain(react(ScriptedLLM(["yes"]))).run_sync("go").answer

    assert await anyio.to_thread.run_sync(in_a_thread) == "yes"


async def test_run_sync_inside_a_loop_says_what_to_call() -> None:
    with pytest.raises(RuntimeError, match=r"await brain\.run"):
        Brain(react(ScriptedLLM(["yes"]))).run_sync("go")


async def test_a_hint_is_shown_once_and_never_stored() -> None:
    llm = ScriptedLLM([[call(1)], [call(1)], ["done"]])
    brain = Brain(react(llm), tools=[add], stuck=StuckPolicy(threshold=2, prompt="HINT {reason}"))
    await brain.run("go")
    shown = [[m.content for m in c.messages if m.content.startswith("HINT")] for c in llm.calls]
    assert [len(hints) for hints in shown] == [0, 0, 1]
    assert "2 times in a row" in shown[2][0]
    assert not any("HINT" in m.content for m in await brain.memory.context())


async def test_alternating_steps_are_stuck_too() -> None:
    turns = [[call(1)], [call(2)]] * 5
    result = await Brain(react(ScriptedLLM(turns)), tools=[add]).run("go")
    assert result.stop_reason is StopReason.STUCK


async def test_the_same_text_repeated_is_stuck() -> None:
    net = single(Say("the same", then=Steps.ONE), allow=["no_end"])
    result = await Brain(net).run("go")
    assert (result.stop_reason, result.steps) == (StopReason.STUCK, 9)


async def test_a_tool_that_answers_differently_is_not_stuck() -> None:
    turns: list[Any] = [[Action(name="tick", args={})]] * 6 + ["done"]
    ticks = iter(range(6))

    def tick() -> int:
        """Tell how often it was called."""
        return next(ticks)

    result = await Brain(react(ScriptedLLM(turns)), tools=[tick]).run("go")
    assert result.stop_reason is StopReason.DONE


async def test_a_run_that_gets_a_hint_and_changes_continues() -> None:
    turns: list[Any] = [[call(1)], [call(1)], [call(2)], [call(2)], ["done"]]
    result = await Brain(react(ScriptedLLM(turns)), tools=[add]).run("go")
    assert result.stop_reason is StopReason.DONE


async def test_usage_and_steps_are_counted() -> None:
    turns: list[Any] = [[call(1), Usage(10, 2, cost=0.25)], ["2", Usage(20, 1, cost=0.5)]]
    result = await Brain(react(ScriptedLLM(turns)), tools=[add]).run("go")
    assert (result.usage.input_tokens, result.usage.output_tokens) == (30, 3)
    assert (result.usage.cost, result.usage.requests, result.steps) == (0.75, 2, 4)


async def test_ending_on_the_last_allowed_step_is_done() -> None:
    result = await Brain(react(ScriptedLLM(["yes"])), limits=Limits(max_steps=2)).run("go")
    assert result.stop_reason is StopReason.DONE


async def test_messages_of_a_result_are_those_of_its_turn() -> None:
    brain = Brain(react(ScriptedLLM(["one", "two"])))
    await brain.run("first")
    result = await brain.run("second")
    assert [m.content for m in result.messages] == ["second", "two"]
    assert [m.content for m in await brain.memory.context()] == ["first", "one", "second", "two"]


async def test_a_task_may_be_a_message() -> None:
    brain = Brain(react(ScriptedLLM(["hello Ann"])))
    result = await brain.run(Message.user("hi", name="Ann"))
    assert result.messages[0].name == "Ann"


@pytest.mark.parametrize("task", ["", "  \n"])
async def test_an_empty_task_is_refused(task: str) -> None:
    with pytest.raises(RuntimeError, match="task is empty"):
        await Brain(react(ScriptedLLM())).run(task)


@pytest.mark.parametrize(
    "options", [{"max_steps": 0}, {"max_tokens": -1}, {"max_cost": 0.0}, {"timeout": -0.5}]
)
def test_limits_below_zero_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        Limits(**options)


@pytest.mark.parametrize("name", ["max_steps", "max_tokens", "max_tool_calls", "max_requests"])
@pytest.mark.parametrize("value", [1.5, True, "3", float("nan"), float("inf")])
def test_limits_of_numbers_of_things_are_whole(name: str, value: Any) -> None:
    with pytest.raises(BrainDefinitionError, match=name):
        Limits(**{name: value})


@pytest.mark.parametrize("name", ["max_cost", "timeout"])
@pytest.mark.parametrize("value", [True, "3", float("nan")])
def test_other_limits_are_numbers(name: str, value: Any) -> None:
    with pytest.raises(BrainDefinitionError, match=name):
        Limits(**{name: value})


@pytest.mark.parametrize("net", ["react", "plan_execute", "tree_of_thoughts"])
@pytest.mark.parametrize("reason", ["stop", "unknown"])
async def test_why_the_response_with_the_output_ended_is_in_the_result(net: str, reason: Any):
    def reply(call: ModelCall) -> Any:
        if call.output_type is int_shape:
            return ['{"value": 4}', Finish(reason)]
        return FILLED.get(call.output_type, "It is 4.")

    int_shape = shape_of(int).model
    llm = FunctionLLM(reply, native=False)
    result = await Brain(create_net(net, llm, output_type=int)).run("2 + 2?")

    assert (result.output, result.finish_reason) == (4, reason)
