"""Graph of thoughts: a list is sorted in parts that are merged, and wrong graphs are refused."""

from __future__ import annotations

import heapq
import json
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import anyio
import pytest
from pydantic import BaseModel

from agent_brain import Brain, Limits, Memory, StopReason
from agent_brain.errors import LLMServerError
from agent_brain.nets import (
    Aggregate,
    Generate,
    KeepBest,
    NetDefinitionError,
    Refine,
    Score,
    graph_of_thoughts,
)
from agent_brain.nets.library.graph_of_thoughts import OPERATIONS, Graph, OneThought, Rating
from agent_brain.nets.library.tree_of_thoughts import Thoughts
from agent_brain.states import TextDelta
from agent_brain.testing import ModelCall, ScriptedLLM
from tests.nets.models import FunctionLLM, last_user, text_of

pytestmark = pytest.mark.anyio

NUMBERS = random.Random(7).choices(range(10), k=64)


def goal_list(memory: Memory, text: str) -> list[str]:
    return [json.dumps(NUMBERS[start : start + 16]) for start in range(0, 64, 16)]


def mistakes(memory: Memory, text: str) -> float:
    numbers = json.loads(text)
    return -float(sum(a > b for a, b in pairwise(numbers)))


async def merge(memory: Memory, texts: Sequence[str]) -> str:
    await anyio.lowlevel.checkpoint()
    return json.dumps(list(heapq.merge(*map(json.loads, texts))))


def sorting() -> list[Any]:
    """Split; sort each part three times, keep the best; merge, as in the paper's figure 4."""
    parts: list[Any] = [Generate(name="split", by=goal_list)]
    for number in range(4):

        def part(memory: Memory, texts: Sequence[str], number: int = number) -> str:
            return texts[number]

        parts += [
            Aggregate(name=f"part {number}", inputs=("split",), by=part),
            Generate(name=f"sort {number}", inputs=(f"part {number}",), count=3),
            Score(name=f"score {number}", inputs=(f"sort {number}",), by=mistakes),
            KeepBest(name=f"best {number}", inputs=(f"score {number}",)),
        ]
    return [
        *parts,
        Aggregate(name="left", inputs=("best 0", "best 1"), by=merge),
        Aggregate(name="right", inputs=("best 2", "best 3"), by=merge),
        Aggregate(name="all", inputs=("left", "right"), by=merge),
    ]


def sloppy_sorter(call: ModelCall) -> Thoughts:
    """Sorts three times, and only once right."""
    numbers = json.loads(last_user(call.messages).rpartition("\n\n")[2])
    wrong = sorted(numbers, reverse=True)
    return Thoughts(thoughts=[json.dumps(n) for n in (numbers, sorted(numbers), wrong)])


async def test_a_list_is_sorted_by_splitting_sorting_and_merging() -> None:
    llm = FunctionLLM(sloppy_sorter)
    brain = Brain(graph_of_thoughts(llm, sorting()))
    result = await brain.run(f"Sort {NUMBERS}")
    assert json.loads(result.answer) == sorted(NUMBERS)
    assert len(llm.calls) == 4
    assert result.steps == 8  # split, part, sort, score, best, left and right, all; and the answer


async def test_independent_operations_run_concurrently() -> None:
    here = 0
    all_here = anyio.Event()

    async def meet(memory: Memory, text: str) -> list[str]:
        nonlocal here
        here += 1
        if here == 3:
            all_here.set()
        await all_here.wait()
        return ["x"]

    operations: list[Any] = [Generate(name=name, by=meet) for name in "abc"]
    operations.append(Aggregate(name="all", inputs=tuple("abc"), by=lambda m, t: "".join(t)))
    with anyio.fail_after(60):
        assert (await Brain(graph_of_thoughts(ScriptedLLM(), operations)).run("go")).answer == "xxx"


def drafting(call: ModelCall) -> Any:
    asked = last_user(call.messages)
    if call.output_type is Thoughts:
        return Thoughts(thoughts=["bad", "good", "better", "too many"])
    if call.output_type is Rating:
        return Rating(score={"bad": 0.1, "good": 0.5, "better": 0.9}[asked.split("\n\n")[-1]])
    if call.output_type is OneThought:
        kind, *texts = asked.split("\n\n")
        return OneThought(thought=f"{kind.split()[0]}({', '.join(texts)})")
    return '{"text": "shaped"}'


async def test_the_default_graph_drafts_scores_combines_and_refines() -> None:
    llm = FunctionLLM(drafting)
    brain = Brain(graph_of_thoughts(llm))
    result = await brain.run("Write a poem")
    assert result.answer == "Improve(Combine(better, good))"
    assert len(llm.calls) == 1 + 3 + 1 + 1
    assert [m.content for m in result.messages] == ["Write a poem", result.answer]
    assert len(Graph.read(brain.memory).made) == len(OPERATIONS)


async def test_only_the_answer_streams_as_text() -> None:
    said: dict[bool, str] = {True: "", False: ""}
    async with Brain(graph_of_thoughts(FunctionLLM(drafting))).stream("Write a poem") as run:
        async for event in run:
            if isinstance(event, TextDelta):
                said[event.thought] += event.text
    assert said[False] == "Improve(Combine(better, good))"
    assert "drafts: bad\ndrafts: good\n" in said[True]


async def test_plain_data_declares_a_graph_too() -> None:
    data: list[Any] = [
        {"kind": "refine", "name": "better", "inputs": ["draft"], "prompt": "Shorten this."},
        {"kind": "generate", "name": "draft"},
    ]
    llm = FunctionLLM(drafting)
    assert (await Brain(graph_of_thoughts(llm, data)).run("go")).answer == "Shorten(bad)"
    assert "Write 1 different" in text_of(llm.calls[0].messages)


async def test_a_typed_answer_takes_one_more_call() -> None:
    class Poem(BaseModel):
        text: str

    llm = FunctionLLM(drafting)
    result = await Brain(graph_of_thoughts(llm, output_type=Poem)).run("Write a poem")
    assert result.output == Poem(text="shaped")
    assert "Improve(Combine(better, good))" in llm.calls[-1].messages[0].content


async def test_it_resumes_at_the_operations_that_failed() -> None:
    failing = iter([True])

    def shaky(call: ModelCall) -> Any:
        wrong = call.output_type is OneThought and next(failing, False)
        return LLMServerError("down") if wrong else drafting(call)

    llm = FunctionLLM(shaky)
    brain = Brain(graph_of_thoughts(llm))
    with pytest.raises(LLMServerError):
        await brain.run("Write a poem")
    assert (await brain.resume()).answer == "Improve(Combine(better, good))"
    assert len(llm.calls) == 1 + 3 + 2 + 1


@pytest.mark.parametrize(("fallback", "answer"), [(False, ""), (True, "better")])
async def test_a_limit_keeps_what_was_made(fallback: bool, answer: str) -> None:
    net = graph_of_thoughts(FunctionLLM(drafting), fallback=fallback)
    brain = Brain(net, limits=Limits(max_steps=3))
    result = await brain.run("Write a poem")
    assert (result.stop_reason, result.answer) == (StopReason.MAX_STEPS, answer)
    assert list(Graph.read(brain.memory).made) == ["drafts", "scores", "best"]


async def test_the_next_turn_starts_from_the_beginning() -> None:
    llm = FunctionLLM(drafting)
    brain = Brain(graph_of_thoughts(llm))
    await brain.run("Write a poem")
    await brain.run("Write another")
    assert len(llm.calls) == 12


def problems_of(operations: Any) -> list[tuple[str, tuple[str, ...]]]:
    with pytest.raises(NetDefinitionError) as caught:
        graph_of_thoughts(ScriptedLLM(), operations)
    return [(problem.code, problem.states) for problem in caught.value.problems]


def test_all_problems_are_reported_at_once() -> None:
    found = problems_of(
        [
            Generate(name="a", inputs=("b",)),
            Refine(name="b", inputs=("a",)),
            Refine(name="c", inputs=("nowhere",)),
            Score(name="c", inputs=("a",)),
            KeepBest(name="d"),
        ]
    )
    assert found == [
        ("duplicate_operation", ("c",)),
        ("unknown_input", ("c",)),
        ("no_input", ("d",)),
        ("cycle", ("a", "b", "c")),
    ]


@pytest.mark.parametrize(
    ("operations", "code"),
    [
        ([], "empty"),
        ([{"kind": "guess", "name": "a"}], "bad_operation"),
        ([{"kind": "generate", "name": "a", "extra": 1}], "bad_operation"),
        ([{"kind": "keep_best", "name": "a", "count": 0}], "bad_operation"),
        ([Generate(name="a", inputs=("a",))], "cycle"),
    ],
)
def test_wrong_graphs_are_refused(operations: Any, code: str) -> None:
    assert code in [found for found, _ in problems_of(operations)]
