"""The file of an experiment: what it says, and every mistake in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_brain.cli.compare.file import (
    Entry,
    ExperimentFile,
    read_experiment_file,
    refuse,
    short_name,
)
from agent_brain.cli.exit_codes import UserError
from agent_brain.common.references import is_reference

LEAST = 'nets = "react"\ntasks = "basics"\n'


def read(folder: Path, text: str) -> ExperimentFile:
    path = folder / "compare.toml"
    path.write_text(text)
    file = read_experiment_file(path)
    refuse(path, file.problems)
    return file


def test_a_file_names_nets_and_tasks(tmp_path: Path) -> None:
    file = read(tmp_path, LEAST)

    assert file.entries == {
        "nets": [Entry("nets", "react", "react", {})],
        "tasks": [Entry("tasks", "basics", "basics", {})],
    }
    assert (file.tools, file.limits, file.values) == ([], None, {})


def test_lists_texts_and_tables_name_the_same(tmp_path: Path) -> None:
    table = "[nets.react]\n[nets.my]\nnet = 'nets/my.toml'\n[nets.careful]\nnet = 'reflexion'\nattempts = 2\n"
    file = read(tmp_path, f"tasks = ['basics', 'tasks/own.jsonl']\n{table}")

    assert file.entries["nets"] == [
        Entry("nets.react", "react", "react", {}),
        Entry("nets.my", "my", "nets/my.toml", {}),
        Entry("nets.careful", "careful", "reflexion", {"attempts": 2}),
    ]
    assert [task.name for task in file.entries["tasks"]] == ["basics", "own"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("react", "react"),
        ("nets/my.toml", "my"),
        ("my_nets:careful", "careful"),
        ("a/b/my_nets.py:careful", "careful"),
        ("openai/gpt-4.1-mini", "openai/gpt-4.1-mini"),
        ("ollama/llama3.2:3b", "ollama/llama3.2:3b"),
        ("ollama/qwen3:latest", "ollama/qwen3:latest"),
        ("bedrock/anthropic.claude-v1:0", "bedrock/anthropic.claude-v1:0"),
    ],
)
def test_a_choice_is_called_by_the_last_part_of_a_file_or_reference(text: str, name: str) -> None:
    assert short_name(text) == name
    assert is_reference(text) == (name == "careful")


def test_values_limits_and_tools_are_read(tmp_path: Path) -> None:
    rest = """
        repeat = 3
        model_at_once = { mini = 2 }
        max_cost = 1
        tools = ["my_tools.py:search"]
        [limits]
        max_steps = 10
        max_tool_calls = 3
    """
    file = read(tmp_path, LEAST + rest)

    assert file.values == {"repeat": 3, "model_at_once": {"mini": 2}, "max_cost": 1}
    assert file.tools == ["my_tools.py:search"]
    assert file.limits is not None
    assert (file.limits.max_steps, file.limits.max_tool_calls) == (10, 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nets = react", "is not TOML"),
        ("nets = ['react']\n[nets.careful]\nnet = 'react'", "write all as [KEY.NAME]"),
        ("", "nets is missing"),
        ("nets = 'react'", "tasks is missing"),
        (LEAST + "memorys = 'vector'", "memorys: there is no such key. Did you mean 'memories'?"),
        (LEAST + "xyz = 1", "xyz: there is no such key. There are: nets, memories"),
        (LEAST + "repeat = 0", "repeat=0: a whole number, at least 1"),
        (LEAST + "repeat = '3'", "repeat='3': a whole number"),
        (LEAST + "repeat = true", "repeat=True: a whole number"),
        (LEAST + "max_cost = 0", "max_cost=0: a number above 0"),
        (LEAST + "case_seconds = nan", "case_seconds=nan: a number above 0"),
        (LEAST + "tools = 'my_tools.py:search'", "tools='my_tools.py:search': a list of texts"),
        (LEAST + "trace = 'yes'", "trace='yes': True or False"),
        (LEAST + "name = ''", "name='': a name that is not empty"),
        (LEAST + "limits = 3", "limits=3: a table, [limits]"),
        (
            LEAST + "[limits]\nmax_step = 3",
            "limits.max_step: there is no such limit. Did you mean 'max_steps'?",
        ),
        (LEAST + "[limits]\nmax_steps = -3", "limits: Limits(max_steps=-3)"),
        ("tasks = 'basics'\nnets = []", 'nets: write nets = ["react", "plan_execute"]'),
        ("tasks = 'basics'\nnets = 3", 'nets: write nets = ["react", "plan_execute"]'),
        ("tasks = 'basics'\nnets = ['react', 3]", "nets: 3 is not a name"),
        ("tasks = 'basics'\nnets = ['']", "nets: '' is not a name"),
        ("tasks = 'basics'\nnets = ['react', 'react']", "nets: two are named 'react'"),
        ("tasks = 'basics'\n[nets]\nreact = 3", "nets.react is 3: write a table"),
        ("tasks = 'basics'\n[nets.my]\nnet = 3", "nets.my.net is 3: write a name"),
    ],
)
def test_mistakes_are_named_with_their_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError) as raised:
        read(tmp_path, text)

    assert message in str(raised.value)
    assert "compare.toml" in str(raised.value)


def test_all_problems_are_listed_at_once(tmp_path: Path) -> None:
    with pytest.raises(UserError) as raised:
        read(tmp_path, "nets = 3\nrepeat = 0\nlimit = 2\n[limits]\nmax_cost = 0")

    said = str(raised.value).splitlines()
    assert [line.split(":")[0] for line in said[1:]] == [
        "  - tasks is missing",
        "  - repeat=0",
        "  - limit",
        "  - nets",
        "  - limits",
    ]


def test_a_file_that_is_missing_or_no_text_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"missing\.toml' cannot be read"):
        read_experiment_file(tmp_path / "missing.toml")
    path = tmp_path / "picture.toml"
    path.write_bytes(b"\x89PNG\xff")
    with pytest.raises(UserError, match=r"picture\.toml cannot be read"):
        read_experiment_file(path)
