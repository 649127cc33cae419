"""Branches of a chat: the turn of a message taken another way, and what there is to choose from."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agent_brain import Brain
from agent_brain.errors import BrainUseError, SessionNotFoundError, StepNotFoundError
from agent_brain.memories import RamJournal, delete_session
from agent_brain.serving import Choice, Sessions
from tests.memories.user.support import by_rules
from tests.serving.models import EchoLLM
from tests.serving.test_forking import ask, resume, said

pytestmark = pytest.mark.anyio

ANN = {"user": "ann"}


@asynccontextmanager
async def asked(place: Any = None, **options: Any) -> AsyncIterator[tuple[Sessions, list[str]]]:
    """Yield sessions, in one of which Ann has asked twice, and the IDs of her messages."""
    place = RamJournal() if place is None else place
    async with Sessions(Brain(llm=EchoLLM()), journal=place, **options) as sessions:
        async with sessions.use("root", **ANN) as session:
            await ask(session, "One")
            await ask(session, "Two")
            messages = (await session.memory.snapshot()).messages
            goal = (await session.memory.goal())[0]
        yield sessions, [messages[0].id, goal.id]


async def branch(sessions: Sessions, session: str, message: str, text: str | None = None) -> str:
    """Make a branch, answer the message there, and return its ID."""
    made = await sessions.branch(session, message, text, **ANN)
    async with sessions.use(made.id, **ANN) as opened:
        await resume(opened)
    return made.id


async def goal_of(sessions: Sessions, session: str) -> str:
    async with sessions.use(session, **ANN) as opened:
        return (await opened.memory.goal())[0].id


async def choices(sessions: Sessions, session: str) -> Any:
    return (await sessions.chat(session, **ANN)).choices


async def test_an_edited_question_is_answered_in_a_branch_and_nothing_is_lost():
    async with asked() as (sessions, (first, _)):
        async with sessions.use("root", **ANN) as root:
            before = await said(root)
        edited = await branch(sessions, "root", first, "Uno")
        async with sessions.use(edited, **ANN) as session:
            assert (await session.memory.goal())[0].content == "Uno"
            assert await said(session) == ["Uno", "You said: Uno"]
        async with sessions.use("root", **ANN) as root:
            assert await said(root) == before
        listed = {info.id: info for info in await sessions.list(user="ann")}

    assert listed[edited].title == listed["root"].title == "One"
    assert (origin := listed[edited].origin) is not None
    assert origin.chat == "root"


async def test_branches_of_branches_are_ways_to_choose_from_at_the_message_where_they_part():
    async with asked() as (sessions, (first, second)):
        again = await branch(sessions, "root", second)
        edited = await branch(sessions, again, first, "Uno")  # of the message of "root"
        third = await branch(sessions, again, second, "Due")

        uno, due = await goal_of(sessions, edited), await goal_of(sessions, third)
        other = await branch(sessions, edited, uno)  # which edits nothing

        ways_of_first, ways_of_second = ["root", edited, other], ["root", again, third]
        assert await choices(sessions, "root") == {
            first: Choice(ways_of_first, 0),
            second: Choice(ways_of_second, 0),
        }
        assert await choices(sessions, third) == {
            first: Choice(ways_of_first, 0),
            due: Choice(ways_of_second, 2),
        }
        assert await choices(sessions, edited) == {uno: Choice(ways_of_first, 1)}
        assert await choices(sessions, other) == {uno: Choice(ways_of_first, 2)}
        made = ["root", again, edited, third, other]
        assert (await sessions.chat(again, **ANN)).sessions == made


async def test_an_edited_message_is_another_one_and_a_copied_one_is_not():
    async with asked(user={"extract": by_rules}) as (sessions, (first, second)):
        async with sessions.use("root", **ANN) as root:
            await ask(root, "I like tea")
            goal = (await root.memory.goal())[0].id
            await ask(root, "Three")
            three = (await root.memory.goal())[0].id
        edited = await branch(sessions, "root", goal, "I live in Porto")
        copied = await branch(sessions, "root", three)
        assert await goal_of(sessions, edited) not in (first, second, goal)
        assert await goal_of(sessions, copied) == three
        async with sessions.known(**ANN) as known:
            await known.learn("root")
            (tea,) = await known.facts()
        assert await sessions.forget_known(tea.id, **ANN) == 1
        for session in ("root", copied):
            async with sessions.use(session, **ANN) as opened:
                assert not [text for text in await said(opened) if "I like tea" in text]
        await sessions.forget_known(conversation="root", **ANN)
        async with sessions.use(edited, **ANN) as opened:
            assert "I live in Porto" in await said(opened)
        async with sessions.use(copied, **ANN) as opened:
            assert await said(opened) == ["You said: Three"]


async def test_a_deleted_branch_is_none_to_choose_and_the_others_stay():
    journal = RamJournal()
    async with asked(journal) as (sessions, (first, second)):
        again = await branch(sessions, "root", second)
        third = await branch(sessions, again, second)
        edited = await branch(sessions, third, first, "Uno")
        await sessions.delete("root", **ANN)
        assert await choices(sessions, third) == {
            first: Choice([third, edited], 0),
            second: Choice([again, third], 1),
        }
        for each in (again, third, edited):
            await sessions.delete(each, **ANN)
        assert await journal.sessions() == []


@pytest.mark.parametrize("by", ["server", "program"])
async def test_a_session_with_the_id_of_a_deleted_one_is_a_chat_of_its_own(by: str):
    journal = RamJournal()
    async with asked(journal) as (sessions, (first, second)):
        one = await branch(sessions, "root", second)
        two = await branch(sessions, one, first, "Uno")
        if by == "server":
            await sessions.delete("root", **ANN)
        else:
            await delete_session(journal, "root", tenant="ann")
        async with sessions.use("root", **ANN) as session:
            await ask(session, "New")
        own = await branch(sessions, "root", await goal_of(sessions, "root"))
        three = await branch(sessions, one, second)

        assert (await sessions.chat("root", **ANN)).sessions == ["root", own]
        assert (await sessions.chat(two, **ANN)).sessions == [one, two, three]
        assert (await choices(sessions, two))[await goal_of(sessions, two)].at == 1
        chats = {
            info.id: info.origin.chat for info in await sessions.list(user="ann") if info.origin
        }
        assert chats == {own: "root", one: one, two: one, three: one}
        for each in (one, two, three, "root", own):
            await sessions.delete(each, **ANN)
        assert await journal.sessions() == []


async def test_the_way_of_a_deleted_session_is_chosen_in_another_that_goes_along():
    async with asked() as (sessions, (first, second)):
        later = await branch(sessions, "root", second)
        earlier = await branch(sessions, "root", first)
        await sessions.delete("root", **ANN)
        assert await choices(sessions, later) == {first: Choice([later, earlier], 0)}
        assert await choices(sessions, earlier) == {first: Choice([later, earlier], 1)}


async def test_a_message_that_is_not_kept_has_no_branch():
    async with asked(memory_options={"history": "last"}) as (sessions, (first, _)):
        async with sessions.use("root", **ANN) as session:
            for number in range(60):  # the journal removes old steps many at a time
                await ask(session, str(number))
        with pytest.raises(StepNotFoundError, match="no step with the message"):
            await sessions.branch("root", first, **ANN)
        with pytest.raises(StepNotFoundError, match="no step with the message 'x'"):
            await sessions.branch("root", "x", **ANN)
        with pytest.raises(SessionNotFoundError):
            await sessions.branch("root", first, user="bob")
        with pytest.raises(SessionNotFoundError):
            await sessions.fork("root", 1, user="bob")


async def test_without_a_journal_there_are_no_branches():
    async with Sessions(Brain(llm=EchoLLM())) as sessions:
        async with sessions.use("root", **ANN) as session:
            await ask(session, "One")
        assert (await sessions.chat("root", **ANN)).choices == {}
        with pytest.raises(BrainUseError, match="keeps no steps"):
            await sessions.branch("root", "x", **ANN)
