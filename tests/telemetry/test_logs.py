"""Which run each record belongs to, and what is logged of runs."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from enum import Enum
from typing import Any

import anyio
import pytest

from agent_brain import Brain, MessagesMemory, Net, State, react, tool
from agent_brain.errors import BrainDefinitionError, ToolError
from agent_brain.nets import SubnetState
from agent_brain.telemetry import LogRuns, RunFilter
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio

mine = logging.getLogger("tests.mine")


class Step(Enum):
    OUTER = "outer"
    INNER = "inner"


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.addFilter(RunFilter())
        self.records: list[Any] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def of(self, name: str) -> list[Any]:
        return [record for record in self.records if record.name == name]


@pytest.fixture
def records() -> Iterator[Records]:
    handler = Records()
    loggers = [mine, logging.getLogger("agent_brain")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel(logging.DEBUG)
    yield handler
    for logger, level in zip(loggers, levels, strict=True):
        logger.removeHandler(handler)
        logger.setLevel(level)


class Talk(State):
    async def run(self, memory: Any) -> AsyncIterator[str]:
        mine.info("in the state")
        yield "Hello"
        mine.info("in the state")

    async def next_state(self, memory: Any) -> None:
        mine.info("in the state")


@tool
async def look(at: str) -> str:
    """Look."""
    mine.info("looks")
    await anyio.lowlevel.checkpoint()
    mine.info("looks")
    return at


@tool
def look_in_a_thread() -> str:
    """Look."""
    mine.info("looks")
    return "x"


@tool
async def fail() -> str:
    """Fail."""
    raise ToolError("the secret")


async def test_records_of_a_state_have_its_run_session_and_place(records: Records) -> None:
    net = {Step.OUTER: SubnetState(Net({Step.INNER: Talk()}))}
    memory = MessagesMemory(session="alice", tenant="acme")
    async with Brain(net, memory, hooks=[LogRuns()]).stream("Go") as run:
        async for _ in run:
            mine.warning("consumer")
    inside = [r for r in records.of("tests.mine") if r.levelno == logging.INFO]
    assert [(r.state, r.path) for r in inside] == [("INNER", ("OUTER",))] * 3
    assert {(r.run_id, r.session, r.tenant, r.step) for r in inside} == {
        (run.run_id, "alice", "acme", inside[0].step)
    }
    outside = [r for r in records.of("tests.mine") if r.levelno == logging.WARNING]
    assert {(r.run_id, r.state, r.session) for r in outside} == {(None, None, None)}


async def test_records_of_tools_at_once_have_their_run(records: Records) -> None:
    hook = LogRuns()

    async def one(name: str) -> None:
        calls = [Action(name="look", args={"at": "a"}), Action(name="look_in_a_thread")]
        memory = MessagesMemory([look, look_in_a_thread], session=name)
        await Brain(react(ScriptedLLM([calls, "x"])), memory, hooks=[hook]).run("Go")

    async with anyio.create_task_group() as group:
        for name in ("a", "b"):
            group.start_soon(one, name)
    found = records.of("tests.mine")
    assert len(found) == 6
    assert {record.state for record in found} == {"ACTION"}
    known = {(record.session, record.run_id) for record in found}
    assert {session for session, _ in known} == {"a", "b"}
    assert len(known) == 2


async def test_a_run_is_logged_without_what_is_said(records: Records) -> None:
    calls = [Action(name="fail", id="call_1"), Action(name="look", args={"at": "secret"}, id="c2")]
    brain = Brain(
        "react", tools=[fail, look], llm=ScriptedLLM([calls, "secret"]), hooks=[LogRuns()]
    )
    result = await brain.run("the secret")
    said = [(r.levelname, r.getMessage()) for r in records.of("agent_brain.runs")]
    assert said[0] == ("INFO", "Run of 'react' begins")
    assert said[-1] == ("INFO", f"Run of 'react' ended: done, {result.steps} steps, 0 tokens")
    assert ("WARNING", "Tool 'fail' failed, call_1: ToolError") in said
    assert ("DEBUG", "Tool 'look' returned, c2") in said
    assert ("DEBUG", "State 'ACTION' ended, next: REASONING") in said
    assert not any("secret" in text for _, text in said)
    assert {r.run_id for r in records.of("agent_brain.runs")} == {result.run_id}
    assert {r.funcName for r in records.of("agent_brain.runs")} >= {"before_run", "after_state"}


async def test_a_run_that_fails_is_logged_with_the_class_of_the_error(records: Records) -> None:
    llm = ScriptedLLM([ValueError("the secret")])
    with pytest.raises(ValueError, match="secret"):
        await Brain(react(llm), hooks=[LogRuns()]).run("Go")
    said = [r.getMessage() for r in records.of("agent_brain.runs") if r.levelname == "WARNING"]
    assert said == [
        "Call of scripted failed: ValueError",
        "State 'REASONING' failed: ValueError",
        "Run of 'react' failed: ValueError",
    ]


async def test_a_run_that_is_left_and_resumed_is_logged(records: Records) -> None:
    llm = ScriptedLLM([["One ", "two."], "Three."])
    brain = Brain(react(llm), hooks=[LogRuns()])
    async with brain.stream("Count") as run:
        async for event in run:
            if event.kind == "text_delta":
                break
    said = [r.getMessage() for r in records.of("agent_brain.runs")]
    assert said[-2] == "State 'REASONING' was left"
    assert said[-1].startswith("Run of 'react' ended: cancelled")
    records.records.clear()
    await brain.resume()
    assert records.of("agent_brain.runs")[0].getMessage() == "Run of 'react' continues"


async def test_records_of_the_library_have_the_run(records: Records) -> None:
    class Broken(MessagesMemory):
        async def update(self, messages: Any) -> None:
            logging.getLogger("agent_brain.memories.broken").warning("trouble")
            await super().update(messages)

    llm = ScriptedLLM([[Action(name="look", args={"at": "x"})], "x"])
    brain = Brain(react(llm), Broken([look], session="s"), hooks=[LogRuns()])
    result = await brain.run("Go")
    found = records.of("agent_brain.memories.broken")
    assert {(r.run_id, r.session) for r in found} == {(result.run_id, "s")}
    assert {r.state for r in found} >= {"REASONING", "ACTION"}


def test_a_record_keeps_what_it_has() -> None:
    record = logging.makeLogRecord({"run_id": "mine"})
    assert RunFilter().filter(record)
    assert (record.run_id, record.session) == ("mine", None)  # type: ignore[attr-defined]


async def test_another_logger_may_take_the_records(records: Records) -> None:
    await Brain(react(ScriptedLLM(["Hi."])), hooks=[LogRuns(mine)]).run("Go")
    assert records.of("tests.mine")
    assert not records.of("agent_brain.runs")


def test_something_else_than_a_logger_is_refused() -> None:
    with pytest.raises(BrainDefinitionError, match="pass a logger"):
        LogRuns("agent")  # type: ignore[arg-type]
