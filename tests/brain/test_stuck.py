"""Runs that repeat themselves, and healthy runs that only seem to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from enum import Enum
from typing import Any

import anyio
import pytest

from agent_brain import LLM, Brain, Net, State, StopReason, StuckPolicy, react, tool
from agent_brain.errors import BrainDefinitionError
from agent_brain.memories import Memory
from agent_brain.memories.embedders import Embedder
from agent_brain.nets import SubnetState
from agent_brain.states import InputRequested, StateEntered, StuckDetected, Thought
from agent_brain.testing import ScriptedLLM, run_net
from agent_brain.tools import Action, BaseTool
from tests.brain.nets import add, single

pytestmark = pytest.mark.anyio


def poll(name: str = "status", **args: Any) -> Action:
    return Action(name=name, args=args)


@tool
def status(job: str = "") -> str:
    """Tell the status of the job."""
    return "pending"


@tool(repeatable=True)
def wait(job: str = "") -> str:
    """Wait for the job."""
    return "pending"


@tool
def write_row(number: int, text: str = "") -> str:
    """Write a row."""
    return "ok"


TOOLS = [status, wait, write_row, add]


async def run(*turns: Any, **options: Any) -> Any:
    return await Brain(react(ScriptedLLM(turns)), tools=TOOLS, **options).run("go")


@pytest.mark.parametrize("times", [3, 4])
async def test_a_few_equal_results_are_a_healthy_run(times: int) -> None:
    events = (await run_net(react(ScriptedLLM([*[poll()] * times, "done"])), "go", tools=TOOLS)).of(
        StuckDetected
    )
    assert events == []


async def test_polling_ends_when_the_job_does() -> None:
    result = await run(*[poll()] * 8, "done")
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "done")


async def test_a_repeatable_tool_may_be_called_for_ever() -> None:
    result = await run(*[poll("wait")] * 40, "done")
    assert (result.stop_reason, result.answer) == (StopReason.DONE, "done")


async def test_calls_of_a_repeatable_tool_do_not_hide_a_circle() -> None:
    result = await run(*[[poll()], [poll("wait")]] * 12)
    assert result.stop_reason is StopReason.STUCK


async def test_pages_and_rows_are_progress() -> None:
    turns = [[poll("write_row", number=number)] for number in range(20)]
    assert (await run(*turns, "done")).stop_reason is StopReason.DONE


async def test_doing_the_same_again_is_noticed_and_then_stopped() -> None:
    done = await run_net(react(ScriptedLLM([poll()] * 20)), "go", tools=TOOLS)
    assert [event.verdict for event in done.of(StuckDetected)] == ["hint", "stop"]
    assert done.result is not None
    assert done.result.stop_reason is StopReason.STUCK


async def test_after_progress_there_is_another_hint() -> None:
    turns = [*[poll()] * 5, poll(job="other"), *[poll()] * 5, "done"]
    done = await run_net(react(ScriptedLLM(turns)), "go", tools=TOOLS)
    assert [event.verdict for event in done.of(StuckDetected)] == ["hint", "hint"]
    assert done.result is not None
    assert done.result.answer == "done"


@pytest.mark.parametrize("length", [2, 3, 4, 5, 6])
async def test_longer_cycles_are_noticed(length: int) -> None:
    cycle = [[poll(job=f"job {'abcdef'[number]}")] for number in range(length)]
    result = await run(*cycle * 8)
    assert result.stop_reason is StopReason.STUCK


@pytest.mark.parametrize(
    "texts",
    [
        [f"once more ({number})" for number in range(20)],
        [f"Attempt {number}" for number in range(20)],
        ["again", " Again ", "AGAIN\n"] * 7,
    ],
)
async def test_near_duplicates_are_the_same(texts: list[str]) -> None:
    turns = [[poll(job=text)] for text in texts]
    assert (await run(*turns)).stop_reason is StopReason.STUCK


class Steps(Enum):
    ONE = 1
    TWO = 2


class Repeat(State):
    """Says the next of its texts for ever."""

    def __init__(self, text: str) -> None:
        self.text = text

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield self.text.replace("{n}", str(memory.control.step))

    async def next_state(self, memory: Memory) -> Any:
        return Steps.ONE if memory.control.step < 30 else None


@pytest.mark.parametrize(
    ("text", "reason"),
    [("once more ({n})", "stuck"), ("again", "stuck"), ("Page {n}.", "done"), ("{n}", "done")],
)
async def test_words_are_compared_without_their_counters(text: str, reason: str) -> None:
    net = Net({Steps.ONE: Repeat(text)}, transitions={Steps.ONE: (Steps.ONE, None)})
    assert (await Brain(net).run("go")).stop_reason == reason


class Chat(State):
    """Says one text after the other, again and again."""

    def __init__(self, *texts: str) -> None:
        self.texts = texts

    async def run(self, memory: Memory) -> AsyncIterator[str]:
        yield self.texts[memory.control.step % len(self.texts)]

    async def next_state(self, memory: Memory) -> Any:
        return Steps.ONE if memory.control.step < 11 else None


SAME = (
    "I will search the web for the weather in Porto.",
    "Let me search the web for Porto's weather!",
    "Searching the web for weather in Porto, then.",
    "So: the weather in Porto. I search the web for it.",
    "I should be searching the web for the weather of Porto",
)
NEW = tuple(f"{word} is something else" for word in "Ants Bees Cats Dogs Eels Fish Gnus".split())


class Meaning(Embedder):
    """Knows one meaning, and fails if it is told to."""

    name = "meaning"

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.read: list[str] = []

    async def embed(self, texts: Sequence[str]) -> Any:
        if self.fails:
            raise OSError("no connection")
        self.read += texts
        return [[9.0, 0.1 * len(t)] if t in SAME else [0.0, 1.0 + hash(t) % 9] for t in texts]


async def chat(*texts: str, **policy: Any) -> Any:
    net = Net({Steps.ONE: Chat(*texts)}, transitions={Steps.ONE: (Steps.ONE, None)})
    return await Brain(net, stuck=StuckPolicy(hints=0, **policy)).run("go")


@pytest.mark.parametrize(
    ("texts", "policy", "reason"),
    [
        (SAME, {}, "done"),
        (SAME, {"similar": 0.6}, "stuck"),
        ((*SAME[:2], NEW[0]), {"similar": 0.6}, "stuck"),  # a cycle
        (NEW, {"similar": 0.6}, "done"),
        (SAME, {"embedder": Meaning()}, "stuck"),
        (SAME, {"embedder": Meaning(fails=True)}, "done"),
    ],
)
async def test_paraphrases_are_the_same_where_that_is_asked_for(
    texts: tuple[str, ...], policy: dict[str, Any], reason: str
) -> None:
    assert (await chat(*texts, **policy)).stop_reason == reason


async def test_each_text_of_a_run_is_embedded_once_and_counted() -> None:
    meaning = Meaning()
    assert (await run("done", stuck=StuckPolicy(embedder=meaning))).answer == "done"
    assert meaning.read == []  # there was nothing to compare
    result = await chat(*SAME, embedder=meaning)
    assert (result.stop_reason, result.steps) == ("stuck", 5)
    assert meaning.read == [*SAME]
    assert result.usage.requests == 4  # the second step has embedded two texts


async def test_texts_of_different_states_are_not_compared() -> None:
    class Turns(Chat):
        async def next_state(self, memory: Memory) -> Any:
            return Steps(memory.control.step % 2 + 1) if memory.control.step < 11 else None

    every = tuple(Steps)
    net = Net(
        {key: Turns(*SAME) for key in every}, transitions=dict.fromkeys(every, (*every, None))
    )
    policy = StuckPolicy(similar=0.6, max_cycle=1, hints=0)
    assert (await Brain(net, stuck=policy).run("go")).stop_reason == "done"


async def test_something_new_makes_the_count_begin_again() -> None:
    turns = [*[poll()] * 8, poll("add", a=1, b=1), *[poll()] * 4, "done"]
    assert (await run(*turns)).stop_reason is StopReason.DONE


async def test_the_fallback_answers_for_a_stuck_run() -> None:
    llm = ScriptedLLM([*[poll()] * 9, "It is still pending."])
    result = await Brain(react(llm, fallback=True), tools=TOOLS).run("go")
    assert (result.stop_reason, result.answer) == (StopReason.STUCK, "It is still pending.")


@pytest.mark.parametrize(
    ("turn", "answer"),
    [([poll()], "pending"), (["I look once more. ", poll()], "I look once more. ")],
    ids=["results", "remarks"],
)
async def test_a_stuck_run_ends_with_the_best_text_so_far(turn: Any, answer: str) -> None:
    result = await run(*[turn] * 9)
    seen = [c async for c in Brain(react(ScriptedLLM([turn] * 9)), tools=TOOLS).answer("go")]
    assert (result.stop_reason, result.answer) == (StopReason.STUCK, answer)
    assert seen[-1] == answer


async def test_in_the_text_mode_the_last_thought_is_better_than_nothing() -> None:
    llm = ScriptedLLM([["I ask. ", poll()]] * 9, native=False)
    result = await Brain(react(llm), tools=TOOLS).run("go")
    assert (result.stop_reason, result.answer) == (StopReason.STUCK, "I ask.")


def test_a_tool_that_is_renamed_stays_repeatable() -> None:
    assert wait.renamed("other").repeatable
    assert not status.repeatable
    assert isinstance(wait, BaseTool)


@pytest.mark.parametrize(
    "options", [{"threshold": 1}, {"hints": -1}, {"max_cycle": 0}, {"similar": 0}, {"similar": 1.1}]
)
def test_a_policy_that_makes_no_sense_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(BrainDefinitionError, match=r"StuckPolicy\("):
        StuckPolicy(**options)


async def test_the_order_in_which_equal_calls_end_does_not_matter() -> None:
    ended: list[int] = []
    turn = anyio.Event()

    @tool
    async def look(place: int) -> str:
        """Look at a place."""
        nonlocal turn
        first = len(ended) // 2 % 3 == 0  # which of the two ends first changes from step to step
        if (place == 1) is first and len(ended) % 2 == 0:
            await turn.wait()
        ended.append(place)
        turn.set()
        turn = anyio.Event()
        return "nothing"

    calls = [poll("look", place=0), poll("look", place=1)]
    net = react(ScriptedLLM([*[calls] * 12, "done"]))
    result = await Brain(net, tools=[look]).run("go")
    assert ended[:4] == [0, 1, 1, 0]
    assert result.stop_reason is StopReason.STUCK


class Interview(State):
    """Asks a person again and again, and says the same to each answer."""

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        if memory.control.input is None:
            yield InputRequested("What else?")
        else:
            yield "Noted."

    async def next_state(self, memory: Memory) -> Any:
        return Steps.ONE if memory.control.step < 12 else None


@pytest.mark.parametrize(
    ("inside", "answers", "reason"),
    [
        (False, [f"answer {n}" for n in "abcdefghi"], "input"),
        (True, [f"answer {n}" for n in "abcdefghi"], "input"),
        (False, ["no"] * 12, "stuck"),
    ],
    ids=["different", "different in a subnet", "equal"],
)
async def test_different_answers_of_a_person_are_progress(
    inside: bool, answers: list[str], reason: str
) -> None:
    net = Net({Steps.ONE: Interview()}, transitions={Steps.ONE: (Steps.ONE, None)})
    brain = Brain(single(SubnetState(net)) if inside else net)
    result = await brain.run("go")
    for answer in answers:
        if result.stop_reason is StopReason.INPUT:
            result = await brain.resume(input=answer)
    assert result.stop_reason == reason


async def test_a_message_that_is_sent_to_a_run_is_progress() -> None:
    net = Net({Steps.ONE: Repeat("again")}, transitions={Steps.ONE: (Steps.ONE, None)})
    async with Brain(net).stream("go") as run:
        async for event in run:
            if isinstance(event, StateEntered) and event.step % 3 == 2:
                run.send(f"more {event.step}")
    assert run.result.stop_reason is StopReason.DONE


class Think(State):
    """Calls a model that only thinks, for ever."""

    def __init__(self, llm: LLM, *, thought: bool) -> None:
        self.llm = llm
        self.thought = thought

    async def run(self, memory: Memory) -> AsyncIterator[Any]:
        yield self.llm.call(await memory.context(), thought=self.thought)

    async def next_state(self, memory: Memory) -> Any:
        return Steps.ONE if memory.control.step < 60 else None


@pytest.mark.parametrize("thought", [False, True], ids=["the model's", "the state's"])
@pytest.mark.parametrize(
    ("text", "reason"), [("Let me think.", "stuck"), ("Idea {n}.", "done")], ids=["same", "new"]
)
async def test_calls_that_only_think_the_same_are_noticed(
    thought: bool, text: str, reason: str
) -> None:
    kind = str if thought else Thought
    llm = ScriptedLLM([[kind(text.replace("{n}", str(number)))] for number in range(61)])
    net = Net({Steps.ONE: Think(llm, thought=thought)}, transitions={Steps.ONE: (Steps.ONE, None)})
    result = await Brain(net).run("go")
    assert result.stop_reason == reason
    assert len(llm.calls) == (61 if reason == "done" else 9)
