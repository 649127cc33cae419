"""No text of a tool brings a credential to the model, the journal, the events or an export."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agent_brain import Brain, MessagesMemory, react, tool
from agent_brain.common.secrets import HIDDEN
from agent_brain.errors import Refused
from agent_brain.states import Hook, ToolRequest, ToolResponse
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action, ToolError, report_progress

pytestmark = [pytest.mark.anyio, pytest.mark.parametrize("anyio_backend", ["asyncio"])]
PASSWORD = "hunter2pass"
URL = f"postgres://ann:{PASSWORD}@db.internal/prod"


@tool
def raises() -> str:
    """Raise."""
    raise ConnectionError(f"no route to {URL}")


@tool
def refuses() -> str:
    """Refuse."""
    raise ToolError(f"no route to {URL}")


@tool
def leaves() -> str:
    """Leave."""
    raise SystemExit(f"no route to {URL}")


@tool
def raises_group() -> str:
    """Raise several."""
    raise ExceptionGroup("all", [ConnectionError(f"no route to {URL}")])


@tool(max_result_tokens=40)
def long_error() -> str:
    """Raise a long text."""
    raise ConnectionError("x" * 1_000 + f" {URL} " + "y" * 1_000)


@tool
def works() -> str:
    """Work."""
    return "fine"


class RefusesBefore(Hook):
    async def before_tool_call(self, request: ToolRequest) -> None:
        raise Refused(f"not with {URL}")


class RefusesAfter(Hook):
    async def after_tool_call(self, request: ToolRequest, response: ToolResponse) -> None:
        raise Refused(f"not with {URL}")


class AnswersInstead(Hook):
    async def before_tool_call(self, request: ToolRequest) -> ToolResponse:
        return ToolResponse(f"no route to {URL}", is_error=True)


class ReplacesError(Hook):
    async def on_tool_error(self, request: ToolRequest, error: Exception) -> ToolResponse:
        return ToolResponse(f"it said: {error}", is_error=True)


def failing_expert() -> Any:
    def fails(_: Any) -> str:
        raise ConnectionError(f"no route to {URL}")

    return Brain(react(ScriptedLLM([fails])), MessagesMemory()).as_tool("expert", "Help.")


CASES: dict[str, tuple[Any, list[Hook]]] = {
    "an exception": (raises, []),
    "an error that the tool reports": (refuses, []),
    "an exit": (leaves, []),
    "several exceptions": (raises_group, []),
    "a long error": (long_error, []),
    "a hook before the call": (works, [RefusesBefore()]),
    "a hook after the call": (works, [RefusesAfter()]),
    "a hook that answers instead": (works, [AnswersInstead()]),
    "a hook that replaces an error": (raises, [ReplacesError()]),
}


@pytest.mark.parametrize("case", [*CASES, "a nested brain"])
async def test_an_error_of_a_tool_shows_no_password(case: str, tmp_path: Path) -> None:
    called, hooks = (failing_expert(), []) if case == "a nested brain" else CASES[case]
    args: dict[str, Any] = {"task": "help"} if case == "a nested brain" else {}
    llm = ScriptedLLM([Action(name=called.name, args=args), "Done."])
    async with MessagesMemory(journal=tmp_path / "journal.db") as memory:
        brain = Brain(react(llm), memory, [called], hooks=hooks, trace=True)
        events = []
        async with brain.stream("go") as run:
            async for event in run:
                events.append(event.to_dict())
        exported = await memory.export()
    (result,) = [m for m in llm.calls[-1].messages if m.role == "tool"]
    assert HIDDEN in result.content or case in ("a long error", "several exceptions")
    for shown in (result.content, json.dumps(exported), json.dumps(events)):
        assert PASSWORD not in shown
    assert PASSWORD.encode() not in b"".join(f.read_bytes() for f in tmp_path.iterdir())


async def test_a_key_that_changes_later_is_hidden_in_results(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = ["first-value-of-it", "later-value-of-it"]

    @tool
    def show(number: int) -> str:
        """Show."""
        monkeypatch.setenv("SOME_API_KEY", values[number])
        report_progress(1, message=f"with {values[number]}")
        return f"the key is {values[number]}, it was {values[0]}"

    calls = [Action(name="show", args={"number": number}) for number in (0, 1)]
    llm = ScriptedLLM([*calls, "Done."])
    seen = []
    async with Brain(react(llm), tools=[show]).stream("go") as run:
        async for event in run:
            seen.append(json.dumps(event.to_dict()))
    told = [m.content for m in llm.calls[-1].messages if m.role == "tool"]
    assert told == [f"the key is {HIDDEN}, it was {HIDDEN}"] * 2
    assert any(f"with {HIDDEN}" in event for event in seen)
    assert not any(value in event for value in values for event in seen)
