"""Every net does the tasks that it can do, with the model of rules."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agent_brain.errors import ExperimentError
from agent_brain.experiments import Judge, Task, game24, load_tasks
from agent_brain.experiments.rule_based.llm import RuleBasedLLM
from agent_brain.experiments.task_sets.generated import basics, long_memory, user_memory
from agent_brain.nets import net_names
from agent_brain.tools import Action, call_tool
from tests.experiments.loop import passed_tags, passes

KINDS = ["arithmetic", "lookup", "long conversation", "sessions", "structured", "failing tool"]
USER_KINDS = ["update", "preference", "deletion", "absent", "contradiction"]
CANNOT = {
    "tree_of_thoughts": {"lookup", "failing tool"},  # thinks, and calls no tools
    "graph_of_thoughts": {"lookup", "failing tool"},
    "router": {"structured"},  # takes no output type: its routes do
}


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # others run the nets on trio
@pytest.mark.parametrize("net", net_names())
async def test_a_net_passes_what_it_can_do(net: str, tmp_path: Path) -> None:
    done = [
        (task, (await passes(task, net, "messages", RuleBasedLLM(), tmp_path))[0])
        for task in basics(6)
    ]

    cannot = CANNOT.get(net, set())
    assert passed_tags(done) == {kind: "0/1" if kind in cannot else "1/1" for kind in KINDS}


@pytest.mark.anyio
async def test_another_seed_makes_tasks_that_can_be_done(tmp_path: Path) -> None:
    for task in basics(18, seed=1):
        passed, results = await passes(task, "react", "messages", RuleBasedLLM(), tmp_path)
        assert passed, (task.id, task.turns, task.expected, [result.answer for result in results])


@pytest.mark.anyio
@pytest.mark.parametrize(
    "memory, options, can",
    [
        ("messages", {}, True),
        ("vector", {}, True),
        ("layered", {}, True),
        ("windowed", {}, False),
        ("windowed", {"max_messages": 20}, False),
    ],
)
async def test_a_window_loses_what_recall_finds(
    memory: str, options: dict[str, Any], can: bool
) -> None:
    for task in long_memory(6):
        passed, results = await passes(task, "react", memory, RuleBasedLLM(), None, **options)
        assert passed is can, (task.turns, task.expected, results[-1].answer)
        if not can:
            assert results[-1].answer.startswith("I do not know")


def test_the_kinds_come_in_turn() -> None:
    assert [task.tags for task in basics(7)] == [[kind] for kind in [*KINDS, "arithmetic"]]
    assert Counter(tag for task in basics() for tag in task.tags).most_common()[-1][1] >= 6
    assert len(long_memory()) == 12


@pytest.mark.parametrize("make", [basics, long_memory, user_memory])
def test_the_same_seed_makes_the_same_tasks(make: Any) -> None:
    def said(n: int, seed: int = 0) -> list[Any]:
        return [
            (task.id, task.all_turns, task.expected, [m.content for m in task.messages])
            for task in make(n, seed)
        ]

    assert said(12) == said(12)
    assert said(12)[:1] == said(1)
    assert said(12)[:2] == said(2)
    assert said(12)[:3] == said(3)
    assert [said[1] for said in said(12)] != [said[1] for said in said(12, seed=1)]


def test_no_two_tasks_are_alike() -> None:
    tasks = basics(300)
    assert len({json.dumps([turn.text for turn in task.all_turns]) for task in tasks}) == 300
    assert len({task.id for task in tasks}) == 300


def test_no_answer_stands_in_the_last_question() -> None:
    for task in basics(120):
        if isinstance(task.expected, str):
            assert task.expected not in task.all_turns[-1].text


@pytest.mark.parametrize("n", [0, -1, 1.5, True, "3"])
def test_how_many_is_checked(n: Any) -> None:
    with pytest.raises(ExperimentError, match=r"basics\(n=.*a whole number from 1"):
        basics(n)


@pytest.mark.anyio
async def test_each_case_has_tools_of_its_own() -> None:
    task = next(t for t in basics(60) if t.tags == ["failing tool"] and len(t.make_tools()) == 1)
    for _ in range(2):
        tool: Any = task.make_tools()[0]
        start = task.all_turns[0].text.rpartition(" of ")[2].strip("?")
        call = Action(name=tool.name, args={"name": start})
        tools: Any = {tool.name: tool}
        assert (await call_tool(call, tools)).is_error
        assert not (await call_tool(call, tools)).is_error


@pytest.mark.parametrize(
    "name, task",
    [
        ("basics", basics(1)[0]),
        ("long_memory", long_memory(1)[0]),
        ("user_memory", user_memory(1)[0]),
    ],
)
def test_a_set_is_loaded_by_its_name(name: str, task: Task) -> None:
    assert load_tasks(name, n=1)[0].turns == task.turns


def test_answers_about_a_user_are_judged_by_what_they_must_say() -> None:
    checked, judged = user_memory(5), user_memory(5, judge="rule-based")
    assert [task.tags for task in judged] == [[kind] for kind in USER_KINDS]
    for one, other in zip(checked, judged, strict=True):
        judge = next(turn.expected for turn in other.all_turns if turn.expected)
        assert isinstance(judge, Judge)
        assert [turn.text for turn in one.all_turns] == [turn.text for turn in other.all_turns]
    update = checked[0].all_turns[-1].expected
    assert isinstance(update, re.Pattern)
    new, old = re.findall(r"[A-Z]\d-\d{4}", str(judged[0].all_turns[-1].expected))
    assert [bool(update.search(text)) for text in (f"{new}.", f"{old}.", f"{new}, not {old}")] == [
        True,
        False,
        False,
    ]


def test_puzzles_are_loaded_by_their_name() -> None:
    assert [puzzle.turns for puzzle in load_tasks("game24", n=2)] == [p.turns for p in game24(2)]
