"""What the model reads about calls that were left without a result."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agent_brain import Brain, Limits, MessagesMemory, react, tool
from agent_brain.memories import RamJournal, Role
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from tests.support.journals import Killed, MortalJournal

pytestmark = pytest.mark.anyio


class Bank:
    """Pays, and is killed while it does so if it is asked to."""

    def __init__(self, journal: MortalJournal) -> None:
        self.paid: list[str] = []

        @tool
        async def pay(to: str) -> str:
            """Pay."""
            self.paid.append(to)
            if to == "killer":
                journal.die()
                raise Killed
            return f"paid {to}"

        self.pay = pay


def pays(*names: str) -> list[Any]:
    return [Action(name="pay", args={"to": name}, id=name) for name in names]


async def results(memory: Any) -> dict[str | None, str]:
    return {m.tool_call_id: m.content for m in await memory.dump() if m.role is Role.TOOL}


async def killed_at_work(*names: str, max_concurrency: int | None = None) -> tuple[Any, Bank]:
    """A journal whose process died while ``"killer"`` was paid."""
    store = RamJournal()
    journal = MortalJournal(store)
    bank = Bank(journal)
    net = react(ScriptedLLM([pays(*names)]), max_concurrency=max_concurrency)
    with pytest.raises(Killed):
        await Brain(net, MessagesMemory([bank.pay], journal=journal)).run("go")
    return store, bank


async def test_a_new_goal_does_not_say_of_a_call_that_had_begun_that_it_was_not_run() -> None:
    store, bank = await killed_at_work("ann", "killer", "bob", max_concurrency=1)
    memory = MessagesMemory([bank.pay], journal=store)
    await Brain(react(ScriptedLLM(["ok"])), memory).run("Something else.")
    said = await results(memory)
    assert said["ann"] == "paid ann"
    assert "may or may not have taken effect" in said["killer"]
    assert said["bob"] == "The call was not run: a new goal was set first"
    assert bank.paid == ["ann", "killer"]


async def test_nor_does_a_limit_that_is_reached_on_resume() -> None:
    store, bank = await killed_at_work("ann", "killer", "bob", max_concurrency=1)
    memory = MessagesMemory([bank.pay], journal=store)
    limits = Limits(max_steps=1)
    result = await Brain(react(ScriptedLLM()), memory, limits=limits).resume()
    assert result.stop_reason == "max_steps"
    said = await results(memory)
    assert said["ann"] == "paid ann"
    assert "may or may not have taken effect" in said["killer"]
    assert said["bob"] == "The call was not run: the limit of steps was reached"


async def test_a_resumed_round_runs_what_had_not_begun_and_nothing_twice() -> None:
    store, bank = await killed_at_work("ann", "killer", "bob", max_concurrency=1)
    memory = MessagesMemory([bank.pay], journal=store)
    await Brain(react(ScriptedLLM(["ok"]), max_concurrency=1), memory).resume()
    said = await results(memory)
    assert said["ann"] == "paid ann"
    assert "may or may not have taken effect" in said["killer"]
    assert said["bob"] == "paid bob"
    assert bank.paid == ["ann", "killer", "bob"]


@pytest.mark.parametrize("workers", [1, 2, 3, None])
async def test_a_cancelled_round_distinguishes_calls_that_began(
    workers: int | None,
) -> None:
    running = anyio.Event()

    @tool
    async def wait(n: int) -> str:
        """Wait."""
        if n == 1:
            running.set()
            await anyio.sleep_forever()
        return f"waited {n}"

    calls = [Action(name="wait", args={"n": n}, id=str(n)) for n in range(4)]
    brain = Brain(react(ScriptedLLM([calls]), max_concurrency=workers), tools=[wait])
    async with anyio.create_task_group() as group:
        group.start_soon(brain.run, "go")
        await running.wait()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
        group.cancel_scope.cancel()
    said = await results(brain.memory)
    assert list(said) == ["0", "1", "2", "3"]
    assert said["0"] == "waited 0"
    assert "interrupted while it was running" in said["1"]
    if workers == 1:
        assert said["2"] == said["3"] == "The call was not run: the run was cut short"
    else:
        assert (said["2"], said["3"]) == ("waited 2", "waited 3")


async def test_calls_of_a_run_that_forgetting_has_ended_get_results() -> None:
    store, bank = await killed_at_work("ann", "killer", "bob", max_concurrency=1)
    memory = MessagesMemory([bank.pay], journal=store)
    await memory.open()
    memory.control.scratch["note"] = "a secret"
    await memory.forget(text="secret")
    await Brain(react(ScriptedLLM(["ok"])), memory).run("Something else.")
    said = await results(memory)
    assert [*said] == ["ann", "killer", "bob"]
    assert all("may or may not have taken effect" in text for text in said.values())
    assert bank.paid == ["ann", "killer"]


async def test_a_call_that_is_kept_when_all_is_cleared_gets_a_result() -> None:
    store, bank = await killed_at_work("ann", "killer")
    memory = MessagesMemory([bank.pay], journal=store)
    await memory.clear(keep=lambda message: bool(message.tool_calls))
    await Brain(react(ScriptedLLM(["ok"])), memory).run("Something else.")
    assert [*await results(memory)] == ["ann", "killer"]
