"""Nets from files: plain data is validated, and every mistake is reported."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Limits, MessagesMemory, tool
from agent_brain.brainfile import LimitsSpec, brain_from_file, net_from_file
from agent_brain.errors import (
    MemoryDefinitionError,
    NetDefinitionError,
    NetFileError,
    ToolDefinitionError,
    UnknownNetError,
)
from agent_brain.nets import ParallelState, SubnetState
from agent_brain.nets.config import read_file
from agent_brain.nets.file_states import BuildContext, Options, register_state, state_kinds
from agent_brain.states import FunctionState, State
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import register_tool, tool_names

REACT = """
name = "helper"
fallback = "ANSWER"
[limits]
max_steps = 7
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

YAML = """
name: outer
states:
  FIRST: {type: subnet, net: react, on_done: BOTH}
  BOTH: {type: parallel, branches: {a: small, b: react}, on_error: report}
nets:
  small:
    states:
      ONLY: {type: answer, ask: true}
"""


def write(folder: Path, text: str, name: str = "net.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


@pytest.mark.anyio
async def test_a_brain_from_a_file_runs(tmp_path: Path) -> None:
    brain = brain_from_file(write(tmp_path, REACT), llm=ScriptedLLM(["yes"]))
    assert (await brain.run("go")).answer == "yes"
    assert brain.limits == Limits(max_steps=7)
    assert brain.net.fallback is not None


def test_options_in_code_override_the_file(tmp_path: Path) -> None:
    limits = Limits(max_steps=3)
    assert brain_from_file(write(tmp_path, REACT), limits=limits).limits is limits


def test_another_memory_does_not_get_the_options_of_that_of_the_file(tmp_path: Path) -> None:
    text = 'net = "react"\nmemory = "windowed"\n[memory_options]\nmax_messages = 5\n'
    path = write(tmp_path, text)
    assert isinstance(brain_from_file(path, memory="messages").memory, MessagesMemory)
    with pytest.raises(MemoryDefinitionError, match="max_messages"):
        brain_from_file(path, memory="messages", memory_options={"max_messages": 5})


def test_yaml_with_nets_inside(tmp_path: Path) -> None:
    net = net_from_file(write(tmp_path, YAML, "net.yaml"), "demo")
    first, both = net.states.values()
    assert isinstance(first, SubnetState)
    assert isinstance(both, ParallelState)
    assert [state.name for state in both.branches["a"].states] == ["ONLY"]
    assert first.net.name == "react"


@pytest.mark.anyio
async def test_nets_inside_may_begin_with_nothing(tmp_path: Path) -> None:
    text = """
states:
  FIRST: {type: subnet, net: react, fork: empty, goal: "One", on_done: BOTH}
  BOTH: {type: parallel, branches: {a: react}, fork: empty}
"""
    llm = ScriptedLLM(["1", "2"])
    await brain_from_file(write(tmp_path, text, "net.yaml"), llm=llm).run("Secret")
    asked = [[m.content for m in call.messages if m.role != "system"] for call in llm.calls]
    assert asked == [["One"], ["Secret"]]


def test_a_registered_net_with_options(tmp_path: Path) -> None:
    text = 'net = "react"\n[options]\nfallback = true\n'
    assert net_from_file(write(tmp_path, text), "demo").fallback is not None


MISTAKES: list[tuple[str, type[Exception], list[str]]] = [
    ("x = ", NetFileError, ["cannot be read"]),
    ("colour = 1\nname = 2", NetFileError, ["colour", "name"]),
    ("name = 'empty'", NetFileError, ["either net"]),
    ("net = 'react'\n[states.A]\ntype = 'answer'", NetFileError, ["either net"]),
    ("net = 'nope'", UnknownNetError, ["'nope'"]),
    ("net = 'react'\n[options]\nnope = 1", UnknownNetError, ["nope"]),
    ("[states.A]\ntype = 'os.system'", NetDefinitionError, ["'os.system' is not a kind"]),
    (
        "[states.A]\ntype = 'answer'\nask = 'maybe'\n[states.B]\ntype = 'action'",
        NetDefinitionError,
        ["states.A.ask", "states.B.on_done"],
    ),
    (
        "initial = 'X'\nfallback = 'Y'\n[states.A]\ntype = 'answer'\non_done = 'Z'",
        NetDefinitionError,
        ["'X'", "'Y'", "'Z'"],
    ),
    ("[states.A]\ntype = 'answer'\non_done = 'A'", NetDefinitionError, ["no_end"]),
    ("[limits]\nmax_steps = 0\n[states.A]\ntype='answer'", NetFileError, ["limits.max_steps"]),
]


@pytest.mark.parametrize(("text", "error", "words"), MISTAKES)
def test_all_mistakes_are_reported(
    tmp_path: Path, text: str, error: type[Exception], words: list[str]
) -> None:
    with pytest.raises(error) as caught:
        net_from_file(write(tmp_path, text), "demo")
    assert all(word in str(caught.value) for word in words)


def test_a_key_that_stands_twice_is_refused(tmp_path: Path) -> None:
    text = "name: a\nstates:\n  A: {type: answer}\n  A: {type: answer, ask: true}\n"
    with pytest.raises(NetFileError, match="the key 'A' stands twice in the mapping of line 3"):
        read_file(write(tmp_path, text, "net.yml"))


LIMITS = """
net = "react"
tools = ["calculate", "current_time"]
[limits]
max_tool_calls = 3
max_cost = 0.5
strict = true
"""


async def shipping(weight: float) -> str:
    """Return what shipping costs."""
    return f"{weight} euros"


def test_a_file_names_tools_and_all_limits(tmp_path: Path) -> None:
    brain = brain_from_file(write(tmp_path, LIMITS), tools=[shipping])
    assert [*brain.memory.available_tools] == ["calculate", "current_time", "shipping"]
    assert brain.limits == Limits(max_tool_calls=3, max_cost=0.5, strict=True)


def test_a_file_may_name_the_limits_that_code_may(tmp_path: Path) -> None:
    fields = {field.name for field in dataclasses.fields(Limits)}
    assert set(LimitsSpec.model_fields) == fields


def test_a_registered_tool_is_found_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, "net = 'react'\ntools = ['parcel_price']")
    with pytest.raises(ToolDefinitionError, match="no tool named 'parcel_price'"):
        brain_from_file(path)

    @tool
    def parcel_price(weight: float) -> str:
        """Return the price of a parcel."""
        return ""

    register_tool(parcel_price)
    register_tool(parcel_price)  # again
    assert "parcel_price" in tool_names()
    assert [*brain_from_file(path).memory.available_tools.values()] == [parcel_price]
    with pytest.raises(ToolDefinitionError, match="'calculate' is already registered"):
        register_tool(tool(name="calculate")(shipping))


@pytest.mark.parametrize("text", ["- a\n- b", "a: [", "!!python/object/apply:os.getcwd []"])
def test_yaml_is_read_as_plain_data(tmp_path: Path, text: str) -> None:
    with pytest.raises(NetFileError, match="cannot be read"):
        read_file(write(tmp_path, text, "net.yml"))


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NetFileError, match=r"not a \.toml"):
        read_file(write(tmp_path, "{}", "net.json"))
    with pytest.raises(NetFileError, match=r"none\.toml"):
        read_file(tmp_path / "none.toml")


class Shout(Options):
    """Options of a state of the test."""

    word: str


def build(options: Any, context: BuildContext) -> State:
    async def shout(memory: object) -> str:
        return str(options.word).upper()

    return FunctionState(shout)


@pytest.mark.anyio
async def test_custom_states_are_registered_by_name(tmp_path: Path) -> None:
    if "shout" not in state_kinds():
        register_state("shout", Shout, build)
    brain = brain_from_file(write(tmp_path, "[states.A]\ntype = 'Shout'\nword = 'hey'"))
    assert (await brain.run("go")).answer == "HEY"
    with pytest.raises(UnknownNetError, match="already registered"):
        register_state("SHOUT", Shout, build)


PAGE = (Path(__file__).parents[2] / "docs" / "net-files.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```(toml|yaml)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("kind", "text"), SHOWN)
def test_the_files_of_the_page_are_right(tmp_path: Path, kind: str, text: str) -> None:
    brain_from_file(write(tmp_path, text, f"net.{kind}"), llm=ScriptedLLM())


@pytest.mark.parametrize("name", ["reasoning", "action", "answer", "subnet", "parallel"])
def test_the_page_lists_the_options_of_each_state(name: str) -> None:
    [row] = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}` |")]
    options, _ = state_kinds()[name]
    assert set(re.findall(r"`(\w+)`", row.split("|")[3])) == set(options.model_fields)
