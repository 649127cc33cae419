"""Calls that may have taken effect before a crash: the model is told, or a person is asked."""

from __future__ import annotations

from typing import Any

import pytest

from agent_brain import Brain, tool
from agent_brain.errors import BrainDefinitionError
from agent_brain.hooks import ToolGuard
from agent_brain.memories import MessagesMemory, RamJournal, TodoMemory, WindowedMemory
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio

CALL = Action(name="pay", args={"amount": 5}, id="pay-1")
LOOK = Action(name="look", args={}, id="look-1")
IN_DOUBT = "may or may not have taken effect"


class Shop:
    """Pays, and dies when it has."""

    def __init__(self, *, approval: bool = False) -> None:
        self.store = RamJournal()
        self.paid: list[int] = []
        self.journal: MortalJournal | None = None
        self.dies = True

        @tool(requires_approval=approval)
        async def pay(amount: int) -> str:
            """Pay."""
            self.paid.append(amount)
            if self.dies and self.journal is not None:
                self.journal.die()
                raise Killed
            return "paid"

        @tool(idempotent=True)
        async def look() -> str:
            """Look."""
            return "seen"

        self.tools = [pay, look]

    def brain(self, make: Any = MessagesMemory, turns: Any = ("ok",), **options: Any) -> Brain:
        self.journal = MortalJournal(self.store)
        memory = make(journal=self.journal)
        return Brain("react", memory, self.tools, llm=ScriptedLLM([*turns]), **options)

    async def crash(self, make: Any = MessagesMemory, **options: Any) -> None:
        brain = self.brain(make, [[CALL, LOOK], "ok"], **options)
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - alone or in a group
            await brain.run("go")
        assert caught.group_contains(Killed) if hasattr(caught.value, "exceptions") else True
        self.dies = False


def windowed(**options: Any) -> Any:
    return WindowedMemory(max_messages=6, **options)


def todo(**options: Any) -> Any:
    return TodoMemory(MessagesMemory(**options))


async def results(brain: Brain) -> list[str]:
    return [m.content for m in await brain.memory.dump() if m.role == "tool"]


async def test_the_model_is_told_by_default() -> None:
    shop = Shop()
    await shop.crash()
    brain = shop.brain()
    assert (await brain.resume()).answer == "ok"
    assert IN_DOUBT in (await results(brain))[0]
    assert shop.paid == [5]


@pytest.mark.parametrize("make", [MessagesMemory, windowed, todo])
async def test_a_person_lets_it_run_again(make: Any) -> None:
    shop = Shop()
    await shop.crash(make, on_uncertain="pause")
    brain = shop.brain(make, on_uncertain="pause")
    async with brain.stream_resume() as run:
        events = [event async for event in run]
    asked = next(event for event in events if event.kind == "approval_requested")
    assert [action.id for action in asked.actions] == [*asked.uncertain] == ["pay-1"]
    assert run.result.stop_reason == "approval"
    assert shop.paid == [5], "nothing runs before the person has decided"
    later = shop.brain(make, on_uncertain="pause")
    assert (await later.resume(approve=True)).answer == "ok"
    assert shop.paid == [5, 5]
    assert await results(later) == ["paid", "seen"]


async def test_it_runs_again_with_the_arguments_that_a_guard_has_made() -> None:
    def doubled(args: dict[str, Any]) -> dict[str, Any]:
        return {"amount": 2 * args["amount"]}

    shop, options = Shop(), {"on_uncertain": "pause", "hooks": [ToolGuard(change={"pay": doubled})]}
    await shop.crash(**options)
    result = await shop.brain(**options).resume()
    assert [action.args["amount"] for action in result.approvals] == [10]
    assert (await shop.brain(**options).resume(approve=True)).answer == "ok"
    assert shop.paid == [10, 10]


async def test_a_person_does_not_let_it_run_again() -> None:
    shop = Shop()
    await shop.crash(on_uncertain="pause")
    await shop.brain(on_uncertain="pause").resume()
    brain = shop.brain(on_uncertain="pause")
    assert (await brain.resume(deny={"pay-1": "the bank says that it was paid"})).answer == "ok"
    assert shop.paid == [5]
    told = (await results(brain))[0]
    assert IN_DOUBT in told
    assert "the bank says that it was paid" in told


async def test_approving_a_call_is_not_approving_to_repeat_it() -> None:
    shop = Shop(approval=True)
    brain = shop.brain(turns=[[CALL], "ok"], on_uncertain="pause")
    assert (await brain.run("go")).stop_reason == "approval"
    with pytest.raises(Killed):
        await shop.brain(on_uncertain="pause").resume(approve=True)
    shop.dies = False
    assert (await shop.brain(on_uncertain="pause").resume()).stop_reason == "approval"
    assert shop.paid == [5]
    assert (await shop.brain(on_uncertain="pause").resume(approve=True)).answer == "ok"
    assert shop.paid == [5, 5]


async def test_a_call_that_dies_twice_is_asked_about_twice() -> None:
    shop = Shop()
    await shop.crash(on_uncertain="pause")
    await shop.brain(on_uncertain="pause").resume()
    shop.dies = True
    with pytest.raises(Killed):
        await shop.brain(on_uncertain="pause").resume(approve=True)
    shop.dies = False
    assert shop.paid == [5, 5]
    assert (await shop.brain(on_uncertain="pause").resume()).stop_reason == "approval"
    assert shop.paid == [5, 5]


@pytest.mark.parametrize("wrong", ["ask", None, True])
def test_another_policy_is_refused(wrong: Any) -> None:
    with pytest.raises(BrainDefinitionError, match="on_uncertain="):
        Brain("react", on_uncertain=wrong)
