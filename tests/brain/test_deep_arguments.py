"""A model's call whose arguments are nested too deeply to be stored."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Brain, MessagesMemory, tool
from agent_brain.memories import RamJournal
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action

pytestmark = pytest.mark.anyio


@tool
def look(query: dict[str, Any]) -> str:
    """Look."""
    return "seen"


def nested(levels: int) -> dict[str, Any]:
    data: Any = {}
    for number in range(levels):
        data = {"a": [data] if number % 2 else data}
    return dict(data)


@pytest.mark.parametrize("trace", [False, True])
@pytest.mark.parametrize("journal", [False, True])
@pytest.mark.parametrize("levels", [50, 130])
async def test_the_model_is_told_and_later_turns_work(
    levels: int, journal: bool, trace: bool
) -> None:
    kept: dict[str, Any] = {"journal": RamJournal(), "session": "s"} if journal else {}
    call = Action(name="look", args={"query": nested(levels)})
    llm = ScriptedLLM([call, "Done.", "Again."])
    brain = Brain("react", MessagesMemory(**kept), tools=[look], llm=llm, trace=trace)
    result = await brain.run("go")
    assert (result.answer, result.stop_reason) == ("Done.", "done")
    [told] = [message for message in result.messages if message.role == "tool"]
    deep = levels > 50
    assert told.is_error is deep
    assert ("nested more than 100 deep, so it was not run" in told.content) is deep
    assert (await brain.run("next")).answer == "Again."
    if trace:
        assert (await brain.replay()).difference is None
