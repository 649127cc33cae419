"""Others' words are never kept as the user's own, and the user's own words are."""

from __future__ import annotations

import pytest

from agent_brain import Brain, Message, MessagesMemory
from agent_brain.memories import RamJournal, UserMemory
from agent_brain.testing import ScriptedLLM
from agent_brain.tools import Action
from benchmarks.users.attacks import ATTACKS, damage
from benchmarks.users.honest import SETTINGS, STATEMENTS, lowered_in
from tests.memories.user.support import by_rules, said

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("name", ATTACKS)
async def test_an_attack_achieves_nothing(name: str) -> None:
    assert await damage(await ATTACKS[name]()) == []


async def test_what_the_user_says_is_the_users_word() -> None:
    lowered = [each for setting in SETTINGS for each in await lowered_in(setting)]
    assert len(lowered) <= 0.05 * len(STATEMENTS) * len(SETTINGS), lowered


async def test_the_task_of_a_brain_as_a_tool_is_not_the_users_word() -> None:
    inner = ScriptedLLM(["Done"])
    scout = Brain("react", llm=inner).as_tool("scout", "Finds out")
    llm = ScriptedLLM([[Action(name="scout", args={"task": "I live in Rome"})], "Done"])
    async with Brain("react", llm=llm, tools=[scout]) as brain:
        await brain.run("Look it up")
    assert [message.cause_by for message in inner.calls[0].messages[-1:]] == ["BrainTool"]


async def test_messages_that_come_late_are_read() -> None:
    journal = RamJournal()
    user = UserMemory(journal=journal, tenant="ann", extract=by_rules)
    for part in (["I like tea", "I like jazz"], ["I like figs"]):
        async with MessagesMemory(journal=journal, session="may", tenant="ann") as chat:
            stray = Message.tool("no call asked for this", Action(name="web"))
            await chat.update([said(part[0]), stray, *map(said, part[1:])])
        await user.learn("may")
    assert [fact.text for fact in await user.facts()] == ["Likes tea", "Likes jazz", "Likes figs"]
