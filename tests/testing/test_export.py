"""Runs that become tests."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agent_brain import Brain, Message, Net, ToolError, react, tool
from agent_brain.nets import ParallelState, SubnetState
from agent_brain.states import LLMServerError, Thought, Usage
from agent_brain.testing import ExportError, NetRun, ScriptedLLM, export_test, run_net
from agent_brain.tools import Action
from tests.brain.nets import Fail, Say, single

pytestmark = pytest.mark.anyio


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    if city == "Atlantis":
        raise ToolError(f"There is no {city}")
    if city == "Moon":
        raise ZeroDivisionError("no air")
    return f"Rain in {city}"


class Answer(BaseModel):
    city: str


def make_typed_net(llm: Any) -> Net:
    """A net that is not registered; exported tests import it from here."""
    return react(llm, output_type=Answer)


def make_net_with_fallback(llm: Any) -> Net:
    return react(llm, fallback=True)


def make_failing_net(llm: Any) -> Net:
    return single(Fail())


def ask(city: str, **fields: Any) -> Action:
    return Action(name="weather", args={"city": city}, **fields)


async def run(
    *turns: Any, net: Callable[..., Net] = react, native: bool = True, **limits: Any
) -> NetRun:
    llm = ScriptedLLM(turns, native=native)
    return await run_net(net(llm), "The weather?", tools=[weather], check=False, **limits)


async def passes(text: str) -> None:
    """Run the test that was written; its scenario is awaited on the loop that runs here."""
    scenarios: list[Any] = []
    code = text.replace("anyio.run(scenario)", "scenarios.append(scenario)")
    names: dict[str, Any] = {"scenarios": scenarios}
    exec(compile(code, "exported", "exec"), names)
    next(value for name, value in names.items() if name.startswith("test_"))()
    await scenarios[0]()


METERED = Usage(5, 3, 0.001, model="m")
HERE = f"{__name__}:"
RUNS: dict[str, tuple[dict[str, Any], str | None]] = {
    "answer at once": ({"turns": ["It ", "rains."]}, None),
    "tools, one after the other": ({"turns": [[ask("Rome")], [ask("Oslo")], "Rain."]}, None),
    "tools at once": ({"turns": [["Hm. ", ask("Rome"), ask("Oslo")], "Rain."]}, None),
    "tools that fail": ({"turns": [[ask("Atlantis"), ask("Moon")], "No idea."]}, None),
    "a tool that is unknown": ({"turns": [[Action(name="wether")], "Oh."]}, None),
    "bad arguments": ({"turns": [[Action(name="weather", args={"town": 1})], "Oh."]}, None),
    "unreadable arguments": ({"turns": [[Action(name="weather", unparsed="{")], "Oh."]}, None),
    "thoughts and usage": (
        {"turns": [[Thought("hm"), "So. ", ask("Rome"), METERED], ["Rain.", METERED]]},
        None,
    ),
    "an empty answer first": ({"turns": [[METERED], ["Rain.", METERED]]}, None),
    "text mode": (
        {
            "turns": ['I look. {"name": "weather", "args": {"city": "Rome"}}', "I know.", "Rain."],
            "native": False,
        },
        None,
    ),
    "text mode, no tools": ({"turns": ["I know.", "Rain."], "native": False}, None),
    "a model that fails": (
        {"turns": [[ask("Rome")], ["So ", LLMServerError("busy", model="m")]]},
        None,
    ),
    "a metered model that fails": (
        {"turns": [[ask("Rome"), METERED], LLMServerError("busy", provider="p")]},
        None,
    ),
    "a model that fails at once": ({"turns": [LLMServerError("busy")]}, None),
    "malformed output": ({"turns": [[METERED], [METERED]]}, None),
    "typed output": (
        {"turns": [["oh", METERED], ['{"city": ', '"Rome"}', METERED]], "net": make_typed_net},
        f"{HERE}make_typed_net",
    ),
    "a state with a bug": ({"turns": [], "net": make_failing_net}, f"{HERE}make_failing_net"),
    "too many steps": ({"turns": [[ask("Rome")], [ask("Oslo")]], "max_steps": 4}, None),
    "too many steps, and a fallback": (
        {
            "turns": [
                [ask("Rome"), METERED],
                [ask("Oslo"), METERED],
                ["As far as I know.", METERED],
            ],
            "net": make_net_with_fallback,
            "max_steps": 4,
        },
        f"{HERE}make_net_with_fallback",
    ),
    "too many tokens, and a fallback": (
        {
            "turns": [[ask("Rome"), METERED], ["As far as I know.", METERED]],
            "net": make_net_with_fallback,
            "max_tokens": 8,
        },
        f"{HERE}make_net_with_fallback",
    ),
    "too many tokens": (
        {"turns": [[ask("Rome"), METERED], [ask("Oslo"), METERED]], "max_tokens": 16},
        None,
    ),
    "too much money": ({"turns": [[ask("Rome"), METERED]], "max_cost": 0.0005}, None),
    "stuck": ({"turns": [[ask("Rome")]] * 9}, None),
}


@pytest.mark.parametrize("name", RUNS)
async def test_a_run_becomes_a_test_that_passes(name: str, tmp_path: Path) -> None:
    options, net = dict(RUNS[name][0]), RUNS[name][1]
    events = (await run(*options.pop("turns"), **options)).events
    path = export_test(events, tmp_path / "test_it.py", net=net)
    await passes(path.read_text())


async def test_what_is_written_reads_like_a_test(tmp_path: Path) -> None:
    done = await run(
        [Thought("hm"), "So. ", ask("Rome", id="call_1"), METERED], ["Rain", ".", METERED]
    )
    text = export_test(done.events, tmp_path / "test_weather.py").read_text()
    assert "def test_weather() -> None:" in text
    assert "Action(name='weather', id='call_1', args={'city': 'Rome'})," in text
    assert "'Rain in Rome'," in text
    assert "assert run.path == ['REASONING', 'ACTION', 'REASONING', 'ANSWER']" in text
    assert "assert run.result.answer == 'Rain.'" in text


@pytest.mark.parametrize(
    "change",
    [
        ("'Rain.'", "'Sun.'"),
        ("{'city': 'Rome'},", "{'city': 'Oslo'},"),
        ("'ACTION', ", ""),
        ("== 'done'", "== 'stuck'"),
    ],
)
async def test_the_test_fails_when_something_else_happens(change: Any, tmp_path: Path) -> None:
    events = (await run([ask("Rome")], "Rain.")).events
    text = export_test(events, tmp_path / "test_it.py").read_text()
    head, end = text.split("assert run.path")
    assert change[0] in "assert run.path" + end
    with pytest.raises(AssertionError):
        await passes(head + ("assert run.path" + end).replace(*change))


async def test_events_may_be_json_data(tmp_path: Path) -> None:
    done = await run([ask("Rome")], LLMServerError("busy", provider="p", model="m"))
    data = [json.loads(event.to_json()) for event in done.events]
    await passes(export_test(data, tmp_path / "test_it.py").read_text())


async def test_a_long_goal_and_a_message_as_goal_are_kept(tmp_path: Path) -> None:
    for goal in ("long words " * 30 + "\nand 'quotes' \"too\"", Message.user("Hi", name="Ann")):
        done = await run_net(react(ScriptedLLM(["x"])), goal)
        await passes(export_test(done.events, tmp_path / "test_it.py").read_text())


async def test_a_net_inside_a_net_is_scripted_too(tmp_path: Path) -> None:
    done = await run([ask("Rome")], "Rain.", net=make_nested_net)
    path = export_test(done.events, tmp_path / "test_it.py", net=f"{HERE}make_nested_net")
    await passes(path.read_text())


def make_nested_net(llm: Any) -> Net:
    return single(SubnetState(react(llm)))


async def test_secrets_are_left_out(tmp_path: Path) -> None:
    done = await run([ask("Rome"), "sk-abcdefgh12345678"], "the number 1234-5678")
    text = export_test(done.events, tmp_path / "test_it.py", scrub=[r"\d{4}-\d{4}"]).read_text()
    assert "abcdefgh" not in text
    assert "1234-5678" not in text


async def test_a_net_that_is_not_registered_must_be_named(tmp_path: Path) -> None:
    done = await run("x", net=lambda llm: single(Say("x"), name="mine"))
    with pytest.raises(ExportError, match="'mine' is not registered"):
        export_test(done.events, tmp_path / "test_it.py")


async def test_concurrent_branches_are_refused(tmp_path: Path) -> None:
    net = single(ParallelState({"a": single(Say("x")), "b": single(Say("y"))}))
    done = await run_net(net, "go")
    with pytest.raises(ExportError, match="Branches ran concurrently"):
        export_test(done.events, tmp_path / "test_it.py")


async def test_events_of_half_a_run_are_refused(tmp_path: Path) -> None:
    events = (await run("x")).events
    path = tmp_path / "test_it.py"
    for part, said in (([], "begin"), (events[1:], "begin"), (events[:-1], "last one is missing")):
        with pytest.raises(ExportError, match=said):
            export_test(part, path)
    with pytest.raises(ExportError, match="not a Python file"):
        export_test(events, tmp_path / "it.txt")
    assert list(tmp_path.iterdir()) == []


async def test_a_resumed_or_interrupted_run_is_refused(tmp_path: Path) -> None:
    brain = Brain(react(ScriptedLLM([LLMServerError("busy"), "x"])))
    with pytest.raises(LLMServerError):
        await brain.run("go")
    async with brain.stream_resume() as resumed:
        events = [event async for event in resumed]
    with pytest.raises(ExportError, match="resumed an earlier one"):
        export_test(events, tmp_path / "test_it.py")
    late = [*(await run("x")).events]
    cut: list[Any] = [*late[:-1], {**late[-1].to_dict(), "stop_reason": "timeout"}]
    with pytest.raises(ExportError, match="ended by timeout"):
        export_test(cut, tmp_path / "test_it.py")


async def test_the_finish_reason_can_be_scripted(tmp_path: Path) -> None:
    at = {"run_id": "r", "step": 0, "state": "REASONING", "path": []}
    usage = {"input_tokens": 1, "output_tokens": 2, "requests": 1}
    goal = Message.user("Tell me all").model_dump(mode="json")
    events = [
        {"kind": "run_started", **at, "goal": goal, "net": "react", "resumed": False},
        {"kind": "state_entered", **at},
        {"kind": "response_started", **at, "response_id": "resp_1", "model": "scripted"},
        {"kind": "text_delta", **at, "response_id": "resp_1", "text": "All that"},
        {
            "kind": "usage_reported",
            **at,
            "response_id": "resp_1",
            "usage": usage,
            "finish_reason": "length",
        },
        {"kind": "state_exited", **at, "next": None},
        {"kind": "run_finished", **at, "stop_reason": "done", "answer": "All that"},
    ]
    text = export_test(events, tmp_path / "test_cut.py").read_text()
    assert "Finish('length')" in text
    assert "from agent_brain.states import Finish, Usage" in text
