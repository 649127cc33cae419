"""Tasks from files, functions and task sets by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_brain.errors import ExperimentError
from agent_brain.experiments import (
    Contains,
    Equals,
    JsonMatches,
    Matches,
    Number,
    Task,
    Turn,
    basics,
    load_tasks,
)

TASKS: list[dict[str, Any]] = [
    {"id": "sum", "turns": "What is 17 + 25?", "expected": 42, "tags": ["arithmetic"]},
    {
        "id": "talk",
        "turns": ["Hi", {"text": "Who am I?", "session": "2", "restart": True, "expected": "Ann"}],
        "messages": [{"role": "user", "content": "I am Ann"}],
        "max_cost": 0.5,
        "source": "ours",
    },
    {"id": "data", "turns": "List it", "expected": {"equals": {"number": 1}}},
    {"id": "json", "turns": "List it", "expected": {"json": {"a": 1}}},
    {"id": "pattern", "turns": "Say it", "expected": {"matches": "^a"}},
    {"id": "plain", "turns": "List it", "expected": {"a": 1, "b": 2}},
    {"id": "bool", "turns": "Is it?", "expected": True},
]


def check_tasks(found: list[Task]) -> None:
    assert [task.id for task in found] == [task["id"] for task in TASKS]
    checks = [type(task.check) for task in found]
    assert checks == [Number, type(None), Equals, JsonMatches, Matches, Equals, Equals]
    assert found[0].tags == ["arithmetic"]
    talk = found[1]
    assert talk.all_turns[1] == Turn(text="Who am I?", session="2", restart=True, expected="Ann")
    assert talk.all_turns[1].check == Contains("Ann")
    assert [message.content for message in talk.messages] == ["I am Ann"]
    assert (talk.max_cost, talk.source) == (0.5, "ours")


def test_json_lines_are_read(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    file.write_text("\n\n".join(json.dumps(task) for task in TASKS))

    check_tasks(load_tasks(file))


def test_a_line_may_begin_with_a_mark_and_hold_separators(tmp_path: Path) -> None:
    file = tmp_path / "tasks.jsonl"
    task = {"id": "a", "turns": "one\u2028two\x85three", "expected": 1}
    file.write_text(json.dumps(task, ensure_ascii=False) + "\r\n", "utf-8-sig")

    assert load_tasks(file)[0].turns == [task["turns"]]


def test_json_is_read(tmp_path: Path) -> None:
    (tmp_path / "tasks.json").write_text(json.dumps(TASKS))

    check_tasks(load_tasks(str(tmp_path / "tasks.json")))


def test_toml_is_read(tmp_path: Path) -> None:
    file = tmp_path / "tasks.toml"
    file.write_text(
        '[[tasks]]\nid = "sum"\nturns = "What is 17 + 25?"\nexpected = {number = 42}\n'
        '[[tasks]]\nid = "talk"\nturns = ["Hi", {text = "Who?", expected = "Ann"}]\n'
    )

    first, second = load_tasks(file)
    assert first.check == Number(42)
    assert second.all_turns[1].expected == "Ann"


def test_functions_and_lists_are_found(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from agent_brain.experiments import Task\n"
        "def some(n=1):\n"
        "    return [Task(id=str(i), turns='Say it', expected='it') for i in range(n)]\n"
        "ALL = some(3)\nWRONG = 3\n"
    )

    assert len(load_tasks(f"{tmp_path}/mine.py:some", n=2)) == 2
    assert len(load_tasks(f"{tmp_path}/mine.py:ALL")) == 3
    with pytest.raises(ExperimentError, match="not a Task"):
        load_tasks(f"{tmp_path}/mine.py:WRONG")
    with pytest.raises(ExperimentError, match="there is no 'none' in it"):
        load_tasks(f"{tmp_path}/mine.py:none")
    with pytest.raises(ExperimentError, match="many"):
        load_tasks(f"{tmp_path}/mine.py:some", many=2)


def test_sets_are_found_by_name() -> None:
    assert [t.id for t in load_tasks("basics", n=6)] == [t.id for t in basics(6)]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("t.jsonl", '{"id": "a", "turns": "b", "expected": 1}\n{', "line 2: not JSON"),
        ("t.jsonl", '{"id": "a", "turns": "b", "expects": 1}', "line 1: expects: Extra inputs"),
        ("t.jsonl", '{"id": "a", "turns": "b"}', "line 1: Task 'a' expects nothing"),
        ("t.jsonl", '{"id": "a", "turns": "b", "expected": {"matches": "("}}', "line 1: Matches"),
        ("t.jsonl", '{"id": "a", "turns": "b", "expected": NaN}', "line 1: Number"),
        ("t.jsonl", "", "has no tasks"),
        ("t.json", "{}", "give a list of tasks"),
        ("t.json", '[{"turns": []}]', "task 1: id: Field required"),
        ("t.toml", "a =", "not TOML"),
        pytest.param("t.toml", "a = " + "[" * 20_000, "not TOML", id="deep"),
        ("t.toml", "a = 1", "give a list of tasks"),
        (
            "t.json",
            '[{"id": "a", "turns": "b", "expected": "c", "messages": [{"role": "x", "content": ""}]}]',
            "task 1",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)

    with pytest.raises(ExperimentError, match=message):
        load_tasks(tmp_path / name)


def test_nothing_of_that_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ExperimentError, match="Did you mean 'basics'"):
        load_tasks("basic")
    with pytest.raises(ExperimentError, match="cannot be read"):
        load_tasks(tmp_path / "missing.json")
    (tmp_path / "t.json").write_text("[]")
    wrong: Any = 3
    with pytest.raises(ExperimentError, match=r"load_tasks\(3\): give a file"):
        load_tasks(wrong)
    with pytest.raises(ExperimentError, match=r"long_memory\(n=0\)"):
        load_tasks("long_memory", n=0)
    with pytest.raises(ExperimentError, match="takes no options"):
        load_tasks(tmp_path / "t.json", n=3)
