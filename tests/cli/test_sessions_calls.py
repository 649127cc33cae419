"""``agent-brain sessions`` shows recorded model calls, replays runs and makes tests of them."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import anyio
import pytest

from agent_brain import Brain, MessagesMemory
from agent_brain.testing import ScriptedLLM, replay
from agent_brain.tools import Action
from tests.cli.stored import look
from tests.cli.support import in_order, invoke, json_lines


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A journal with a session of two runs, the first of them traced."""
    path = tmp_path / "j.db"

    async def store() -> None:
        turns: list[Any] = [["Hm. ", Action(name="look", args={"number": 7})], "It is seven."]
        async with MessagesMemory(journal=path, session="ann") as memory:
            await Brain("react", memory, [look], llm=ScriptedLLM(turns), trace=True).run("Seven?")

    anyio.run(store)
    return path


def sessions(command: str, place: Path, *args: str) -> Any:
    return invoke("sessions", command, "--journal", str(place), *args)


def test_calls_shows_what_the_model_saw(place: Path) -> None:
    done = sessions("calls", place, "ann")
    assert done.exit_code == 0
    parts = [
        *("REASONING", "scripted", "you", "Seven?", "offered", "look", "response", "Hm."),
        *("look(number=7)", "result", "seen 7", "response", "It is seven."),
    ]
    assert in_order(done.stdout, parts)


def test_calls_of_a_step_as_json(place: Path) -> None:
    steps = json_lines(sessions("steps", place, "ann", "--json").stdout)
    done = sessions("calls", place, "ann", "--step", str(steps[1]["number"]), "--json")
    [call] = json_lines(done.stdout)
    assert (call["text"], call["step"], call["state"]) == ("Hm. ", 0, "REASONING")
    other = sessions("calls", place, "ann", "--run", call["run_id"], "--json")
    assert len(json_lines(other.stdout)) == 2


def test_a_session_without_calls_is_said(place: Path) -> None:
    async def store() -> None:
        async with MessagesMemory(journal=place, session="bob") as memory:
            await Brain("react", memory, llm=ScriptedLLM("Hi.")).run("Hello")

    anyio.run(store)
    done = sessions("calls", place, "bob")
    assert done.exit_code == 2
    assert "--trace" in done.stderr


@pytest.mark.parametrize("command", [["calls"], ["export", "--as", "cassette", "-o", "x.json"]])
def test_a_run_without_calls_that_is_not_there_is_said(place: Path, command: list[str]) -> None:
    done = sessions(command[0], place, "ann", "--run", "other", *command[1:])
    assert done.exit_code == 2
    assert "no run 'other'" in done.stderr


@pytest.mark.parametrize("command", [["replay"], ["export", "--as", "test", "-o", "test_x.py"]])
def test_the_tools_of_a_run_without_calls_are_asked_for(place: Path, command: list[str]) -> None:
    async def store() -> None:
        turns: list[Any] = [[Action(name="look", args={"number": 7})], "It is seven."]
        async with MessagesMemory(journal=place, session="bob") as memory:
            await Brain("react", memory, [look], llm=ScriptedLLM(turns)).run("Seven?")

    anyio.run(store)
    done = sessions(command[0], place, "bob", *command[1:])
    assert done.exit_code == 2
    assert "name look with --tool" in done.stderr


def test_replay_compares_a_run_with_the_net_of_today(place: Path) -> None:
    done = sessions("replay", place, "ann")
    assert (done.exit_code, done.stdout) == (
        0,
        "No difference in 4 states: 2 requests are equal\n",
    )
    done = sessions("replay", place, "ann", "--net", "plan_execute")
    assert done.exit_code == 1
    assert in_order(done.stdout, ["another state", "REASONING", "PLANNING"])
    [report] = json_lines(sessions("replay", place, "ann", "--json").stdout)
    assert report["equal"] is True


def test_a_net_brings_its_tools_to_a_replay(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "own.py"
    path.write_text(
        """
from enum import Enum

from agent_brain import Action, Net, SubnetState, react
from agent_brain.testing import ScriptedLLM
from tests.cli.stored import look

Step = Enum("Step", "ONE")
llm = ScriptedLLM([Action(name="look", args={"number": 7}), "It is seven."])
net = Net({Step.ONE: SubnetState(react(llm, tools=[look]))})
"""
    )
    net = runpy.run_path(str(path))["net"]

    async def store() -> None:
        async with MessagesMemory(journal=place, session="eve") as memory:
            await Brain(net, memory, trace=True).run("Seven?")

    anyio.run(store)
    done = sessions("replay", place, "eve", "--net", f"{path}:net")
    assert done.stdout == "No difference in 1 states: 2 requests are equal\n"


def test_a_run_that_is_not_there_is_trouble(place: Path) -> None:
    done = sessions("replay", place, "ann", "--run", "run_x")
    assert done.exit_code == 2
    assert "no run 'run_x'" in done.stderr


def test_export_as_a_test_that_passes(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "test_seven.py"
    done = sessions("export", place, "ann", "--as", "test", "-o", str(path))
    assert (done.exit_code, done.output) == (0, "")
    runpy.run_path(str(path))["test_seven"]()


def test_export_as_a_cassette(place: Path, tmp_path: Path) -> None:
    path = tmp_path / "seven.json"
    done = sessions("export", place, "ann", "--as", "cassette", "-o", str(path))
    assert (done.exit_code, done.output) == (0, "")
    with replay(path) as tape, pytest.raises(AssertionError, match="2 of them were not made"):
        tape.assert_complete()


@pytest.mark.parametrize("form", ["journal", "cassette"])
def test_an_export_does_not_replace_a_journal(place: Path, form: str) -> None:
    done = sessions("export", place, "ann", "--as", form, "-o", str(place))
    assert done.exit_code != 0
    assert "is a database" in done.stderr
    assert sessions("show", place, "ann").exit_code == 0


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        (["--as", "test"], "name it with -o"),
        (["--run", "x"], "--run goes with"),
        (["--as", "test", "-o", "x.txt"], "not a Python file"),
    ],
)
def test_wrong_exports_are_refused(place: Path, args: list[str], problem: str) -> None:
    done = sessions("export", place, "ann", *args)
    assert done.exit_code == 2
    assert problem in done.stderr


def test_trace_is_an_option_of_the_agent(tmp_path: Path) -> None:
    folder = tmp_path / "chats"
    done = invoke("ask", "--folder", str(folder), "--trace", "What is 6 times 7?")
    assert done.exit_code == 0
    calls = invoke("sessions", "calls", "--folder", str(folder), "default", "--json")
    assert len(json_lines(calls.stdout)) >= 1


def test_a_brain_file_turns_it_on(tmp_path: Path) -> None:
    file = tmp_path / "net.toml"
    file.write_text('net = "react"\nmodel = "demo"\ntrace = true\n')
    folder = tmp_path / "chats"
    assert invoke("run", "--folder", str(folder), str(file), "6 times 7?").exit_code == 0
    calls = invoke("sessions", "calls", "--folder", str(folder), "default", "--json")
    assert len(json_lines(calls.stdout)) >= 1
