from __future__ import annotations

import json
import re
import tomllib

import jsonschema
import pytest

from tests.cli.support import invoke


def test_nets_are_listed_with_what_they_are(script):
    script([])
    lines = invoke("nets").stdout.splitlines()
    assert lines == sorted(lines)
    assert any(line.startswith("react  ") and "Reason and call tools" in line for line in lines)
    assert any(re.fullmatch(r"scripted +What the test says\.", line) for line in lines)


def test_a_net_is_drawn_for_mermaid():
    result = invoke("nets", "--draw", "React")
    assert result.exit_code == 0
    assert "stateDiagram-v2\n    [*] --> REASONING\n" in result.stdout


def test_a_net_is_drawn_for_graphviz():
    result = invoke("nets", "--draw", "react", "--format", "dot")
    assert result.stdout.startswith('digraph "react" {')


GOOD = """
name = "helper"
model = "demo"
[states.THINK]
type = "reasoning"
on_action = "ACT"
on_answer = "ANSWER"
[states.ACT]
type = "action"
on_done = "THINK"
[states.ANSWER]
type = "answer"
"""


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "net.toml"
    path.write_text(GOOD)
    return str(path)


def test_a_valid_file_has_no_problems(good):
    result = invoke("nets", "check", good)
    assert (result.exit_code, result.stdout) == (0, "helper: 3 states, no problems\n")


def test_every_problem_of_a_file_is_reported(tmp_path):
    path = tmp_path / "net.toml"
    path.write_text(GOOD.replace('"THINK"', '"NOWHERE"') + "[states.EXTRA]\ntype = 'none'\n")
    result = invoke("nets", "check", str(path))
    assert result.exit_code == 1
    assert "'NOWHERE' is not a state of the net" in result.stderr
    assert "'none' is not a kind of state" in result.stderr


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ('memory = "windowed"\nmemory_options = {max_mesages = 5}', "Did you mean 'max_messages'?"),
        ('memory = "windowd"', "Did you mean 'windowed'?"),
        ('tools = ["calculat"]', "Did you mean 'calculate'?"),
    ],
)
def test_the_memory_and_the_tools_of_a_file_are_checked(tmp_path, wrong, why):
    path = tmp_path / "net.toml"
    path.write_text(f"{wrong}\n{GOOD}")
    result = invoke("nets", "check", str(path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert why in result.stderr


def test_a_net_in_a_module_is_checked(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text(
        "from enum import Enum\n"
        "from agent_brain import State\n"
        "class K(Enum):\n    A = 1\n"
        "class Loop(State):\n"
        "    async def run(self, memory):\n        yield ''\n"
        "    async def next_state(self, memory):\n        return K.A\n"
        "    def targets(self):\n        return [K.A]\n"
        "net = {K.A: Loop()}\n"
    )
    result = invoke("nets", "check", f"{tmp_path / 'mine.py'}:net")
    assert result.exit_code == 1
    assert "[no_end] State 'A' cannot reach an end" in result.stderr


def test_an_unknown_net_is_a_mistake():
    result = invoke("nets", "check", "nope")
    assert result.exit_code == 2
    assert "There is no net named 'nope'" in result.stderr


def test_an_agent_from_a_file_answers(good):
    result = invoke("run", good, "what", "is", "3", "times", "4?")
    assert (result.exit_code, result.stdout) == (0, "3 * 4 = 12.\n")


def test_ask_takes_a_file_as_its_net(good):
    result = invoke("ask", "--net", good, "--model", "demo", "what is 3 times 4?")
    assert result.stdout == "3 * 4 = 12.\n"


def test_the_schema_of_files_accepts_what_the_library_accepts(good):
    schema = json.loads(invoke("nets", "schema").stdout)
    jsonschema.Draft202012Validator(schema).validate(tomllib.loads(GOOD))
    wrong = GOOD.replace("on_done", "on_dnoe")
    assert not jsonschema.Draft202012Validator(schema).is_valid(tomllib.loads(wrong))


def test_a_diagram_may_be_an_image():
    assert invoke("nets", "--draw", "react", "--format", "svg").stdout.startswith("<svg ")


def test_a_file_brings_its_model_memory_and_limits_to_every_command(good, tmp_path):
    path = tmp_path / "short.toml"
    path.write_text(f"{GOOD}\n[limits]\nmax_steps = 1\n")
    for command in (["run", str(path)], ["ask", "--net", str(path)]):
        result = invoke(*command, "what is 3 times 4?")
        assert (result.exit_code, "Note" in result.stderr) == (3, False)
        assert "the limit of steps" in result.stderr
        assert invoke(*command, "--max-steps", "9", "what is 3 times 4?").exit_code == 0


def test_the_agent_of_a_file_can_be_stored(good, tmp_path):
    stored = ("--folder", str(tmp_path / "stored"), "--memory", "windowed")
    assert invoke("run", good, *stored, "my name is Ann").exit_code == 0
    later = invoke("run", good, *stored, "what was my first question?")
    assert "my name is Ann" in later.stdout


def test_run_takes_files_alone():
    result = invoke("run", "react", "hi")
    assert (result.exit_code, "'react' is not a .toml" in result.stderr) == (2, True)


def test_a_subcommand_of_nets_is_all_that_runs():
    result = invoke("nets", "--draw", "react", "check", "react")
    assert (result.exit_code, result.stdout) == (0, "react: 3 states, no problems\n")
